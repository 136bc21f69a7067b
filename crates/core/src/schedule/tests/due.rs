//! Which time is due, and when to reconcile again.

use etcd_operator_api::{ConcurrencyPolicy, EtcdBackupSchedule};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::support::{at, backup, condition, ended, looked_at, minutes, nightly, plan_at, time, with_status};
use crate::schedule::plan::Begin;

/// A schedule that was created at this time and has been reconciled.
fn nightly_since(day_and_time: &str) -> EtcdBackupSchedule {
    let mut schedule = nightly();
    schedule.metadata.creation_timestamp = Some(Time(at(day_and_time)));
    looked_at(&schedule, &[], at(day_and_time))
}

fn begin(day_and_time: &str, number: i64) -> Begin {
    let at = at(day_and_time);
    Begin { name: backup(at, number).name, at, number, verify: false, missed_since: None }
}

#[test]
fn a_backup_is_begun_at_its_time_and_is_named_after_it() {
    let schedule = nightly_since("15T12:00");
    let before = plan_at(&schedule, &[], at("16T02:59"));
    assert_eq!((before.begin, before.again), (None, Some(at("16T03:00"))));

    let plan = plan_at(&schedule, &[], at("16T03:00"));
    let minutes_since_1970 = at("16T03:00").as_second() / 60;
    assert_eq!(plan.begin.as_ref().map(|it| it.name.clone()), Some(format!("nightly-{minutes_since_1970}")));
    assert_eq!(plan.begin, Some(begin("16T03:00", 1)));

    let taken = [backup(at("16T03:00"), 1)];
    let after = plan_at(&schedule, &taken, at("16T03:00"));
    assert_eq!((after.begin, after.again), (None, Some(at("17T03:00"))));
    assert_eq!(after.status.last_schedule_time.map(|it| it.0), Some(at("16T03:00")));
    assert_eq!(after.status.next_schedule_time.map(|it| it.0), Some(at("17T03:00")));
    assert_eq!(after.status.last_backup, Some(taken[0].name.clone()));
    assert_eq!((after.status.backups_taken, after.status.active), (1, vec![taken[0].name.clone()]));
}

#[test]
fn one_backup_makes_up_for_all_that_were_missed() {
    let schedule = looked_at(&nightly(), &[], at("10T12:00"));
    let plan = plan_at(&schedule, &[], at("16T10:00"));
    assert_eq!(plan.begin, Some(Begin { missed_since: Some(at("11T03:00")), ..begin("16T03:00", 1) }));
    let schedule = looked_at(&schedule, &[ended(at("16T03:00"), 1, true)], at("16T10:00"));
    assert_eq!(plan_at(&schedule, &[], at("16T10:01")).begin, None, "even when its object is gone");
}

#[test]
fn time_past_its_starting_deadline_is_skipped_and_reported() {
    let mut schedule = nightly_since("16T02:00");
    schedule.spec.starting_deadline_seconds = Some(600);
    assert_eq!(plan_at(&schedule, &[], at("16T03:10")).begin, Some(begin("16T03:00", 1)));
    let plan = plan_at(&schedule, &[], time("2026-11-16T03:10:01Z"));
    assert_eq!(plan.begin, None);
    assert_eq!(plan.notices.iter().map(|it| it.reason.as_str()).collect::<Vec<_>>(), ["BackupMissed"]);
    assert_eq!(plan.status.last_schedule_time.as_ref().map(|it| it.0), Some(at("16T03:00")));

    let schedule = with_status(&schedule, plan.status);
    let later = plan_at(&schedule, &[], at("16T04:00"));
    assert_eq!((later.begin, later.notices), (None, vec![]), "it is told once");
}

#[test]
fn the_first_look_makes_up_for_what_was_due_since_the_schedule_was_created() {
    assert_eq!(plan_at(&nightly(), &[], at("10T13:00")).begin, None);
    assert_eq!(plan_at(&nightly(), &[], at("11T03:05")).begin, Some(begin("11T03:00", 1)));
}

