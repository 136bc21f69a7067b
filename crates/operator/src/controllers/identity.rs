//! What distinguishes the stored backups of a schedule from all others.

use etcd_operator_api::EtcdBackupSchedule;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};

use crate::runtime::api_errors::ApiError;

/// It also distinguishes them from those of another Kubernetes cluster that has a schedule of the same name. A recreated
/// schedule continues with its earlier backups.
pub async fn identity_of(schedule: &EtcdBackupSchedule, client: &Client) -> Result<String, ApiError> {
    let namespace = schedule.namespace().unwrap_or_default();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let found = namespaces.get_metadata(&namespace).await;
    let found = found.map_err(ApiError::doing(format!("reading the UID of the namespace {namespace:?}")))?;
    Ok(format!("{namespace}/{}/{}", schedule.name_any(), found.uid().unwrap_or_default()))
}
