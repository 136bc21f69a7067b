//! How members and clients find the cluster, and how many members an eviction must leave running.

use std::collections::BTreeMap;

use etcd_operator_api::EtcdCluster;
use etcd_operator_core::cluster::quorum::quorum;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::annotations::{LEAVING, ROLE, VOTER};
use super::{cluster_labels, owner_reference};

/// The headless Service, which gives each member its DNS name, ready or not: members must find each other to become
/// ready. `etcdctl --discovery-srv` looks for the name of its client port.
pub fn headless_service(cluster: &EtcdCluster) -> Value {
    let name = cluster.name_any();
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(cluster, &name),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": cluster_labels(&name),
            "ports": [
                {"name": "etcd-client", "port": 2379, "targetPort": 2379, "protocol": "TCP"},
                {"name": "etcd-peer", "port": 2380, "targetPort": 2380, "protocol": "TCP"},
            ],
        },
    })
}

/// The Service for clients: ready voters only.
pub fn client_service(cluster: &EtcdCluster) -> Value {
    let name = cluster.name_any();
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(cluster, &format!("{name}-client")),
        "spec": {
            "type": "ClusterIP",
            "selector": voter_labels(&name),
            "ports": [{"name": "etcd-client", "port": 2379, "targetPort": 2379, "protocol": "TCP"}],
        },
    })
}

/// A whole number: a percentage or `maxUnavailable` would be recalculated in the middle of a drain.
pub fn disruption_budget(cluster: &EtcdCluster, voters: usize) -> Value {
    let name = cluster.name_any();
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(cluster, &name),
        "spec": {
            "minAvailable": quorum(voters),
            // Voters only, also those that are being drained: a ready learner does not make up for an unready voter.
            "selector": {
                "matchLabels": cluster_labels(&name),
                "matchExpressions": [{"key": ROLE, "operator": "In", "values": [VOTER, LEAVING]}],
            },
        },
    })
}

fn voter_labels(cluster: &str) -> BTreeMap<String, String> {
    let mut labels = cluster_labels(cluster);
    labels.insert(ROLE.to_owned(), VOTER.to_owned());
    labels
}

fn metadata(cluster: &EtcdCluster, name: &str) -> Value {
    json!({
        "name": name,
        "namespace": cluster.namespace(),
        "labels": cluster_labels(&cluster.name_any()),
        "ownerReferences": [owner_reference(cluster)],
    })
}
