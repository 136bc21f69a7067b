//! Where the backup of an EtcdRestore is stored: at the location in its spec, or where an EtcdBackup stored it.

use etcd_operator_api::{
    BackupPhase, ClaimSource, EtcdBackup, JobFailureReason, Reason, RestoreFrom, RestoreReason, RestoreSource,
};

use crate::locations::{self, LocationError};

/// The location of the backup.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    Known(Box<RestoreFrom>),
    Awaited(String),
    None { reason: Reason, message: String },
}

/// `backup` is the EtcdBackup that the source names, if there is one of that name.
pub fn source_of(source: &RestoreSource, backup: Option<&EtcdBackup>) -> Source {
    let Some(name) = &source.backup_name else { return Source::Known(Box::new(source.from.clone())) };
    let Some(backup) = backup else {
        let message = format!("there is no EtcdBackup {name:?} in this namespace");
        return Source::None { reason: RestoreReason::NoSuchBackup.into(), message };
    };
    match backup.status.as_ref().and_then(|status| status.phase) {
        Some(BackupPhase::Completed) => match from_backup(backup, &source.from) {
            Ok(from) => Source::Known(Box::new(from)),
            Err(error) => Source::None { reason: JobFailureReason::InvalidRequest.into(), message: error.to_string() },
        },
        Some(BackupPhase::Failed) => {
            let message = format!("the EtcdBackup {name:?} has failed, so there is nothing to restore");
            Source::None { reason: RestoreReason::BackupFailed.into(), message }
        }
        _ => Source::Awaited(format!("waits for the EtcdBackup {name:?} to complete")),
    }
}

/// Settings of the source itself take precedence over those that the backup was created with.
fn from_backup(backup: &EtcdBackup, said: &RestoreFrom) -> Result<RestoreFrom, LocationError> {
    let destination = &backup.spec.destination;
    let location = locations::of_backup(backup)?;
    let mut access = destination.access.clone();
    access.credentials = said.credentials().or(destination.credentials()).cloned();
    let claim = destination
        .persistent_volume_claim
        .as_ref()
        .map(|claim| ClaimSource { claim_name: claim.claim_name.clone(), path: locations::path_in_volume(&location) });
    let sha256 = backup.status.as_ref().and_then(|status| status.sha256.clone());
    Ok(RestoreFrom {
        object_url: claim.is_none().then(|| location.url.clone()),
        persistent_volume_claim: claim,
        bucket: None,
        decryption: said.decryption.clone().or_else(|| backup.spec.decryption.clone()),
        sha256: said.sha256.clone().or(sha256),
        access,
    })
}