#[test]
fn a_change_takes_effect_at_once_and_makes_up_for_nothing_before_it() {
    let mut schedule = looked_at(&nightly(), &[], at("15T12:00"));
    schedule.spec.schedule = "0 9 * * *".to_owned();
    let plan = plan_at(&schedule, &[], at("16T10:00"));
    assert_eq!((plan.begin.clone(), plan.again), (None, Some(at("17T09:00"))));
    let schedule = with_status(&schedule, plan.status);
    assert_eq!(plan_at(&schedule, &[], at("17T08:59")).begin, None);
    assert_eq!(plan_at(&schedule, &[], at("17T09:00")).begin, Some(begin("17T09:00", 1)));

    // Another time zone is another schedule; other changes are not.
    let mut moved = schedule.clone();
    moved.spec.time_zone = "Asia/Tokyo".to_owned();
    assert_eq!(plan_at(&moved, &[], at("17T09:00")).begin, None);
    let mut other = schedule;
    other.spec.failed_backups_history_limit = 7;
    assert_eq!(plan_at(&other, &[], at("17T09:00")).begin, Some(begin("17T09:00", 1)));
}

#[test]
fn time_that_comes_while_suspended_is_not_made_up_for() {
    let mut schedule = looked_at(&nightly(), &[], at("15T12:00"));
    schedule.spec.suspend = true;
    let plan = plan_at(&schedule, &[], at("16T02:00"));
    assert_eq!((plan.begin.clone(), plan.again), (None, None));
    assert_eq!(plan.status.next_schedule_time, None);
    assert_eq!(condition(&plan.status, "Ready"), Some(("False", "Suspended")));
    let mut schedule = with_status(&schedule, plan.status);
    assert_eq!(plan_at(&schedule, &[], at("16T03:00")).begin, None);

    schedule.spec.suspend = false;
    let schedule = looked_at(&schedule, &[], at("16T09:00"));
    assert_eq!(plan_at(&schedule, &[], at("16T09:00")).begin, None);
    assert_eq!(plan_at(&schedule, &[], at("17T03:00")).begin, Some(begin("17T03:00", 1)));
}

#[test]
fn a_schedule_that_was_created_suspended_does_not_make_up_for_that_either() {
    let mut schedule = nightly();
    schedule.spec.suspend = true;
    let mut schedule = looked_at(&schedule, &[], at("10T12:00"));
    schedule.spec.suspend = false;
    assert_eq!(plan_at(&schedule, &[], at("16T09:00")).begin, None);
}

#[test]
fn concurrency_policy_decides_while_another_backup_runs() {
    let running = backup(at("15T03:00"), 1);
    let mut schedule = looked_at(&nightly(), std::slice::from_ref(&running), at("15T12:00"));
    for (policy, expected, stopped) in [
        (ConcurrencyPolicy::Forbid, None, vec![]),
        (ConcurrencyPolicy::Allow, Some(begin("16T03:00", 2)), vec![]),
        (ConcurrencyPolicy::Replace, Some(begin("16T03:00", 2)), vec![running.name.clone()]),
    ] {
        schedule.spec.concurrency_policy = policy;
        let plan = plan_at(&schedule, std::slice::from_ref(&running), at("16T03:00"));
        assert_eq!((plan.begin, plan.stop), (expected, stopped), "{policy:?}");
    }
}

#[test]
fn delayed_backup_starts_when_the_running_one_ends_unless_it_is_too_late() {
    let mut schedule = looked_at(&nightly(), &[backup(at("15T03:00"), 1)], at("15T12:00"));
    schedule.spec.starting_deadline_seconds = Some(1800);
    let waiting = plan_at(&schedule, &[backup(at("15T03:00"), 1)], at("16T03:00"));
    assert_eq!(condition(&waiting.status, "Ready"), Some(("True", "WaitingForRunningBackup")));
    assert_eq!(waiting.again, Some(time("2026-11-16T03:30:01Z")));
    let schedule = with_status(&schedule, waiting.status);

    let now_ended = [ended(at("15T03:00"), 1, true)];
    assert_eq!(plan_at(&schedule, &now_ended, at("16T03:20")).begin, Some(begin("16T03:00", 2)));
    let too_late = plan_at(&schedule, &now_ended, at("16T03:31"));
    assert_eq!(too_late.begin, None);
    assert_eq!(too_late.status.last_schedule_time.map(|it| it.0), Some(at("16T03:00")));
}

