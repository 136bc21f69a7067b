//! What follows if the cluster is gone.

use etcd_operator_api::{EtcdBackupSchedule, EtcdBackupScheduleSpec, EtcdRestore, Reason, Severity};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::support::{CLUSTER, at, backup, condition, looked_at, nightly, time, with_status};
use crate::schedule::plan::{Deletion, Observed, ObservedCluster, Plan, is_to_be_restored, plan};
use crate::schedule::scheduled_backup::ScheduledBackup;

fn deleting() -> EtcdBackupSchedule {
    let mut schedule = nightly();
    schedule.spec.delete_with_cluster = true;
    looked_at(&schedule, &[], at("15T12:00"))
}

fn plan_with(
    schedule: &EtcdBackupSchedule,
    cluster: &ObservedCluster,
    taken: &[ScheduledBackup],
    deletion: Deletion,
    now: Timestamp,
) -> Plan {
    plan(&Observed { schedule, taken, cluster: cluster.clone(), deletion, now })
}

fn another() -> ObservedCluster {
    ObservedCluster::Present { uid: "another".to_owned() }
}

/// Changes a schedule as a user does.
fn edit(schedule: &mut EtcdBackupSchedule, change: impl FnOnce(&mut EtcdBackupScheduleSpec)) {
    change(&mut schedule.spec);
    schedule.metadata.generation = schedule.metadata.generation.map(|generation| generation + 1);
}

/// The name and the UID of the recorded cluster.
fn remembered(schedule: &EtcdBackupSchedule) -> (Option<&str>, Option<&str>) {
    let status = schedule.status.as_ref().expect("a status");
    (status.cluster_name.as_deref(), status.cluster_uid.as_deref())
}

/// The schedule after its cluster was observed to be gone.
fn after_loss(schedule: &EtcdBackupSchedule, found: &ObservedCluster) -> EtcdBackupSchedule {
    with_status(schedule, plan_with(schedule, found, &[], Deletion::NotBegun, at("15T13:00")).status)
}

#[test]
fn without_its_cluster_nothing_is_begun_and_nothing_is_made_up_for_later() {
    let schedule = looked_at(&nightly(), &[], at("15T12:00"));
    let plan = plan_with(&schedule, &ObservedCluster::Gone, &[], Deletion::NotBegun, at("16T03:00"));
    assert_eq!((plan.begin.clone(), plan.delete_backups_of.clone()), (None, None));
    assert_eq!(condition(&plan.status, "Ready"), Some(("False", "NoCluster")));
    assert_eq!(plan.notices.iter().map(|it| it.reason.as_str()).collect::<Vec<_>>(), ["NoCluster"]);
    assert_eq!(plan.again, Some(time("2026-11-16T03:00:30Z")));
    let schedule = with_status(&schedule, plan.status);
    let plan = plan_with(&schedule, &another(), &[], Deletion::NotBegun, at("16T03:05"));
    assert_eq!((plan.begin, plan.again), (None, Some(at("17T03:00"))));
}

#[test]
fn the_backups_of_a_cluster_outlive_it_unless_asked_otherwise() {
    let schedule = looked_at(&nightly(), &[], at("15T12:00"));
    for found in [ObservedCluster::Gone, another()] {
        let mut schedule = after_loss(&schedule, &found);
        assert_eq!(condition(schedule.status.as_ref().expect("a status"), "BackupsDeleted"), None);
        // Desiring it when it is too late does not delete them either.
        schedule.spec.delete_with_cluster = true;
        let plan = plan_with(&schedule, &found, &[], Deletion::NotBegun, at("15T14:00"));
        assert_eq!(plan.delete_backups_of, None, "{found:?}");
    }
}

#[test]
fn if_asked_for_they_are_deleted_once_it_is_sure_that_the_cluster_is_gone() {
    let first = plan_with(&deleting(), &ObservedCluster::Gone, &[], Deletion::NotBegun, at("15T13:00"));
    assert_eq!(first.delete_backups_of, None);
    assert_eq!(condition(&first.status, "BackupsDeleted"), Some(("False", "ClusterGone")));
    assert_eq!(first.again, Some(time("2026-11-15T13:00:30Z")));
    let schedule = with_status(&deleting(), first.status);
    let early = plan_with(&schedule, &ObservedCluster::Gone, &[], Deletion::NotBegun, time("2026-11-15T13:00:29Z"));
    assert_eq!(early.delete_backups_of, None);
    let plan = plan_with(&schedule, &ObservedCluster::Gone, &[], Deletion::NotBegun, time("2026-11-15T13:00:30Z"));
    assert_eq!(plan.delete_backups_of.as_deref(), Some(CLUSTER));
    assert_eq!((plan.begin, plan.status.next_schedule_time), (None, None));
}

