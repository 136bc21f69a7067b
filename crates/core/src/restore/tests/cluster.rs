//! The cluster that is created, and what is reported about it.

use std::time::Duration;

use etcd_operator_api::{EtcdRestore, EtcdRestoreStatus, RestorePhase, Severity};
use etcd_operator_protocol::report::{Done, SnapshotFile};
use serde_json::{Value, json};

use super::support::*;
use crate::agent_job::Progress;
use crate::restore::observed::ObservedCluster;
use crate::restore::plan::{NotCreated, Plan, plan_without_cluster};

fn plan_of(restore: &EtcdRestore, status: Value, progress: Progress) -> Plan {
    plan_with(restore, ObservedCluster::Ours(Box::new(cluster(status))), progress)
}

#[test]
fn checked_backup_creates_the_cluster_pinned_to_what_was_checked() {
    let plan = plan_with(&in_phase(RestorePhase::Validating), nothing(), done());
    let cluster = created(&plan);
    let bootstrap = json!(cluster.spec.bootstrap);
    assert_eq!(bootstrap["restore"]["sha256"], "aa");
    assert_eq!(bootstrap["restore"]["objectURL"], "s3://backups/b.db");
    assert_eq!((cluster.spec.version.as_str(), cluster.spec.replicas), ("3.6.16", 3));
    assert_eq!(
        json!(cluster.metadata),
        json!({
            "name": "my-etcd",
            "namespace": "db",
            "labels": {"team": "a", "etcd.improbable.io/restored-from": "back"},
            "annotations": {"note": "b", "etcd.improbable.io/restore-uid": "5c1e"},
        })
    );
    assert_eq!(plan.status.phase, Some(RestorePhase::Restoring));
    assert_eq!((plan.status.restored_revision, plan.status.etcd_version.as_deref()), (Some(5), Some("3.6.16")));
    assert_eq!(events(&plan), [(Severity::Normal, "ClusterCreated")]);
    assert_eq!(plan.notices[0].about.as_deref(), Some("my-etcd"));
    assert_eq!(plan.again, Some(Duration::from_secs(30)));
}

#[test]
fn backup_without_a_manifest_is_pinned_by_what_its_file_says() {
    let found = SnapshotFile { snapshot_size: 1, snapshot_sha256: "ee".to_owned() };
    let mut restore = restore();
    restore.spec.cluster_template.spec.version = "3.6.16".to_owned();
    let done = done_with(Done { found: Some(found), ..Done::default() });
    let plan = plan_with(&restore, nothing(), done);
    assert_eq!(json!(created(&plan).spec.bootstrap)["restore"]["sha256"], "ee");
    assert_eq!(plan.status.restored_revision, None);
}

#[test]
fn backup_of_another_minor_creates_nothing() {
    let mut restore = restore();
    restore.spec.cluster_template.spec.version = "3.7.1".to_owned();
    let plan = plan_with(&restore, nothing(), done());
    assert_eq!((plan.step.clone(), end(&plan)), (None, (Some(RestorePhase::Failed), Some("WrongVersion"))));
}

#[test]
fn cluster_that_exists_by_now_is_found_out_about_next_time() {
    let restore = in_phase(RestorePhase::Validating);
    let plan = plan_without_cluster(&observed(&restore, nothing(), done()), NotCreated::Exists);
    assert_eq!((plan.step.clone(), plan.status.phase), (None, Some(RestorePhase::Validating)));
    assert_eq!((plan.status.restored_revision, events(&plan)), (None, vec![]));
    assert_eq!(plan.again, Some(Duration::from_secs(10)));
}

#[test]
fn cluster_that_is_refused_fails_the_restore_with_the_words_of_the_api_server() {
    let restore = in_phase(RestorePhase::Validating);
    let why = NotCreated::Refused("spec.replicas: too many".to_owned());
    let plan = plan_without_cluster(&observed(&restore, nothing(), done()), why);
    assert_eq!((plan.step.clone(), end(&plan)), (None, (Some(RestorePhase::Failed), Some("ClusterRefused"))));
    assert_eq!(plan.status.message.as_deref(), Some("spec.replicas: too many"));
    assert_eq!(events(&plan), [(Severity::Warning, "RestoreFailed")]);
}

#[test]
fn cluster_without_an_id_restores_its_first_member_and_says_what_is_wrong() {
    let time = "2026-11-16T12:00:00Z";
    let unavailable = json!({
        "type": "Available", "status": "False", "reason": "Bootstrapping", "message": "no node", "lastTransitionTime": time,
    });
    let plan = plan_of(&restore(), json!({"conditions": [unavailable]}), done());
    assert_eq!((plan.step, plan.status.phase), (None, Some(RestorePhase::Restoring)));
    assert_eq!(plan.status.message.as_deref(), Some("no node"));
    assert_eq!(plan.status.restored_revision, Some(5), "the operator crashed before it wrote that down");
}

#[test]
fn cluster_that_scales_up_shows_how_many_members_are_ready() {
    let restore = in_phase(RestorePhase::Restoring);
    let plan = plan_of(&restore, json!({"clusterID": "cdf8", "readyReplicas": 1}), Progress::NotBegun);
    assert_eq!((plan.step.clone(), plan.status.phase), (None, Some(RestorePhase::ScalingUp)));
    assert_eq!(plan.status.progress.as_deref(), Some("1 of 3 members are ready"));
    assert_eq!((events(&plan), plan.again), (vec![], Some(Duration::from_secs(30))));
}

#[test]
fn cluster_with_all_members_completes_the_restore() {
    let known = EtcdRestoreStatus {
        phase: Some(RestorePhase::ScalingUp),
        restored_revision: Some(7),
        ..EtcdRestoreStatus::default()
    };
    let restore = EtcdRestore { status: Some(known), ..restore() };
    let plan = plan_of(&restore, json!({"clusterID": "cdf8", "readyReplicas": 3}), done());
    assert_eq!((plan.step.clone(), plan.status.phase), (None, Some(RestorePhase::Completed)));
    assert_eq!((plan.status.restored_revision, plan.status.progress.clone()), (Some(7), None));
    assert_eq!(plan.status.cluster_id.as_deref(), Some("cdf8"));
    assert_eq!(condition(&plan, "Complete"), Some(("True", "Completed")));
    assert_eq!((events(&plan), plan.again), (vec![(Severity::Normal, "RestoreSucceeded")], None));
}