#[test]
fn a_backup_for_another_reason_is_waited_for_but_not_replaced() {
    let other = crate::schedule::scheduled_backup::ScheduledBackup { run: None, ..backup(at("16T02:50"), 0) };
    let mut schedule = nightly_since("16T02:00");
    assert_eq!(plan_at(&schedule, std::slice::from_ref(&other), at("16T03:00")).begin, None);
    schedule.spec.concurrency_policy = ConcurrencyPolicy::Replace;
    let plan = plan_at(&schedule, &[other], at("16T03:00"));
    assert_eq!((plan.begin, plan.stop), (Some(begin("16T03:00", 1)), vec![]));
}

#[test]
fn a_crash_after_a_backup_was_made_neither_doubles_nor_renumbers_it() {
    let schedule = looked_at(&nightly(), &[], at("16T02:00"));
    let made = ended(at("16T03:00"), 1, true);
    let plan = plan_at(&schedule, std::slice::from_ref(&made), at("16T03:30"));
    assert_eq!((plan.begin, plan.status.backups_taken), (None, 1));
    assert_eq!(plan_at(&schedule, &[made], at("17T03:00")).begin, Some(begin("17T03:00", 2)));
}

#[test]
fn a_backup_is_replaced_only_once_it_is_counted() {
    let mut schedule = looked_at(&nightly(), &[], at("15T02:00"));
    schedule.spec.concurrency_policy = ConcurrencyPolicy::Replace;
    let running = [backup(at("15T03:00"), 1)];
    let plan = plan_at(&schedule, &running, at("16T03:00"));
    assert_eq!((plan.begin, plan.stop, plan.status.backups_taken), (None, vec![], 1));
    let plan = plan_at(&with_status(&schedule, plan.status), &running, at("16T03:00"));
    assert_eq!((plan.begin, plan.stop), (Some(begin("16T03:00", 2)), vec![running[0].name.clone()]));
}

#[test]
fn every_so_many_backups_one_is_verified() {
    let mut schedule = looked_at(&nightly(), &[], at("10T12:00"));
    schedule.spec.verify_every = Some(3);
    let mut taken = Vec::new();
    let mut verified = Vec::new();
    for day in 11..=19 {
        let now = at(&format!("{day}T03:00"));
        let begin = plan_at(&schedule, &taken, now).begin.expect("one is due every day");
        verified.push(begin.verify);
        taken.push(ended(now, begin.number, true));
        schedule = looked_at(&schedule, &taken, now + minutes(10));
    }
    assert_eq!(verified, [false, false, true, false, false, true, false, false, true]);
}

#[test]
fn after_a_long_absence_a_schedule_for_every_minute_is_as_quick_as_any() {
    let mut schedule = nightly();
    schedule.spec.schedule = "* * * * *".to_owned();
    let schedule = looked_at(&schedule, &[], at("10T12:00"));
    let began = std::time::Instant::now();
    let plan = plan_at(&schedule, &[], time("2036-11-10T12:00:30Z"));
    assert_eq!(plan.begin.map(|it| it.at), Some(time("2036-11-10T12:00:00Z")));
    assert_eq!(plan.again, Some(time("2036-11-10T12:01:00Z")));
    assert!(began.elapsed() < std::time::Duration::from_millis(500), "it took {:?}", began.elapsed());
}

#[test]
fn a_clock_that_goes_backwards_makes_nothing_due() {
    let schedule = looked_at(&nightly(), &[ended(at("16T03:00"), 1, true)], at("16T04:00"));
    for earlier in ["16T03:30", "16T02:00", "15T03:00", "12T00:00"] {
        assert_eq!(plan_at(&schedule, &[], at(earlier)).begin, None, "{earlier}");
    }
}
