//! Before the cluster exists: nothing may be in its way, and the backup is read first.

use std::time::Duration;

use etcd_operator_api::{EtcdRestore, Reason, RestorePhase, Severity};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::support::*;
use crate::agent_job::Progress;
use crate::restore::observed::{ObservedCluster, is_over};
use crate::restore::plan::Step;

fn every_progress() -> [Progress; 5] {
    let failed = Progress::Failed { attempts: 1, reason: Reason::verbatim("AccessDenied"), message: "no".to_owned() };
    let running = Progress::Running { attempts: 1, trouble: None };
    [Progress::NotBegun, running, failed, Progress::NoReport, done()]
}

#[test]
fn restore_whose_cluster_exists_fails_and_creates_nothing() {
    for progress in every_progress() {
        let plan = plan_with(&restore(), ObservedCluster::Another, progress);
        assert_eq!(plan.step, None);
        assert_eq!(end(&plan), (Some(RestorePhase::Failed), Some("ClusterExists")));
        assert_eq!((events(&plan), plan.again), (vec![(Severity::Warning, "RestoreFailed")], None));
    }
}

#[test]
fn restore_with_claims_in_its_way_fails_and_creates_nothing() {
    for progress in every_progress() {
        let claims = vec!["my-etcd-0".to_owned(), "my-etcd-1".to_owned()];
        let plan = plan_with(&restore(), ObservedCluster::Claims(claims), progress);
        assert_eq!(plan.step, None);
        assert_eq!(end(&plan), (Some(RestorePhase::Failed), Some("VolumesExist")));
        assert!(plan.status.message.unwrap().contains("(my-etcd-0, my-etcd-1)"));
    }
}

#[test]
fn restore_whose_cluster_was_deleted_in_between_fails() {
    for phase in [RestorePhase::Restoring, RestorePhase::ScalingUp] {
        let restore = in_phase(phase);
        let found = ObservedCluster::of(&restore, None).unwrap();
        for progress in every_progress() {
            let plan = plan_with(&restore, found.clone(), progress);
            assert_eq!((plan.step.clone(), end(&plan)), (None, (Some(RestorePhase::Failed), Some("ClusterDeleted"))));
        }
    }
}

#[test]
fn cluster_that_was_never_created_is_not_taken_for_deleted() {
    for restore in [restore(), in_phase(RestorePhase::Pending), in_phase(RestorePhase::Validating)] {
        assert_eq!(ObservedCluster::of(&restore, None), None);
    }
}

#[test]
fn cluster_belongs_to_the_restore_that_created_it_and_no_other_of_its_name() {
    let ours = cluster(serde_json::json!({}));
    let found = ObservedCluster::of(&restore(), Some(ours.clone()));
    assert_eq!(found, Some(ObservedCluster::Ours(Box::new(ours.clone()))));
    let mut recreated = restore();
    recreated.metadata.uid = Some("6d2f".to_owned());
    assert_eq!(ObservedCluster::of(&recreated, Some(ours.clone())), Some(ObservedCluster::Another));
    let mut by_hand = ours;
    by_hand.metadata.annotations = None;
    assert_eq!(ObservedCluster::of(&restore(), Some(by_hand)), Some(ObservedCluster::Another));
}

#[test]
fn backup_is_read_before_anything_else_is_created() {
    let plan = plan_with(&restore(), nothing(), Progress::NotBegun);
    match &plan.step {
        Some(Step::CreateCheckJob(from)) => assert_eq!(from.url().as_deref(), Some("s3://backups/b.db")),
        other => panic!("{other:?}"),
    }
    assert_eq!(plan.status.phase, Some(RestorePhase::Validating));
    assert_eq!(plan.status.start_time, Some(Time(at("12:10"))));
    assert_eq!(plan.status.object_url.as_deref(), Some("s3://backups/b.db"));
    assert_eq!(condition(&plan, "Complete"), Some(("False", "Validating")));
    assert_eq!((events(&plan), plan.again), (vec![], Some(Duration::from_secs(10))));
}