#[test]
fn while_it_is_not_asked_for_no_cluster_is_remembered() {
    let mut schedule = deleting();
    assert_eq!(remembered(&schedule), (Some("my-etcd"), Some(CLUSTER)));
    edit(&mut schedule, |spec| spec.delete_with_cluster = false);
    let mut schedule = looked_at(&schedule, &[], at("15T12:01"));
    assert_eq!(remembered(&schedule), (None, None));
    // The cluster is deleted and recreated under its name, and the deletion is desired again, all before the next
    // reconcile.
    edit(&mut schedule, |spec| spec.delete_with_cluster = true);
    let schedule = after_loss(&schedule, &another());
    assert_eq!(remembered(&schedule), (Some("my-etcd"), Some("another")));
    assert_eq!(condition(schedule.status.as_ref().expect("a status"), "BackupsDeleted"), None);
}

#[test]
fn while_a_cluster_of_that_name_lives_or_is_to_be_restored_nothing_is_deleted() {
    for found in [another(), ObservedCluster::ToBeRestored] {
        for before in [deleting(), after_loss(&deleting(), &ObservedCluster::Gone)] {
            let schedule = after_loss(&before, &found);
            let status = schedule.status.as_ref().expect("a status");
            assert_eq!(condition(status, "BackupsDeleted"), None, "{found:?}");
            assert_ne!(status.cluster_uid.as_deref(), Some(CLUSTER), "{found:?}");
            let plan = plan_with(&schedule, &found, &[], Deletion::NotBegun, at("15T14:00"));
            assert_eq!(plan.delete_backups_of, None, "{found:?}");
        }
    }
    // If the restore fails, another attempt is expected.
    let schedule = after_loss(&deleting(), &ObservedCluster::ToBeRestored);
    let plan = plan_with(&schedule, &ObservedCluster::Gone, &[], Deletion::NotBegun, at("15T14:00"));
    assert_eq!((plan.delete_backups_of, condition(&plan.status, "BackupsDeleted")), (None, None));
    // But the cluster that exists now is recorded, and if it is deleted for good, all its backups are.
    let schedule = after_loss(&deleting(), &another());
    let schedule = after_loss(&schedule, &ObservedCluster::Gone);
    let plan = plan_with(&schedule, &ObservedCluster::Gone, &[], Deletion::NotBegun, at("15T14:00"));
    assert_eq!(plan.delete_backups_of.as_deref(), Some("another"));
}

#[test]
fn a_deletion_that_runs_is_stopped_if_there_is_a_cluster_again_or_nobody_asks_for_it() {
    let gone = after_loss(&deleting(), &ObservedCluster::Gone);
    let mut not_asked_for = gone.clone();
    edit(&mut not_asked_for, |spec| spec.delete_with_cluster = false);
    let failed =
        || Deletion::Failed { reason: Reason::verbatim("PodCannotStart"), message: "no such Secret".to_owned() };
    let (runs, cases) = (
        || Deletion::Runs { trouble: None },
        [(&gone, another()), (&gone, ObservedCluster::ToBeRestored), (&not_asked_for, ObservedCluster::Gone)],
    );
    for (schedule, found) in cases {
        for deletion in [runs(), failed()] {
            let plan = plan_with(schedule, &found, &[], deletion.clone(), at("15T13:01"));
            assert!(plan.stop_deleting && plan.delete_backups_of.is_none(), "{found:?} {deletion:?}");
            // The Job is named after this cluster. It is not forgotten before the Job is gone.
            let schedule = with_status(schedule, plan.status);
            assert_eq!(remembered(&schedule), (Some("my-etcd"), Some(CLUSTER)), "{found:?} {deletion:?}");
            let plan = plan_with(&schedule, &found, &[], Deletion::NotBegun, at("15T13:01"));
            assert!(!plan.stop_deleting);
            assert_ne!(plan.status.cluster_uid.as_deref(), Some(CLUSTER), "{found:?} {deletion:?}");
        }
    }
    assert!(!plan_with(&gone, &ObservedCluster::Gone, &[], runs(), at("15T13:01")).stop_deleting);
    assert!(!plan_with(&gone, &ObservedCluster::Gone, &[], failed(), at("15T13:01")).stop_deleting);
}

