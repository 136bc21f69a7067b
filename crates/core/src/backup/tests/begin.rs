//! Before the Job exists: what it is told, what it waits for, and for how long.

use std::time::Duration;

use etcd_operator_api::{BackupPhase, EtcdBackup, EtcdCluster, Reason, Severity};
use etcd_operator_protocol::task::Backup;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::support::*;
use crate::agent_job::Progress;
use crate::backup::observed::{Observed, ObservedCluster, ObservedSchedule, is_over};
use crate::backup::plan::{Plan, Step, plan};
use crate::backup::task::awaits_schedule;

fn task(plan: &Plan) -> &Backup {
    match &plan.step {
        Some(Step::CreateBackupJob(task)) => task,
        other => panic!("{other:?}"),
    }
}

fn schedule(retention: Value) -> ObservedSchedule {
    let spec = json!({
        "schedule": "@daily",
        "retention": retention,
        "backupTemplate": {"spec": {
            "clusterName": "my-etcd",
            "destination": {"objectURLTemplate": "s3://backups/{{ .Name }}.db"},
        }},
    });
    let schedule = json!({
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdBackupSchedule",
        "metadata": {"name": "nightly", "namespace": "db", "uid": "5c1e"},
        "spec": spec,
    });
    ObservedSchedule {
        schedule: Box::new(serde_json::from_value(schedule).unwrap()),
        identity: "db/nightly/0d5b".to_owned(),
    }
}

fn plan_without(backup: &EtcdBackup, cluster: ObservedCluster, now: &str) -> Plan {
    plan(&Observed { cluster, now: at(now), ..observed(backup, Progress::NotBegun) })
}

#[test]
fn backup_of_a_cluster_with_members_creates_its_job_and_runs() {
    let plan = plan_with(&backup(), Progress::NotBegun);
    let task = task(&plan);
    assert_eq!(task.to.url, "s3://backups/b.db");
    assert_eq!(task.endpoints, ["http://my-etcd-0.my-etcd.db.svc.cluster.local:2379"]);
    assert_eq!((task.origin.backup.as_str(), task.origin.cluster.as_deref()), ("db/b", Some("db/my-etcd")));
    assert_eq!((&task.retention, &task.all_below, &task.origin.schedule), (&None, &None, &None));
    assert_eq!(plan.status.phase, Some(BackupPhase::Running));
    assert_eq!(plan.status.start_time, Some(Time(at("12:10"))));
    assert_eq!(plan.status.object_url.as_deref(), Some("s3://backups/b.db"));
    assert_eq!(plan.again, Some(Duration::from_secs(15)));
    assert!(events(&plan).is_empty());
}

#[test]
fn backup_whose_job_has_to_run_again_keeps_the_time_of_its_start() {
    let begun = plan_with(&backup(), Progress::NotBegun).status;
    let plan = plan(&Observed { now: at("12:30"), ..observed(&with_status(&backup(), begun), Progress::NotBegun) });
    assert!(matches!(plan.step, Some(Step::CreateBackupJob(_))));
    assert_eq!(plan.status.start_time, Some(Time(at("12:10"))));
}

#[test]
fn backup_of_another_etcd_needs_no_cluster() {
    let other = with_spec(json!({
        "source": {"clusterURL": "http://other:2379"},
        "destination": {"persistentVolumeClaim": {"claimName": "backups"}},
    }));
    let plan = plan_without(&other, ObservedCluster::NotRead, "12:10");
    assert_eq!(task(&plan).endpoints, ["http://other:2379"]);
    assert_eq!(plan.status.object_url.as_deref(), Some("pvc://backups/db/b.db"));
}

#[test]
fn scheduled_backup_applies_the_retention_of_its_schedule() {
    let backup = backup();
    let before = observed(&backup, Progress::NotBegun);
    assert!(awaits_schedule(&before));
    let plan = plan(&Observed { schedule: Some(schedule(json!({"keepLast": 3}))), ..before });
    let task = task(&plan);
    assert_eq!(task.origin.schedule.as_deref(), Some("db/nightly/0d5b"));
    assert_eq!(task.all_below.as_ref().map(|it| it.url.as_str()), Some("s3://backups/"));
    assert_eq!(task.retention.as_ref().map(|it| (it.keep_last, it.keep_last_with_proofs)), Some((3, None)));
}

