//! What the state of the Job that takes a backup means for the backup.

use std::time::Duration;

use etcd_operator_api::{BackupPhase, Reason, RetentionResult, Severity};
use etcd_operator_protocol::report::Pruned;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::support::*;
use crate::agent_job::Progress;
use crate::backup::observed::{JobKind, Observed};
use crate::backup::plan::{Step, plan};

#[test]
fn running_job_shows_its_attempts_and_its_trouble() {
    let running = in_phase(&backup(), BackupPhase::Running);
    let trouble = Some("the bucket is locked".to_owned());
    let plan = plan_with(&running, Progress::Running { attempts: 3, trouble: trouble.clone() });
    assert_eq!((plan.step, plan.status.attempts, plan.status.message), (None, Some(3), trouble));
    assert_eq!(plan.again, Some(Duration::from_secs(15)));
    let plan = plan_with(&running, Progress::Running { attempts: 0, trouble: None });
    assert_eq!((plan.status.attempts, plan.status.message), (Some(1), None), "its pod is about to be created");
}

#[test]
fn job_that_was_created_before_a_crash_is_not_created_again() {
    let plan = plan_with(&backup(), Progress::Running { attempts: 1, trouble: None });
    assert_eq!((plan.step, plan.status.phase), (None, Some(BackupPhase::Running)));
}

#[test]
fn backup_whose_agent_reports_a_manifest_is_taken() {
    let pruned = Pruned { kept: 4, deleted: 1, ..Pruned::default() };
    let plan = plan_with(&in_phase(&backup(), BackupPhase::Running), done(Some(manifest(true)), Some(pruned)));
    let status = &plan.status;
    assert_eq!(status.phase, Some(BackupPhase::Completed));
    assert_eq!((status.revision, status.keys, status.attempts), (Some(5), Some(3), Some(2)));
    assert_eq!((status.snapshot_size, status.object_size, status.sha256.as_deref()), (Some(20), Some(10), Some("aa")));
    assert_eq!(status.retention, Some(RetentionResult { kept: 4, deleted: 1, would_delete: vec![] }));
    assert_eq!((status.verified, status.completion_time.clone()), (None, Some(Time(at("12:10")))));
    assert_eq!(condition(&plan, "Complete"), Some(("True", "Completed")));
    assert_eq!((condition(&plan, "Verified"), condition(&plan, "QuorumLost")), (None, None));
    assert_eq!((events(&plan), plan.again), (vec![(Severity::Normal, "BackupSucceeded")], None));
}

#[test]
fn backup_whose_retention_failed_is_taken_and_says_so() {
    let problem = Some("a.db is locked".to_owned());
    let pruned = Pruned { problem: problem.clone(), ..Pruned::default() };
    let plan = plan_with(&backup(), done(Some(manifest(true)), Some(pruned)));
    assert_eq!((plan.status.phase, plan.status.message), (Some(BackupPhase::Completed), problem));
}

#[test]
fn backup_without_a_quorum_is_taken_and_says_so() {
    let plan = plan_with(&backup(), done(Some(manifest(false)), None));
    assert_eq!(plan.status.phase, Some(BackupPhase::Completed));
    assert_eq!(condition(&plan, "QuorumLost"), Some(("True", "SurvivingMember")));
}

#[test]
fn backup_whose_agent_reports_no_manifest_is_not_taken() {
    let plan = plan_with(&in_phase(&backup(), BackupPhase::Running), done(None, None));
    assert_eq!((plan.step.clone(), plan.status.phase), (None, Some(BackupPhase::Failed)));
    assert_eq!(plan.status.reason.as_ref().map(Reason::as_str), Some("NoReport"));
    assert_eq!(condition(&plan, "Complete"), Some(("False", "NoReport")));
}

#[test]
fn backup_whose_report_is_lost_deletes_its_job_and_goes_on() {
    let running = in_phase(&backup(), BackupPhase::Running);
    let plan = plan_with(&running, Progress::NoReport);
    assert_eq!(plan.step, Some(Step::DeleteJob { kind: JobKind::Backup, uid: Some(UID.to_owned()) }));
    assert_eq!((plan.status.phase, events(&plan)), (Some(BackupPhase::Running), vec![]));
}

#[test]
fn backup_whose_job_failed_fails_for_good_with_its_reason() {
    let plan = plan_with(&in_phase(&backup(), BackupPhase::Running), failed("AccessDenied"));
    assert_eq!(plan.step, None, "the Job stays a while, with its pods and their logs");
    assert_eq!((plan.status.phase, plan.status.attempts), (Some(BackupPhase::Failed), Some(5)));
    assert_eq!(condition(&plan, "Complete"), Some(("False", "AccessDenied")));
    assert_eq!(condition(&plan, "Failed"), Some(("True", "AccessDenied")));
    assert_eq!((events(&plan), plan.again), (vec![(Severity::Warning, "BackupFailed")], None));
}

#[test]
fn backup_whose_pod_cannot_start_fails_and_deletes_its_job() {
    let plan = plan_with(&in_phase(&backup(), BackupPhase::Running), failed("PodCannotStart"));
    assert_eq!(plan.step, Some(Step::DeleteJob { kind: JobKind::Backup, uid: Some(UID.to_owned()) }));
    assert_eq!(plan.status.phase, Some(BackupPhase::Failed));
}

#[test]
fn status_without_changes_stays_the_same_later() {
    let running = Progress::Running { attempts: 1, trouble: None };
    let first = plan_with(&backup(), running.clone()).status;
    let reported = with_status(&backup(), first.clone());
    let later = plan(&Observed { now: at("12:20"), ..observed(&reported, running) });
    assert_eq!((later.status, later.notices), (first, vec![]));
}
