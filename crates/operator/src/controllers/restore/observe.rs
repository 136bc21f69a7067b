//! Collects what is known about an EtcdRestore. Changes nothing.

use etcd_operator_api::{EtcdBackup, EtcdCluster, EtcdRestore, labels};
use etcd_operator_core::restore::observed::{Observed, ObservedCluster};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::job::name_of_check;
use crate::controllers::agent_job;
use crate::controllers::context::Context;
use crate::runtime::api_errors::ApiError;

pub async fn observe<'a>(restore: &'a EtcdRestore, context: &Context) -> Result<Observed<'a>, ApiError> {
    let cluster = observe_cluster(restore, context).await?;
    let now = Timestamp::now();
    let check = agent_job::observe(&name_of_check(restore), &restore.namespace().unwrap_or_default(), now, context);
    Ok(Observed { restore, cluster, check, now })
}

/// What has the name of the cluster to create. All of it is read live: nothing may be created that is in the way.
async fn observe_cluster(restore: &EtcdRestore, context: &Context) -> Result<ObservedCluster, ApiError> {
    let cluster = cluster_of(restore, context).await?;
    if let Some(observed) = ObservedCluster::of(restore, cluster) {
        return Ok(observed);
    }
    let claims = claims_of(restore, context).await?;
    if !claims.is_empty() {
        return Ok(ObservedCluster::Claims(claims));
    }
    let backup = backup_of(restore, context).await?;
    Ok(ObservedCluster::Nothing { backup: backup.map(Box::new) })
}

async fn cluster_of(restore: &EtcdRestore, context: &Context) -> Result<Option<EtcdCluster>, ApiError> {
    let name = &restore.spec.cluster_template.cluster_name;
    let clusters: Api<EtcdCluster> = Api::namespaced(context.client.clone(), &restore.namespace().unwrap_or_default());
    clusters.get_opt(name).await.map_err(ApiError::doing(format!("reading the EtcdCluster {name:?}")))
}

async fn claims_of(restore: &EtcdRestore, context: &Context) -> Result<Vec<String>, ApiError> {
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(context.client.clone(), &restore.namespace().unwrap_or_default());
    let of_cluster = labels::selector_of_cluster(&restore.spec.cluster_template.cluster_name);
    let found = claims.list(&ListParams::default().labels(&of_cluster)).await;
    let found = found.map_err(ApiError::doing("looking for volume claims"))?;
    Ok(found.items.iter().map(ResourceExt::name_any).collect())
}

/// The EtcdBackup that is restored, if the spec names one and it exists.
async fn backup_of(restore: &EtcdRestore, context: &Context) -> Result<Option<EtcdBackup>, ApiError> {
    let Some(name) = &restore.spec.source.backup_name else { return Ok(None) };
    let backups: Api<EtcdBackup> = Api::namespaced(context.client.clone(), &restore.namespace().unwrap_or_default());
    backups.get_opt(name).await.map_err(ApiError::doing(format!("reading the EtcdBackup {name:?}")))
}