#[test]
fn schedule_is_looked_up_only_for_a_job_that_can_be_created() {
    let (backup, verifying) = (backup(), in_phase(&to_verify(), BackupPhase::Verifying));
    assert!(!awaits_schedule(&observed(&backup, Progress::NoReport)));
    assert!(!awaits_schedule(&observed(&verifying, Progress::NotBegun)));
    let missing = Observed { cluster: ObservedCluster::Missing, ..observed(&backup, Progress::NotBegun) };
    assert!(!awaits_schedule(&missing));
}

#[test]
fn backup_of_a_missing_cluster_waits_for_it() {
    let plan = plan_without(&backup(), ObservedCluster::Missing, "12:10");
    assert_eq!((plan.step, plan.status.phase), (None, Some(BackupPhase::Pending)));
    let message = "waits for the EtcdCluster \"my-etcd\", which does not exist";
    assert_eq!(plan.status.message.as_deref(), Some(message));
    assert_eq!(plan.again, Some(Duration::from_secs(5)));
}

#[test]
fn backup_of_a_cluster_without_members_waits_for_them() {
    let empty: EtcdCluster = serde_json::from_value(json!({
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdCluster",
        "metadata": {"name": "my-etcd", "namespace": "db"},
        "spec": {"version": "3.6.16", "storage": {"ephemeral": {}}},
    }))
    .unwrap();
    let plan = plan_without(&backup(), ObservedCluster::present(&empty, "cluster.local"), "12:10");
    assert_eq!((plan.step, plan.status.phase), (None, Some(BackupPhase::Pending)));
    let message = "waits for the EtcdCluster \"my-etcd\", which has no members yet";
    assert_eq!(plan.status.message.as_deref(), Some(message));
}

#[test]
fn backup_that_waited_past_its_deadline_fails() {
    let in_time = plan_without(&backup(), ObservedCluster::Missing, "13:00");
    assert_eq!(in_time.status.phase, Some(BackupPhase::Pending), "an hour is the default");
    let late = plan_without(&backup(), ObservedCluster::Missing, "13:01");
    assert_eq!((late.step.clone(), late.status.phase), (None, Some(BackupPhase::Failed)));
    assert_eq!(late.status.reason.as_ref().map(Reason::as_str), Some("ClusterNotReady"));
    assert_eq!(late.status.completion_time, Some(Time(at("13:01"))));
    assert_eq!(condition(&late, "Failed"), Some(("True", "ClusterNotReady")));
    assert_eq!((events(&late), late.again), (vec![(Severity::Warning, "BackupFailed")], None));
}

#[test]
fn backup_past_its_deadline_is_taken_if_its_cluster_is_there_by_now() {
    let plan = plan_without(&backup(), present(), "15:00");
    assert!(matches!(plan.step, Some(Step::CreateBackupJob(_))));
}

#[test]
fn backup_with_a_template_that_cannot_be_filled_fails() {
    let backup = with_spec(json!({
        "source": {"clusterURL": "http://other:2379"},
        "destination": {"objectURLTemplate": "s3://backups/{{ .ClusterName }}.db"},
    }));
    let plan = plan_without(&backup, ObservedCluster::NotRead, "12:10");
    assert_eq!((plan.step, plan.status.reason.as_ref().map(Reason::as_str)), (None, Some("InvalidRequest")));
    let message = plan.status.message.unwrap();
    assert!(message.contains("set spec.clusterName or remove it"), "{message}");
}

#[test]
fn backup_of_nothing_fails() {
    let backup = with_spec(json!({"destination": {"objectURL": "s3://backups/b.db"}}));
    let plan = plan_without(&backup, ObservedCluster::NotRead, "12:10");
    assert_eq!((plan.step, plan.status.reason.as_ref().map(Reason::as_str)), (None, Some("InvalidRequest")));
}

#[test]
fn backup_that_has_ended_or_is_being_deleted_is_left_alone() {
    let mut deleting = backup();
    deleting.metadata.deletion_timestamp = Some(Time(at("12:09")));
    let ended = [BackupPhase::Completed, BackupPhase::Failed].map(|phase| in_phase(&backup(), phase));
    for backup in ended.iter().chain([&deleting]) {
        assert!(is_over(backup));
        let plan = plan_with(backup, Progress::NotBegun);
        assert_eq!((plan.step, plan.notices, plan.again), (None, vec![], None));
        assert_eq!(plan.status, backup.status.clone().unwrap_or_default());
    }
    assert!(!is_over(&in_phase(&backup(), BackupPhase::Verifying)));
}
