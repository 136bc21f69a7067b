//! How the results of backups are counted, and which EtcdBackup objects are deleted.

use etcd_operator_api::EtcdBackup;
use serde_json::{Value, json};

use super::support::{at, backup, ended, looked_at, nightly, plan_at, time, with_status};
use crate::schedule::scheduled_backup::{End, Run, ScheduledBackup, is_of};

fn object(annotations: Value, status: Value) -> EtcdBackup {
    let object = json!({
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdBackup",
        "metadata": {
            "name": "nightly-1",
            "creationTimestamp": "2026-11-16T03:00:01Z",
            "annotations": annotations,
            "ownerReferences": [{"apiVersion": "etcd.improbable.io/v1alpha1", "kind": "EtcdBackupSchedule", "name": "nightly", "uid": "5c1e"}],
        },
        "spec": {"clusterName": "my-etcd", "destination": {"objectURL": "s3://b/o"}},
        "status": status,
    });
    serde_json::from_value(object).expect("an EtcdBackup")
}

#[test]
fn an_etcdbackup_tells_its_time_its_number_and_its_end() {
    let notes = json!({
        "etcd.improbable.io/scheduled-at": "2026-11-16T03:00:00Z",
        "etcd.improbable.io/backup-number": "7",
    });
    let run = Some(Run { at: at("16T03:00"), number: 7 });
    let finished = |succeeded| Some(End { at: at("16T03:05"), succeeded });
    for (status, end) in [
        (json!({}), None),
        (json!({"phase": "Running"}), None),
        (json!({"phase": "Verifying", "completionTime": "2026-11-16T03:05:00Z"}), None),
        (json!({"phase": "Completed", "completionTime": "2026-11-16T03:05:00Z"}), finished(true)),
        (json!({"phase": "Completed", "completionTime": "2026-11-16T03:05:00Z", "verified": true}), finished(true)),
        (json!({"phase": "Completed", "completionTime": "2026-11-16T03:05:00Z", "verified": false}), finished(false)),
        (json!({"phase": "Failed", "completionTime": "2026-11-16T03:05:00Z"}), finished(false)),
    ] {
        let taken = ScheduledBackup::of(&object(notes.clone(), status.clone()));
        assert_eq!((taken.run, taken.end), (run, end), "{status}");
    }
    assert_eq!(ScheduledBackup::of(&object(json!({}), json!({}))).run, None);
    assert!(is_of(&object(json!({}), json!({})), "5c1e"));
    assert!(!is_of(&object(json!({}), json!({})), "another"));
}

#[test]
fn failures_are_counted_until_one_succeeds() {
    let mut schedule = looked_at(&nightly(), &[], at("10T12:00"));
    let mut taken = Vec::new();
    let mut counts = Vec::new();
    for (day, succeeded) in (11..).zip([true, false, false, false, false, true, false]) {
        taken.push(ended(at(&format!("{day}T03:00")), day - 10, succeeded));
        let plan = plan_at(&schedule, &taken, at(&format!("{day}T04:00")));
        counts.push(plan.status.consecutive_failures);
        schedule.status = Some(plan.status);
        // Once more, as after a crash, and with old objects gone.
        let plan = plan_at(&schedule, &taken, at(&format!("{day}T04:01")));
        assert_eq!(plan.status.consecutive_failures, counts[counts.len() - 1]);
        taken.retain(|it| !plan.beyond_history_limits.contains(&it.name));
    }
    assert_eq!(counts, [0, 1, 2, 3, 4, 0, 1]);
    let status = schedule.status.expect("it was looked at");
    assert_eq!(status.last_successful_time.map(|it| it.0), Some(at("16T03:05")));
    assert_eq!((status.last_counted_backup, status.backups_taken), (7, 7));
}

#[test]
fn ends_are_counted_in_the_order_of_beginnings() {
    let schedule = looked_at(&nightly(), &[], at("10T12:00"));
    let (first, second) = (at("11T03:00"), at("12T03:00"));
    let later_ends_first = [backup(first, 1), ended(second, 2, true)];
    let plan = plan_at(&schedule, &later_ends_first, at("12T04:00"));
    assert_eq!((plan.status.last_counted_backup, plan.status.consecutive_failures), (0, 0));
    let both = [ended(first, 1, false), ended(second, 2, true)];
    let plan = plan_at(&schedule, &both, at("12T05:00"));
    assert_eq!((plan.status.last_counted_backup, plan.status.consecutive_failures), (2, 0));
}

