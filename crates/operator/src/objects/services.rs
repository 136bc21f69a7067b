//! How members and clients find the cluster, and how many members an eviction must leave running.

use std::collections::BTreeMap;

use etcd_operator_api::EtcdCluster;
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use kube::api::ObjectMeta;

use super::annotations::{LEAVING, ROLE, VOTER};
use super::{cluster_labels, owner_reference};

/// The headless Service, which gives each member its DNS name, ready or not: members must find each other to become
/// ready. `etcdctl --discovery-srv` looks for the name of its client port.
pub fn headless_service(cluster: &EtcdCluster) -> Service {
    let name = cluster.name_any();
    let spec = ServiceSpec {
        cluster_ip: Some("None".to_owned()),
        publish_not_ready_addresses: Some(true),
        selector: Some(cluster_labels(&name)),
        ports: Some(vec![port("etcd-client", 2379), port("etcd-peer", 2380)]),
        ..ServiceSpec::default()
    };
    Service { metadata: metadata(cluster, name), spec: Some(spec), status: None }
}

/// The Service for clients: ready voters only.
pub fn client_service(cluster: &EtcdCluster) -> Service {
    let name = cluster.name_any();
    let spec = ServiceSpec {
        type_: Some("ClusterIP".to_owned()),
        selector: Some(voter_labels(&name)),
        ports: Some(vec![port("etcd-client", 2379)]),
        ..ServiceSpec::default()
    };
    Service { metadata: metadata(cluster, format!("{name}-client")), spec: Some(spec), status: None }
}

/// A whole number: a percentage or `maxUnavailable` would be recalculated in the middle of a drain.
pub fn disruption_budget(cluster: &EtcdCluster, min_available: usize) -> PodDisruptionBudget {
    let name = cluster.name_any();
    // Voters only, also those that are being drained: a ready learner does not make up for an unready voter.
    let voters_only = LabelSelectorRequirement {
        key: ROLE.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![VOTER.to_owned(), LEAVING.to_owned()]),
    };
    let spec = PodDisruptionBudgetSpec {
        min_available: Some(IntOrString::Int(i32::try_from(min_available).unwrap_or(i32::MAX))),
        selector: Some(LabelSelector {
            match_labels: Some(cluster_labels(&name)),
            match_expressions: Some(vec![voters_only]),
        }),
        ..PodDisruptionBudgetSpec::default()
    };
    PodDisruptionBudget { metadata: metadata(cluster, name), spec: Some(spec), status: None }
}

fn port(name: &str, port: i32) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port,
        target_port: Some(IntOrString::Int(port)),
        protocol: Some("TCP".to_owned()),
        ..ServicePort::default()
    }
}

fn voter_labels(cluster: &str) -> BTreeMap<String, String> {
    let mut labels = cluster_labels(cluster);
    labels.insert(ROLE.to_owned(), VOTER.to_owned());
    labels
}

fn metadata(cluster: &EtcdCluster, name: String) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: cluster.namespace(),
        labels: Some(cluster_labels(&cluster.name_any())),
        owner_references: Some(vec![owner_reference(cluster)]),
        ..ObjectMeta::default()
    }
}
