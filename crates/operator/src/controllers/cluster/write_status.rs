//! Writes the status of an EtcdCluster: to record an intent before it is carried out, and to report.

use etcd_operator_api::{EtcdCluster, EtcdClusterStatus};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};

use super::patches::AppliedStatus;
use crate::runtime::status::FIELD_MANAGER;

/// Whether a status was written.
pub enum Written {
    Yes,
    /// The cluster has changed since it was read, or is gone: the status may be wrong, and the change will lead to
    /// another reconcile.
    Outdated,
}

pub async fn write_status(client: &Client, cluster: &EtcdCluster, status: &EtcdClusterStatus) -> kube::Result<Written> {
    let clusters: Api<EtcdCluster> = Api::namespaced(client.clone(), &cluster.namespace().unwrap_or_default());
    let params = PatchParams::apply(FIELD_MANAGER).force().validation_strict();
    let patch = Patch::Apply(AppliedStatus::of(cluster, status));
    match clusters.patch_status(&cluster.name_any(), &params, &patch).await {
        Ok(_) => Ok(Written::Yes),
        Err(kube::Error::Api(answer)) if answer.code == 404 || answer.code == 409 => Ok(Written::Outdated),
        Err(error) => Err(error),
    }
}
