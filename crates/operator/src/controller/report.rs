//! The last step of a reconcile: tell the user.

use etcd_operator_api::{EtcdCluster, EtcdClusterStatus};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, CustomResourceExt, ResourceExt};
use serde_json::json;

const FIELD_MANAGER: &str = "etcd-operator";

/// Writes the status of a cluster, unless the cluster has changed since it was read: then the status may be wrong, and
/// the change will lead to another reconcile. A cluster that is gone needs no status.
pub async fn write_status(client: &Client, cluster: &EtcdCluster, status: &EtcdClusterStatus) -> kube::Result<()> {
    let resource = EtcdCluster::api_resource();
    let patch = json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"resourceVersion": cluster.metadata.resource_version},
        "status": status,
    });
    let clusters: Api<EtcdCluster> = Api::namespaced(client.clone(), &cluster.namespace().unwrap_or_default());
    let params = PatchParams::apply(FIELD_MANAGER).force();
    match clusters.patch_status(&cluster.name_any(), &params, &Patch::Apply(patch)).await {
        Err(kube::Error::Api(answer)) if answer.code == 404 || answer.code == 409 => Ok(()),
        written => written.map(|_| ()),
    }
}