#[test]
fn a_cluster_that_went_between_edits_that_nobody_saw_keeps_its_backups() {
    // Off and on again.
    let mut schedule = deleting();
    edit(&mut schedule, |_| {});
    let schedule = after_loss(&schedule, &ObservedCluster::Gone);
    let plan = plan_with(&schedule, &ObservedCluster::Gone, &[], Deletion::NotBegun, at("15T14:00"));
    assert_eq!((plan.delete_backups_of, condition(&plan.status, "BackupsDeleted")), (None, None));
    // Once it is known that the cluster was deleted while this was desired, the schedule may be edited.
    let mut schedule = after_loss(&deleting(), &ObservedCluster::Gone);
    edit(&mut schedule, |spec| spec.suspend = true);
    let plan = plan_with(&schedule, &ObservedCluster::Gone, &[], Deletion::NotBegun, at("15T14:00"));
    assert_eq!(plan.delete_backups_of.as_deref(), Some(CLUSTER));
}

#[test]
fn an_etcdrestore_holds_until_it_has_completed() {
    let restore = |cluster: &str, status: Value| -> EtcdRestore {
        let object = json!({
            "apiVersion": "etcd.improbable.io/v1alpha1",
            "kind": "EtcdRestore",
            "metadata": {"name": "r"},
            "spec": {
                "source": {"objectURL": "s3://backups/a.db"},
                "clusterTemplate": {"clusterName": cluster, "spec": {"replicas": 1, "storage": {}}},
            },
            "status": status,
        });
        serde_json::from_value(object).expect("an EtcdRestore")
    };
    for phase in ["Pending", "Checking", "Restoring", "Growing", "Failed"] {
        assert!(is_to_be_restored("my-etcd", &[restore("my-etcd", json!({"phase": phase}))]), "{phase}");
    }
    assert!(is_to_be_restored("my-etcd", &[restore("my-etcd", json!({}))]), "nobody has looked at it yet");
    let others = [restore("my-etcd", json!({"phase": "Completed"})), restore("other-etcd", json!({}))];
    assert!(!is_to_be_restored("my-etcd", &others));
}

#[test]
fn a_cluster_that_is_there_again_keeps_its_backups() {
    let schedule = after_loss(&deleting(), &ObservedCluster::Gone);
    let there = ObservedCluster::Present { uid: CLUSTER.to_owned() };
    let plan = plan_with(&schedule, &there, &[], Deletion::NotBegun, at("15T14:00"));
    assert_eq!(plan.delete_backups_of, None);
    assert_eq!(condition(&plan.status, "BackupsDeleted"), None);
    assert_eq!(condition(&plan.status, "Ready"), Some(("True", "Scheduled")));
    // If it is deleted again, the time starts again.
    let schedule = with_status(&schedule, plan.status);
    let plan = plan_with(&schedule, &ObservedCluster::Gone, &[], Deletion::NotBegun, at("15T15:00"));
    assert_eq!(plan.delete_backups_of, None);
}

#[test]
fn stored_backups_are_not_deleted_while_a_backup_runs() {
    let schedule = after_loss(&deleting(), &ObservedCluster::Gone);
    let running = [backup(at("15T12:55"), 1)];
    let plan = plan_with(&schedule, &ObservedCluster::Gone, &running, Deletion::NotBegun, at("15T14:00"));
    assert_eq!(plan.delete_backups_of, None);
    assert_eq!(condition(&plan.status, "BackupsDeleted"), Some(("False", "ClusterGone")));
}

#[test]
fn stored_backups_are_deleted_once_for_each_cluster() {
    let schedule = after_loss(&deleting(), &ObservedCluster::Gone);
    let runs = plan_with(&schedule, &ObservedCluster::Gone, &[], Deletion::Runs { trouble: None }, at("15T13:01"));
    assert_eq!(runs.delete_backups_of, None);
    assert_eq!(condition(&runs.status, "BackupsDeleted"), Some(("False", "Deleting")));
    let done = plan_with(&schedule, &ObservedCluster::Gone, &[], Deletion::Done { deleted: 5 }, at("15T13:02"));
    assert_eq!(condition(&done.status, "BackupsDeleted"), Some(("True", "Deleted")));
    assert_eq!((&done.status.cluster_uid, &done.status.cluster_name), (&None, &None));

    let schedule = with_status(&schedule, done.status);
    let missing = plan_with(&schedule, &ObservedCluster::Gone, &[], Deletion::NotBegun, at("15T14:00"));
    assert_eq!(missing.delete_backups_of, None);
    assert_eq!(condition(&missing.status, "BackupsDeleted"), Some(("True", "Deleted")), "it can still be read");
    let plan = plan_with(&schedule, &another(), &[], Deletion::NotBegun, at("15T14:00"));
    assert_eq!(plan.delete_backups_of, None);
    assert_eq!(condition(&plan.status, "BackupsDeleted"), None, "there are new ones now");
    assert_eq!(plan.status.cluster_uid.as_deref(), Some("another"));
}