#[test]
fn the_oldest_objects_go_and_never_one_that_runs_or_is_not_counted() {
    let mut schedule = looked_at(&nightly(), &[], at("10T12:00"));
    schedule.spec.successful_backups_history_limit = 2;
    schedule.spec.failed_backups_history_limit = 1;
    let night = |day: i64| at(&format!("{day}T03:00"));
    let mut taken: Vec<ScheduledBackup> = vec![
        backup(night(19), 9),
        ended(night(14), 4, true),
        ended(night(11), 1, true),
        ended(night(13), 3, false),
        ended(night(12), 2, true),
        ended(night(16), 6, false),
        ended(night(15), 5, false),
        ended(night(17), 7, true),
    ];
    let gone = |taken: &[ScheduledBackup]| {
        let plan = plan_at(&schedule, taken, at("19T04:00"));
        let numbers =
            plan.beyond_history_limits.iter().filter_map(|name| taken.iter().find(|it| it.name == *name)?.run);
        numbers.map(|run| run.number).collect::<Vec<_>>()
    };
    assert_eq!(gone(&taken), [1, 2, 3, 5]);
    // An early one that still runs holds up the counting of later ones.
    taken[4].end = None;
    assert_eq!(gone(&taken), [1]);
    // One that is being deleted is not deleted again, and does not count as kept.
    taken[4] = ended(night(12), 2, true);
    taken[2].deleting = true;
    assert_eq!(gone(&taken), [2, 3, 5]);
}

#[test]
fn a_history_limit_of_zero_keeps_none() {
    let mut schedule = looked_at(&nightly(), &[], at("10T12:00"));
    schedule.spec.successful_backups_history_limit = 0;
    let taken = [ended(at("11T03:00"), 1, true)];
    let plan = plan_at(&schedule, &taken, at("11T04:00"));
    assert_eq!(plan.beyond_history_limits, [taken[0].name.clone()]);
    assert_eq!(plan.status.last_backup, Some(taken[0].name.clone()));
    schedule.status = Some(plan.status.clone());
    assert_eq!(plan_at(&schedule, &[], at("11T04:00")).status, plan.status, "all that is worth knowing is kept");
}

#[test]
fn a_backup_for_another_reason_stays() {
    let mut schedule = looked_at(&nightly(), &[], at("10T12:00"));
    schedule.spec.successful_backups_history_limit = 0;
    let upgrade = ScheduledBackup { run: None, name: "nightly-upgrade-3".to_owned(), ..ended(at("11T10:00"), 0, true) };
    let plan = plan_at(&schedule, &[upgrade], at("11T11:00"));
    assert_eq!(plan.beyond_history_limits, Vec::<String>::new());
    assert_eq!(plan.status.last_successful_time.map(|it| it.0), Some(at("11T10:05")), "but it is a backup");
}

#[test]
fn names_are_ordered_as_numbers() {
    // Minutes since 1970 with fewer digits, as they were until 1989.
    let mut schedule = nightly();
    schedule.spec.successful_backups_history_limit = 1;
    let (early, late) = (time("1989-01-05T03:00:00Z"), time("1989-01-06T18:00:00Z"));
    let taken = [ended(late, 2, true), ended(early, 1, true)];
    assert!(taken[0].name < taken[1].name);
    let plan = plan_at(&schedule, &taken, at("11T04:00"));
    assert_eq!(plan.beyond_history_limits, [taken[1].name.clone()]);
}

#[test]
fn objects_beyond_the_limits_go_only_once_the_status_that_counts_them_is_written() {
    let mut schedule = nightly();
    schedule.spec.successful_backups_history_limit = 0;
    let taken = [ended(at("15T03:00"), 1, true)];
    let first = plan_at(&schedule, &taken, at("15T04:00"));
    assert_eq!(first.beyond_history_limits, [taken[0].name.clone()]);
    assert!(!first.is_idle() && first.may_delete_now(&schedule).is_empty());
    let written = with_status(&schedule, first.status);
    let second = plan_at(&written, &taken, at("15T04:00"));
    assert_eq!(second.may_delete_now(&written), [taken[0].name.clone()]);
    assert!(plan_at(&written, &[], at("15T04:00")).is_idle());
}
