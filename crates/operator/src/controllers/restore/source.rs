//! Where the backup of an EtcdRestore is stored: at the location in its spec, or where an EtcdBackup stored it.

use etcd_operator_api::{BackupPhase, ClaimSource, EtcdBackup, EtcdRestore, RestoreFrom};
use kube::{Api, ResourceExt};

use crate::controllers::backup::location_of;
use crate::controllers::context::Context;
use crate::objects::locations;
use crate::runtime::api_errors::ApiError;

/// The location of the backup.
pub enum Source {
    Known(Box<RestoreFrom>),
    Awaited(String),
    None { reason: &'static str, message: String },
}

pub async fn source_of(restore: &EtcdRestore, context: &Context) -> Result<Source, ApiError> {
    let source = &restore.spec.source;
    let Some(name) = &source.backup_name else { return Ok(Source::Known(Box::new(source.from.clone()))) };
    let backups: Api<EtcdBackup> = Api::namespaced(context.client.clone(), &restore.namespace().unwrap_or_default());
    let doing = format!("reading the EtcdBackup {name:?}");
    let Some(backup) = backups.get_opt(name).await.map_err(ApiError::doing(doing))? else {
        let message = format!("there is no EtcdBackup {name:?} in this namespace");
        return Ok(Source::None { reason: "NoSuchBackup", message });
    };
    let phase = backup.status.as_ref().and_then(|status| status.phase);
    Ok(match phase {
        Some(BackupPhase::Completed) => match from_backup(&backup, &source.from) {
            Ok(from) => Source::Known(Box::new(from)),
            Err(message) => Source::None { reason: "InvalidRequest", message },
        },
        Some(BackupPhase::Failed) => {
            let message = format!("the EtcdBackup {name:?} has failed, so there is nothing to restore");
            Source::None { reason: "BackupFailed", message }
        }
        _ => Source::Awaited(format!("waits for the EtcdBackup {name:?} to complete")),
    })
}

/// Settings of the source itself take precedence over those that the backup was created with.
fn from_backup(backup: &EtcdBackup, said: &RestoreFrom) -> Result<RestoreFrom, String> {
    let destination = &backup.spec.destination;
    let location = location_of(backup)?;
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