#[test]
fn failed_deletion_is_reported_and_retried_when_its_job_is_gone() {
    let schedule = after_loss(&deleting(), &ObservedCluster::Gone);
    let failed = |reason: &str| Deletion::Failed { reason: Reason::verbatim(reason), message: "no".to_owned() };
    let plan_after = |reason: &str| {
        let plan = plan_with(&schedule, &ObservedCluster::Gone, &[], failed(reason), at("15T14:00"));
        assert_eq!(plan.delete_backups_of, None);
        assert_eq!(condition(&plan.status, "BackupsDeleted"), Some(("False", reason)));
        let events: Vec<_> = plan.notices.iter().map(|it| (it.severity, it.reason.as_str())).collect();
        assert_eq!(events, [(Severity::Warning, reason)]);
        plan
    };
    plan_after("NotAllDeleted");
    plan_after("OOMKilled");
    let schedule = with_status(&schedule, plan_after("AccessDenied").status);
    let plan = plan_with(&schedule, &ObservedCluster::Gone, &[], Deletion::NotBegun, at("15T15:00"));
    assert_eq!(plan.delete_backups_of.as_deref(), Some(CLUSTER));
}

#[test]
fn impossible_deletion_is_not_stopped_and_is_reported_once_requested() {
    let there = ObservedCluster::Present { uid: CLUSTER.to_owned() };
    let impossible = || Deletion::Impossible { message: "the template can't be filled".to_owned() };
    let plan = plan_with(&deleting(), &there, &[], impossible(), at("15T13:00"));
    assert!(!plan.stop_deleting && plan.delete_backups_of.is_none());
    assert_eq!(condition(&plan.status, "BackupsDeleted"), None);
    assert_eq!(plan.status.cluster_uid.as_deref(), Some(CLUSTER));
    let plan = plan_with(&deleting(), &another(), &[], impossible(), at("15T13:00"));
    assert!(!plan.stop_deleting);
    assert_eq!(plan.status.cluster_uid.as_deref(), Some("another"), "no Job is named after the first");
    let gone = after_loss(&deleting(), &ObservedCluster::Gone);
    let plan = plan_with(&gone, &ObservedCluster::Gone, &[], impossible(), at("15T14:00"));
    assert!(!plan.stop_deleting && plan.delete_backups_of.is_none());
    assert_eq!(condition(&plan.status, "BackupsDeleted"), Some(("False", "InvalidRequest")));
    assert!(plan.notices.iter().any(|it| it.severity == Severity::Warning && it.reason.as_str() == "InvalidRequest"));
}

#[test]
fn a_schedule_that_is_given_another_cluster_deletes_nothing() {
    let mut schedule = deleting();
    if let Some(spec) = &mut schedule.spec.backup_template.spec {
        spec.cluster_name = Some("other-etcd".to_owned());
    }
    for found in [ObservedCluster::Gone, another()] {
        let schedule = after_loss(&schedule, &found);
        let plan = plan_with(&schedule, &found, &[], Deletion::NotBegun, at("15T14:00"));
        assert_eq!(plan.delete_backups_of, None, "{found:?}");
        assert_eq!(condition(&plan.status, "BackupsDeleted"), None);
    }
}

#[test]
fn a_cluster_that_is_given_by_its_address_needs_no_etcdcluster() {
    let mut schedule = nightly();
    if let Some(spec) = &mut schedule.spec.backup_template.spec {
        spec.cluster_name = None;
    }
    let schedule = with_status(
        &schedule,
        plan_with(&schedule, &ObservedCluster::External, &[], Deletion::NotBegun, at("15T12:00")).status,
    );
    let plan = plan_with(&schedule, &ObservedCluster::External, &[], Deletion::NotBegun, at("16T03:00"));
    assert!(plan.begin.is_some());
    assert_eq!(plan.status.cluster_uid, None);
}
