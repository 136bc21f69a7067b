//! The EtcdPeer of a member: what the member is created from.

use std::collections::BTreeMap;

use etcd_operator_api::labels::RESTART;
use etcd_operator_api::{
    Bootstrap, EtcdCluster, EtcdPeer, EtcdPeerSpec, InitialClusterState, InitialMember, StaticBootstrap, Storage,
};
use etcd_operator_core::names::ClusterNames;
use etcd_operator_core::ordinal::Ordinal;
use kube::ResourceExt;
use kube::api::ObjectMeta;

use super::{member_labels, owner_reference};

/// What a member is created from, apart from how it is bootstrapped.
pub struct Recipe {
    pub spec: EtcdPeerSpec,
    /// The value of the annotation that requests a restart at that time.
    pub restart: Option<String>,
}

impl Recipe {
    /// From the spec of the cluster.
    pub fn of_cluster(cluster: &EtcdCluster) -> Self {
        let spec = &cluster.spec;
        // Whether members may be replaced for their volumes does not concern the members themselves.
        let storage = Storage { migrate: false, ..spec.storage.clone() };
        let spec = EtcdPeerSpec {
            cluster_name: cluster.name_any(),
            version: spec.version.clone(),
            image: spec.image.clone(),
            etcd: spec.etcd.clone(),
            storage,
            pod_template: spec.pod_template(),
            bootstrap: None,
        };
        Recipe { spec, restart: cluster.annotations().get(RESTART).cloned() }
    }

    /// Like another member.
    pub fn of_peer(peer: &EtcdPeer) -> Self {
        Recipe { spec: peer.spec.clone(), restart: peer.annotations().get(RESTART).cloned() }
    }
}

pub fn peer(
    cluster: &EtcdCluster,
    names: &ClusterNames,
    ordinal: Ordinal,
    initial_members: Option<u32>,
    recipe: Recipe,
) -> EtcdPeer {
    let name = names.member_name(ordinal);
    let initial_cluster = initial_members.map(|count| StaticBootstrap {
        initial_cluster: Ordinal::first(count)
            .map(|ordinal| InitialMember { name: names.member_name(ordinal), host: names.host(ordinal) })
            .collect(),
    });
    let initial_cluster_state =
        if initial_members.is_some() { InitialClusterState::New } else { InitialClusterState::Existing };
    let restore = initial_members.and_then(|_| cluster.spec.bootstrap.as_ref()?.restore.clone());
    let bootstrap = Bootstrap { static_members: initial_cluster, initial_cluster_state, restore };
    let spec = EtcdPeerSpec { bootstrap: Some(bootstrap), ..recipe.spec };
    let annotations: BTreeMap<_, _> = recipe.restart.into_iter().map(|value| (RESTART.to_owned(), value)).collect();
    let metadata = ObjectMeta {
        namespace: cluster.namespace(),
        labels: Some(member_labels(&cluster.name_any(), &name)),
        annotations: Some(annotations),
        owner_references: Some(vec![owner_reference(cluster)]),
        name: Some(name),
        ..ObjectMeta::default()
    };
    EtcdPeer { metadata, spec, status: None }
}
