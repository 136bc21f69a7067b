//! What is reported about a schedule.

use super::support::{at, backup, condition, ended, looked_at, nightly, plan_at, time, with_status};
use crate::schedule::scheduled_backup::ScheduledBackup;
use etcd_operator_api::Severity;

#[test]
fn a_schedule_that_cannot_be_understood_says_so_until_it_is_changed() {
    let mut schedule = looked_at(&nightly(), &[], at("15T12:00"));
    schedule.spec.schedule = "61 * * * *".to_owned();
    let plan = plan_at(&schedule, &[], at("16T10:00"));
    assert_eq!((plan.begin.clone(), plan.again), (None, None));
    assert_eq!(condition(&plan.status, "Ready"), Some(("False", "InvalidSchedule")));
    let [notices] = &plan.notices[..] else { panic!("{:?}", plan.notices) };
    assert!(
        notices.severity == Severity::Warning
            && notices.reason.as_str() == "InvalidSchedule"
            && notices.note.contains(r#""61" is not a minute"#),
        "{notices:?}"
    );

    let mut schedule = with_status(&schedule, plan.status);
    assert_eq!(plan_at(&schedule, &[], at("16T11:00")).notices, [], "it is told once");
    schedule.spec.schedule = "0 3 * * *".to_owned();
    let schedule = looked_at(&schedule, &[], at("16T12:00"));
    assert_eq!(condition(schedule.status.as_ref().expect("a status"), "Ready"), Some(("True", "Scheduled")));
    assert_eq!(plan_at(&schedule, &[], at("16T12:00")).begin, None);
    assert!(plan_at(&schedule, &[], at("17T03:00")).begin.is_some());
}

#[test]
fn a_status_that_says_nothing_new_stays_as_it_is() {
    let taken = [ended(at("15T03:00"), 1, true), backup(at("16T03:00"), 2)];
    let schedule = looked_at(&nightly(), &taken, at("16T04:00"));
    let plan = plan_at(&schedule, &taken, at("16T05:00"));
    assert_eq!(Some(plan.status), schedule.status);
    assert_eq!(plan.notices, []);
}

/// Whether a schedule is overdue, given the ends of its backups since 15 November.
fn is_overdue(schedule: &str, deadline: Option<i64>, taken: &[ScheduledBackup], now: &str) -> bool {
    let mut subject = nightly();
    subject.spec.schedule = schedule.to_owned();
    subject.spec.starting_deadline_seconds = deadline;
    let subject = looked_at(&subject, &[], at("10T12:00"));
    let plan = plan_at(&subject, taken, time(now));
    condition(&plan.status, "Overdue").expect("a condition").0 == "True"
}

#[test]
fn a_schedule_is_overdue_when_two_times_have_come_to_nothing() {
    let good = ended(at("13T03:00"), 1, true);
    let failed = |day: i64, number| ended(at(&format!("{day}T03:00")), number, false);
    let one_failed = [good.clone(), failed(14, 2)];
    let nightly = "0 3 * * *";
    assert!(!is_overdue(nightly, None, &one_failed, "2026-11-15T02:59:59Z"));
    assert!(is_overdue(nightly, None, &one_failed, "2026-11-15T03:00:00Z"));
    assert!(!is_overdue(nightly, Some(3600), &one_failed, "2026-11-15T03:59:59Z"), "it may begin later");
    assert!(is_overdue(nightly, Some(3600), &one_failed, "2026-11-15T04:00:00Z"));
    // The second may still succeed while it runs, but not forever.
    let second_runs = [good.clone(), failed(14, 2), backup(at("15T03:00"), 3)];
    assert!(!is_overdue(nightly, None, &second_runs, "2026-11-15T03:59:59Z"));
    assert!(is_overdue(nightly, None, &second_runs, "2026-11-15T04:00:00Z"));
    let second_failed = [good.clone(), failed(14, 2), failed(15, 3)];
    assert!(is_overdue(nightly, None, &second_failed, "2026-11-15T03:10:00Z"));
    let second_succeeded = [good, failed(14, 2), ended(at("15T03:00"), 3, true)];
    assert!(!is_overdue(nightly, None, &second_succeeded, "2026-11-15T03:10:00Z"));
}

#[test]
fn a_weekend_without_backups_is_not_overdue() {
    let friday = [ended(at("13T09:00"), 1, true)];
    for (now, expected) in [
        ("2026-11-15T23:00:00Z", false),
        ("2026-11-16T09:00:00Z", false),
        ("2026-11-17T08:59:59Z", false),
        ("2026-11-17T09:00:00Z", true),
    ] {
        assert_eq!(is_overdue("0 9 * * 1-5", None, &friday, now), expected, "{now}");
    }
}

#[test]
fn being_overdue_is_told_once_and_looked_for_in_time() {
    let schedule = looked_at(&nightly(), &[], at("10T12:00"));
    let failed = [ended(at("11T03:00"), 1, false), ended(at("12T03:00"), 2, false)];
    let plan = plan_at(&schedule, &failed, at("12T04:00"));
    let [notices] = &plan.notices[..] else { panic!("{:?}", plan.notices) };
    assert!(notices.severity == Severity::Warning && notices.reason.as_str() == "Overdue", "{notices:?}");
    assert_eq!(notices.note, "no backup has succeeded yet; 2 have failed");
    let schedule = with_status(&schedule, plan.status);
    assert_eq!(plan_at(&schedule, &failed, at("12T05:00")).notices, []);

    let mut late = nightly();
    late.spec.starting_deadline_seconds = Some(600);
    let late = looked_at(&late, &[ended(at("11T03:00"), 1, false)], at("11T12:00"));
    let waiting = plan_at(&late, &[ended(at("11T03:00"), 1, false), ended(at("12T03:00"), 2, false)], at("12T03:06"));
    assert_eq!(waiting.again, Some(at("12T03:10")));
}

#[test]
fn resumed_or_changed_schedule_is_not_overdue_for_the_time_before() {
    let mut schedule = looked_at(&nightly(), &[], at("10T12:00"));
    schedule.spec.suspend = true;
    let mut schedule = looked_at(&schedule, &[], at("10T13:00"));
    schedule.spec.suspend = false;
    let schedule = looked_at(&schedule, &[], at("20T12:00"));
    assert_eq!(condition(schedule.status.as_ref().expect("a status"), "Overdue"), Some(("False", "OnSchedule")));
}