#[test]
fn cluster_is_created_only_after_the_check_was_done() {
    for progress in every_progress() {
        let is_done = matches!(progress, Progress::Done { .. });
        let plan = plan_with(&restore(), nothing(), progress);
        assert_eq!(matches!(plan.step, Some(Step::CreateCluster(_))), is_done, "{:?}", plan.step);
    }
}

#[test]
fn running_check_shows_its_trouble() {
    let trouble = Some("the bucket is locked".to_owned());
    let plan = plan_with(&restore(), nothing(), Progress::Running { attempts: 2, trouble: trouble.clone() });
    assert_eq!((plan.step, plan.status.message), (None, trouble));
    assert_eq!(plan.status.phase, Some(RestorePhase::Validating));
}

#[test]
fn check_that_failed_fails_the_restore_for_good() {
    let failed =
        |reason: &str| Progress::Failed { attempts: 4, reason: Reason::verbatim(reason), message: "m".to_owned() };
    let plan = plan_with(&restore(), nothing(), failed("HashMismatch"));
    assert_eq!((plan.step.clone(), end(&plan)), (None, (Some(RestorePhase::Failed), Some("HashMismatch"))));
    assert_eq!(condition(&plan, "Complete"), Some(("False", "HashMismatch")));
    assert_eq!(condition(&plan, "Failed"), Some(("True", "HashMismatch")));
    assert_eq!(plan.status.completion_time, Some(Time(at("12:10"))));
    assert_eq!((plan.status.progress.clone(), plan.again), (None, None));
    let plan = plan_with(&restore(), nothing(), failed("PodCannotStart"));
    assert_eq!(plan.step, Some(Step::DeleteCheckJob { uid: Some(UID.to_owned()) }));
    assert_eq!(plan.status.phase, Some(RestorePhase::Failed));
}

#[test]
fn check_whose_report_is_lost_runs_again() {
    let plan = plan_with(&in_phase(RestorePhase::Validating), nothing(), Progress::NoReport);
    assert_eq!(plan.step, Some(Step::DeleteCheckJob { uid: Some(UID.to_owned()) }));
    assert_eq!((plan.status.phase, events(&plan)), (Some(RestorePhase::Validating), vec![]));
}

#[test]
fn field_of_an_earlier_operator_is_cleared() {
    let mut restore = restore();
    let earlier = serde_json::json!({"phase": "Checking", "doing": "reading", "startTime": "2026-11-16T12:00:00Z"});
    restore.status = Some(serde_json::from_value(earlier).unwrap());
    let plan = plan_with(&restore, nothing(), Progress::Running { attempts: 1, trouble: None });
    assert_eq!(plan.status.phase, Some(RestorePhase::Validating));
    assert_eq!(plan.status.doing, None);
    assert_eq!(plan.status.progress.as_deref(), Some("reading the backup from one end to the other"));
    assert_eq!(plan.status.start_time, Some(Time(at("12:00"))));
    restore.status = Some(serde_json::from_value(serde_json::json!({"phase": "Growing", "doing": "1 of 3"})).unwrap());
    let plan = plan_with(&restore, ObservedCluster::of(&restore, None).unwrap(), Progress::NotBegun);
    assert_eq!(end(&plan), (Some(RestorePhase::Failed), Some("ClusterDeleted")), "it was created by that operator");
    assert_eq!(plan.status.doing, None);
}

#[test]
fn restore_that_has_ended_or_is_being_deleted_is_left_alone() {
    let mut deleting = restore();
    deleting.metadata.deletion_timestamp = Some(Time(at("12:00")));
    let ended: [EtcdRestore; 2] = [RestorePhase::Completed, RestorePhase::Failed].map(in_phase);
    for restore in ended.iter().chain([&deleting]) {
        assert!(is_over(restore));
        let plan = plan_with(restore, nothing(), done());
        assert_eq!((plan.step, plan.notices, plan.again), (None, vec![], None));
        assert_eq!(plan.status, restore.status.clone().unwrap_or_default());
    }
}
