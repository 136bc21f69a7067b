//! Backups that are restored for a test once they are taken.

use std::time::Duration;

use etcd_operator_api::{BackupPhase, EtcdBackup, Image, Reason, Severity};
use serde_json::json;

use super::support::*;
use crate::agent_job::Progress;
use crate::backup::observed::{JobKind, Observed, ObservedCluster};
use crate::backup::plan::{Step, plan};

fn verifying() -> EtcdBackup {
    in_phase(&to_verify(), BackupPhase::Verifying)
}

#[test]
fn backup_to_verify_is_not_complete_when_it_is_taken() {
    let plan = plan_with(&in_phase(&to_verify(), BackupPhase::Running), done(Some(manifest(true)), None));
    assert_eq!((plan.step.clone(), plan.status.phase), (None, Some(BackupPhase::Verifying)));
    assert_eq!(condition(&plan, "Complete"), Some(("False", "Running")));
    assert_eq!((plan.status.completion_time.clone(), events(&plan)), (None, vec![]));
    assert_eq!(plan.again, Some(Duration::from_secs(15)));
}

#[test]
fn backup_to_verify_asks_the_agent_for_a_hash() {
    match plan_with(&to_verify(), Progress::NotBegun).step {
        Some(Step::CreateBackupJob(task)) => assert!(task.hash_keys),
        other => panic!("{other:?}"),
    }
}

#[test]
fn taken_backup_is_verified_with_the_version_and_the_image_of_its_cluster() {
    let backup = verifying();
    let image = Some(Image { repository: Some("mirror/etcd".to_owned()), pull_policy: None });
    for (cluster, image) in [
        (ObservedCluster::Present { endpoints: vec![], image: image.clone() }, image),
        (ObservedCluster::Missing, None),
        (ObservedCluster::NotRead, None),
    ] {
        let plan = plan(&Observed { cluster, ..observed(&backup, Progress::NotBegun) });
        match plan.step {
            Some(Step::CreateVerifyJob { from, version, image: found }) => {
                assert_eq!((from.url.as_str(), version.as_str()), ("s3://backups/b.db", "3.6.16"));
                assert_eq!(found, image);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(plan.status.phase, Some(BackupPhase::Verifying));
    }
}

#[test]
fn verified_backup_is_complete() {
    let plan = plan_with(&verifying(), done(None, None));
    assert_eq!((plan.status.phase, plan.status.verified), (Some(BackupPhase::Completed), Some(true)));
    assert_eq!(condition(&plan, "Verified"), Some(("True", "Restored")));
    assert_eq!(events(&plan), [(Severity::Normal, "BackupSucceeded")]);
    assert!(plan.notices[0].note.ends_with(", and restored to prove it"));
}

#[test]
fn backup_that_is_not_what_it_was_is_complete_but_not_verified() {
    let plan = plan_with(&verifying(), failed("ContentMismatch"));
    assert_eq!((plan.step.clone(), plan.status.phase), (None, Some(BackupPhase::Completed)));
    assert_eq!(plan.status.verified, Some(false));
    assert_eq!(condition(&plan, "Complete"), Some(("True", "Completed")));
    assert_eq!(condition(&plan, "Verified"), Some(("False", "ContentMismatch")));
    assert_eq!((events(&plan), plan.again), (vec![(Severity::Warning, "BackupNotVerified")], None));
}

#[test]
fn verification_whose_pod_cannot_start_ends_and_deletes_its_job() {
    let plan = plan_with(&verifying(), failed("PodCannotStart"));
    assert_eq!(plan.step, Some(Step::DeleteJob { kind: JobKind::Verify, uid: Some(UID.to_owned()) }));
    assert_eq!(plan.status.verified, Some(false));
}

#[test]
fn verification_whose_report_is_lost_runs_again() {
    let plan = plan_with(&verifying(), Progress::NoReport);
    assert_eq!(plan.step, Some(Step::DeleteJob { kind: JobKind::Verify, uid: Some(UID.to_owned()) }));
    assert_eq!((plan.status.phase, plan.status.verified), (Some(BackupPhase::Verifying), None));
}

#[test]
fn running_verification_shows_its_trouble() {
    let trouble = Some("no node has room".to_owned());
    let plan = plan_with(&verifying(), Progress::Running { attempts: 1, trouble: trouble.clone() });
    assert_eq!((plan.step, plan.status.message), (None, trouble));
    assert_eq!(plan.status.phase, Some(BackupPhase::Verifying));
}

#[test]
fn verification_of_an_unknown_location_fails() {
    let spec = json!({
        "source": {"clusterURL": "http://other:2379"},
        "destination": {"objectURLTemplate": "s3://backups/{{ .ClusterName }}.db"},
        "verify": "Restore",
    });
    let plan = plan_with(&in_phase(&with_spec(spec), BackupPhase::Verifying), Progress::NotBegun);
    assert_eq!((plan.step, plan.status.verified), (None, Some(false)));
    assert_eq!(plan.status.reason.as_ref().map(Reason::as_str), Some("InvalidRequest"));
}
