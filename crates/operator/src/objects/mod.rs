//! The desired Kubernetes objects of a cluster. Each function builds one; none of them talks to the API server.
//!
//! `peer`, `pod` and `claim` build those of a member, `restore_containers` what the first pod of a restored cluster has
//! in addition, `containers` what the containers of several pods have in common; `services` builds those of the cluster: its Services and its PodDisruptionBudget. `annotations` has the
//! names of annotations and of the role label, and reads and writes them; `locations` is what a pod needs to access stored
//! backups; `pod_problem` reads from a pod what keeps it from running. Jobs belong in
//! `controllers::agent_job`, whether an object is created at all in `etcd_operator_core`.

pub mod annotations;
pub mod claim;
pub mod containers;
pub mod locations;
pub mod peer;
pub mod pod;
pub mod pod_problem;
pub mod restore_containers;
pub mod services;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use etcd_operator_api::{EtcdPeer, labels};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};

/// The labels of everything that belongs to a cluster.
pub fn cluster_labels(cluster: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        (labels::APP.to_owned(), labels::APP_NAME.to_owned()),
        (labels::CLUSTER_NAME.to_owned(), cluster.to_owned()),
    ])
}

/// The labels of everything that belongs to one member.
pub fn member_labels(cluster: &str, member: &str) -> BTreeMap<String, String> {
    let mut all = cluster_labels(cluster);
    all.insert(labels::PEER_NAME.to_owned(), member.to_owned());
    all
}

/// Whether a pod belongs to this very EtcdPeer, and not to an earlier one of its name.
pub fn is_pod_of(pod: &Pod, peer: &EtcdPeer) -> bool {
    pod.owner_references().iter().any(|owner| Some(&owner.uid) == peer.metadata.uid.as_ref())
}

/// An object with this is deleted when its owner is.
pub fn owner_reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.name_any(),
        uid: owner.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
