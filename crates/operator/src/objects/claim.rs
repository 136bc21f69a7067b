//! The claim for a member's volume. It has no owner, so that it outlives the cluster, unless the user wants it deleted.

use etcd_operator_api::{DeletionPolicy, EtcdCluster};
use etcd_operator_core::cluster::observed::{Bootstrap, Identity};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::ObjectMeta;

use super::annotations::{of_bootstrap, of_identity};
use super::{member_labels, owner_reference};

pub fn claim(
    cluster: &EtcdCluster,
    template: &PersistentVolumeClaimSpec,
    name: &str,
    bootstrap: Option<&Bootstrap>,
    identity: Option<Identity>,
) -> PersistentVolumeClaim {
    let mut annotations = of_bootstrap(bootstrap);
    annotations.extend(of_identity(identity));
    let mut spec = template.clone();
    spec.access_modes.get_or_insert_with(|| vec!["ReadWriteOnce".to_owned()]);
    PersistentVolumeClaim {
        metadata: ObjectMeta { annotations: Some(annotations), ..claim_metadata(cluster, name) },
        spec: Some(spec),
        status: None,
    }
}

/// The part of a claim that is kept in sync with the EtcdCluster for as long as that exists.
pub fn claim_metadata(cluster: &EtcdCluster, name: &str) -> ObjectMeta {
    let owners = match cluster.spec.deletion_policy {
        DeletionPolicy::KeepVolumes => vec![],
        DeletionPolicy::DeleteVolumes => vec![owner_reference(cluster)],
    };
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: cluster.namespace(),
        labels: Some(member_labels(&cluster.name_any(), name)),
        owner_references: Some(owners),
        ..ObjectMeta::default()
    }
}

/// Whether another client changed that part.
pub fn has_strayed(claim: &PersistentVolumeClaim, cluster: &EtcdCluster) -> bool {
    let wanted = claim_metadata(cluster, &claim.name_any());
    let labels = wanted.labels.unwrap_or_default();
    let labelled = labels.iter().all(|(name, value)| claim.labels().get(name) == Some(value));
    !labelled || uids(claim.owner_references()) != uids(&wanted.owner_references.unwrap_or_default())
}

fn uids(owners: &[OwnerReference]) -> Vec<&str> {
    owners.iter().map(|owner| owner.uid.as_str()).collect()
}
