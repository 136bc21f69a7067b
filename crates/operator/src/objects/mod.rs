//! The Kubernetes objects of a cluster, as they should be. Each function builds one; none of them talks to anybody.

pub mod annotations;
pub mod claim;
pub mod peer;
pub mod pod;
pub mod services;

use std::collections::BTreeMap;

use etcd_operator_api::{EtcdCluster, EtcdPeer, labels};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

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

/// With this an object is deleted when the EtcdCluster is.
pub fn owned_by_cluster(cluster: &EtcdCluster) -> Value {
    json!([owner::<EtcdCluster>(&cluster.name_any(), cluster.uid())])
}

/// With this a pod is deleted when its EtcdPeer is.
pub fn owned_by_peer(peer: &EtcdPeer) -> Value {
    json!([owner::<EtcdPeer>(&peer.name_any(), peer.uid())])
}

fn owner<K: Resource<DynamicType = ()>>(name: &str, uid: Option<String>) -> Value {
    json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "name": name,
        "uid": uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}
