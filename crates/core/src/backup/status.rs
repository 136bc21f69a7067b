//! What the status of an EtcdBackup says, and which changes of it are worth an event.

use etcd_operator_api::{
    BackupEventReason, BackupPhase, BackupReason, EtcdBackup, EtcdBackupStatus, JobFailureReason, Reason,
    RetentionResult, Verify,
};
use etcd_operator_protocol::manifest::Manifest;
use etcd_operator_protocol::report::{Done, Pruned};

use crate::conditions::Statement;
use crate::notice::Notice;

pub fn failed(before: EtcdBackupStatus, reason: impl Into<Reason>, message: String) -> EtcdBackupStatus {
    let reason = Some(reason.into());
    EtcdBackupStatus { phase: Some(BackupPhase::Failed), reason, message: Some(message), ..before }
}

/// The status of a backup whose Job is done. It counts as taken only if the agent said what it has stored.
pub fn taken(backup: &EtcdBackup, before: EtcdBackupStatus, done: Done) -> EtcdBackupStatus {
    let Some(manifest) = done.manifest else {
        return failed(before, BackupReason::NoReport, "the pod did not say what it has backed up".to_owned());
    };
    let Manifest { revision, keys, etcd_version, cluster_id, member, with_quorum, .. } = manifest;
    let is_to_verify = backup.spec.verify == Verify::Restore;
    EtcdBackupStatus {
        phase: Some(if is_to_verify { BackupPhase::Verifying } else { BackupPhase::Completed }),
        revision: Some(revision),
        keys: Some(keys),
        etcd_version: Some(etcd_version),
        cluster_id: Some(cluster_id),
        member: Some(member),
        with_quorum: Some(with_quorum),
        snapshot_size: i64::try_from(manifest.snapshot_size).ok(),
        object_size: i64::try_from(manifest.object_size).ok(),
        sha256: Some(manifest.snapshot_sha256),
        retention: done.pruned.as_ref().map(retention_result),
        message: done.pruned.and_then(|pruned| pruned.problem),
        reason: None,
        ..before
    }
}

fn retention_result(pruned: &Pruned) -> RetentionResult {
    let number = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    RetentionResult {
        kept: number(pruned.kept),
        deleted: number(pruned.deleted),
        would_delete: pruned.would_delete.clone(),
    }
}

/// The status of a backup whose verification has ended. It is stored in any case.
pub fn proven(
    before: EtcdBackupStatus,
    verified: bool,
    reason: Option<Reason>,
    message: Option<String>,
) -> EtcdBackupStatus {
    EtcdBackupStatus { phase: Some(BackupPhase::Completed), verified: Some(verified), reason, message, ..before }
}

pub fn statements(status: &EtcdBackupStatus) -> Vec<Statement> {
    let message = status.message.clone().unwrap_or_default();
    let reason = status.reason.clone().unwrap_or_else(|| JobFailureReason::Failed.into());
    // For clients that wait for either: Complete may become true at any time until this does.
    let has_failed = status.phase == Some(BackupPhase::Failed);
    let failed = has_failed.then(|| Statement::yes("Failed", reason.clone(), message.clone()));
    let verified = status.verified.map(|verified| match verified {
        true => Statement::yes("Verified", BackupReason::Restored, "it was restored, and the restored data matches"),
        false => Statement::no("Verified", reason.clone(), message.clone()),
    });
    let member = status.member.as_deref().unwrap_or_default();
    let quorum = (status.with_quorum == Some(false)).then(|| {
        let message =
            format!("no quorum of the members answered; this is the data of {member}; newer writes may be missing");
        Statement::yes("QuorumLost", BackupReason::SurvivingMember, message)
    });
    [complete(status, reason, message)].into_iter().chain(failed).chain(verified).chain(quorum).collect()
}

fn complete(status: &EtcdBackupStatus, reason: Reason, message: String) -> Statement {
    match status.phase {
        Some(BackupPhase::Completed) => {
            let url = status.object_url.as_deref().unwrap_or_default();
            let revision = status.revision.unwrap_or_default();
            let message = format!("everything up to revision {revision} is in {url}");
            Statement::yes("Complete", BackupReason::Completed, message)
        }
        Some(BackupPhase::Failed) => Statement::no("Complete", reason, message),
        Some(BackupPhase::Running | BackupPhase::Verifying) => {
            Statement::no("Complete", BackupReason::Running, message)
        }
        Some(BackupPhase::Pending) | None => Statement::no("Complete", BackupReason::Pending, message),
    }
}

/// What is worth an event in a status that was not the same before. An end is reached only once.
pub fn notices(status: &EtcdBackupStatus) -> Vec<Notice> {
    let message = status.message.clone().unwrap_or_default();
    match (status.phase, status.verified) {
        (Some(BackupPhase::Failed), _) => vec![Notice::of(BackupEventReason::BackupFailed, message)],
        (Some(BackupPhase::Completed), Some(false)) => vec![Notice::of(BackupEventReason::BackupNotVerified, message)],
        (Some(BackupPhase::Completed), verified) => {
            let url = status.object_url.as_deref().unwrap_or_default();
            let proven = if verified.is_some() { ", and restored to prove it" } else { "" };
            vec![Notice::of(BackupEventReason::BackupSucceeded, format!("Backed up to {url}{proven}"))]
        }
        _ => Vec::new(),
    }
}
