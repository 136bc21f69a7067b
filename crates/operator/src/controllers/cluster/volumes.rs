//! Finds out how volumes differ from the spec of their cluster.

use std::collections::BTreeMap;

use etcd_operator_api::EtcdCluster;
use etcd_operator_core::cluster::volumes::is_too_small;
use etcd_operator_core::ordinal::Ordinal;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::{Api, Client};

use super::member_objects::MemberObjects;

/// Why volumes that should be expanded can't be, by ordinal. Storage classes are read only when it matters.
pub async fn obstacles_to_growth(
    client: &Client,
    cluster: &EtcdCluster,
    objects: &MemberObjects,
) -> BTreeMap<Ordinal, String> {
    let (mut obstacles, mut known) = (BTreeMap::new(), BTreeMap::new());
    for (ordinal, claim) in objects.claims.iter().filter(|(_, claim)| should_grow(cluster, claim)) {
        let class = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref()).unwrap_or_default();
        // Members mostly have the same storage class.
        let can_grow = match known.get(class) {
            Some(known) => *known,
            None => can_grow(client, class).await,
        };
        known.insert(class, can_grow);
        if !can_grow {
            obstacles.insert(*ordinal, format!("its storage class {class} does not allow volumes to grow"));
        }
    }
    obstacles
}

pub fn should_grow(cluster: &EtcdCluster, claim: &PersistentVolumeClaim) -> bool {
    let (template, spec) = (cluster.spec.storage.volume_claim_template.as_ref(), claim.spec.as_ref());
    spec.zip(template).is_some_and(|(spec, template)| is_too_small(spec, template))
}

/// If it is unknown, it is worth a try: Kubernetes will reject it.
async fn can_grow(client: &Client, class: &str) -> bool {
    match Api::<StorageClass>::all(client.clone()).get_opt(class).await {
        Ok(class) => class.is_some_and(|class| class.allow_volume_expansion == Some(true)),
        Err(_) => true,
    }
}
