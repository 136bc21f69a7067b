//! Acting and ensuring against a mocked API server.

mod act;
mod shared_objects;

use std::collections::BTreeMap;
use std::sync::Arc;

use etcd_operator_api::{EtcdCluster, EtcdPeer};
use etcd_operator_core::names::ClusterNames;
use etcd_operator_core::ordinal::Ordinal;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::actor::Actor;
use super::member_objects::MemberObjects;
use super::observe::{Observation, every_so_often, observe};
use crate::controllers::context::Context;
use crate::controllers::tests::api_server::{Answer, ApiServer};
use crate::controllers::tests::context;
use crate::objects::member_labels;

/// A cluster of one member, with nothing in the caches.
struct Fixture {
    api: ApiServer,
    context: Context,
    cluster: EtcdCluster,
    observation: Observation,
}

impl Fixture {
    /// The EtcdPeer and the pod of the member were observed. The API server answers these requests, in this order.
    async fn new<const N: usize>(script: [(&'static str, Answer); N]) -> Self {
        let (client, api) = ApiServer::start(script.into());
        let (context, cluster) = (context(client), cluster());
        let names = ClusterNames { cluster: "c".into(), namespace: "n".into(), domain: "cluster.local".into() };
        let objects = MemberObjects {
            peers: [(Ordinal(0), Arc::new(peer()))].into(),
            pods: [(Ordinal(0), Arc::new(serde_json::from_value::<Pod>(pod("uid-of-peer")).unwrap()))].into(),
            claims: BTreeMap::new(),
            bound_to: BTreeMap::new(),
            nodes: BTreeMap::new(),
        };
        let observation = observe(&cluster, names, objects, &context, every_so_often(&cluster)).await;
        Fixture { api, context, cluster, observation }
    }

    fn actor(&self) -> Actor<'_> {
        Actor::new(&self.context, &self.cluster, &self.observation)
    }
}

fn cluster() -> EtcdCluster {
    let resources = json!({"limits": {"memory": "2Gi"}});
    let spec = json!({
        "replicas": 1, "version": "3.6.16", "storage": {"ephemeral": {}}, "podTemplate": {"resources": resources},
    });
    let mut cluster = EtcdCluster::new("c", serde_json::from_value(spec).unwrap());
    cluster.metadata.namespace = Some("n".into());
    cluster.metadata.uid = Some("uid-of-cluster".into());
    cluster.metadata.resource_version = Some("7".into());
    cluster
}

fn peer() -> EtcdPeer {
    let spec = json!({"clusterName": "c", "version": "3.6.16", "storage": {"ephemeral": {}}});
    let mut peer = EtcdPeer::new("c-0", serde_json::from_value(spec).unwrap());
    peer.metadata.namespace = Some("n".into());
    peer.metadata.uid = Some("uid-of-peer".into());
    peer.metadata.labels = Some(member_labels("c", "c-0"));
    peer
}

/// The pod of the member, owned by the EtcdPeer of a UID.
fn pod(owner: &str) -> Value {
    let owner = json!({"apiVersion": "etcd.improbable.io/v1alpha1", "kind": "EtcdPeer", "name": "c-0", "uid": owner});
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "c-0", "namespace": "n", "uid": "uid-of-pod", "ownerReferences": [owner]},
        "spec": {"containers": []},
    })
}
