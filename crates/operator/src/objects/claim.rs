//! The claim for a member's volume. It has no owner, so that it outlives the cluster, unless the user wants it deleted.

use etcd_operator_api::{DeletionPolicy, EtcdCluster};
use etcd_operator_core::cluster::observed::{Bootstrap, Identity};
use k8s_openapi::api::core::v1::PersistentVolumeClaimSpec;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::annotations::{of_bootstrap, of_identity};
use super::{member_labels, owner_reference};

pub fn claim(
    cluster: &EtcdCluster,
    template: &PersistentVolumeClaimSpec,
    name: &str,
    bootstrap: Option<&Bootstrap>,
    identity: Option<Identity>,
) -> Value {
    let mut annotations = of_bootstrap(bootstrap);
    annotations.extend(of_identity(identity));
    let mut spec = template.clone();
    spec.access_modes.get_or_insert_with(|| vec!["ReadWriteOnce".to_owned()]);
    let mut metadata = claim_metadata(cluster, name);
    metadata["annotations"] = json!(annotations);
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
}

/// The part of a claim that is kept in sync with the EtcdCluster for as long as that exists.
pub fn claim_metadata(cluster: &EtcdCluster, name: &str) -> Value {
    let owners = match cluster.spec.deletion_policy {
        DeletionPolicy::KeepVolumes => json!([]),
        DeletionPolicy::DeleteVolumes => json!([owner_reference(cluster)]),
    };
    json!({
        "name": name,
        "namespace": cluster.namespace(),
        "labels": member_labels(&cluster.name_any(), name),
        "ownerReferences": owners,
    })
}
