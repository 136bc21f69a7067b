//! The last step of a reconcile: tell the user.

use etcd_operator_api::{EtcdCluster, EtcdClusterStatus};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, CustomResourceExt, ResourceExt};
use serde_json::json;

const FIELD_MANAGER: &str = "etcd-operator";

/// Writes the status of a cluster, which the API server does not do if the cluster has been replaced by another of
/// the same name. A cluster that is gone needs no status.
pub async fn write_status(client: &Client, cluster: &EtcdCluster, status: &EtcdClusterStatus) -> kube::Result<()> {
    let resource = EtcdCluster::api_resource();
    let patch = json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"uid": cluster.metadata.uid},
        "status": status,
    });
    let clusters: Api<EtcdCluster> = Api::namespaced(client.clone(), &cluster.namespace().unwrap_or_default());
    let params = PatchParams::apply(FIELD_MANAGER).force();
    match clusters
        .patch_status(&cluster.name_any(), &params, &Patch::Apply(patch))
        .await
    {
        Err(kube::Error::Api(answer)) if answer.is_not_found() => Ok(()),
        written => written.map(|_| ()),
    }
}
