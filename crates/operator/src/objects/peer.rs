//! The EtcdPeer of a member: what the member is made from.

use etcd_operator_api::{
    Bootstrap, EtcdCluster, EtcdPeer, EtcdPeerSpec, InitialClusterState, InitialMember, StaticBootstrap,
};
use etcd_operator_core::names::Place;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{member_labels, owned_by_cluster};

pub fn peer(cluster: &EtcdCluster, place: &Place, ordinal: u32, founders: Option<u32>) -> Value {
    let name = place.member_name(ordinal);
    let spec = &cluster.spec;
    let initial_cluster = founders.map(|count| StaticBootstrap {
        initial_cluster: (0..count)
            .map(|ordinal| InitialMember { name: place.member_name(ordinal), host: place.host(ordinal) })
            .collect(),
    });
    let initial_cluster_state =
        if founders.is_some() { InitialClusterState::New } else { InitialClusterState::Existing };
    let peer = EtcdPeerSpec {
        cluster_name: cluster.name_any(),
        version: spec.version.clone(),
        image: spec.image.clone(),
        etcd: spec.etcd.clone(),
        storage: spec.storage.clone(),
        pod_template: spec.pod_template(),
        bootstrap: Some(Bootstrap { static_members: initial_cluster, initial_cluster_state }),
    };
    json!({
        "apiVersion": <EtcdPeer as kube::Resource>::api_version(&()),
        "kind": "EtcdPeer",
        "metadata": {
            "name": name,
            "namespace": cluster.namespace(),
            "labels": member_labels(&cluster.name_any(), &name),
            "ownerReferences": owned_by_cluster(cluster),
        },
        "spec": peer,
    })
}
