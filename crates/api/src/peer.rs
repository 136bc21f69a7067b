//! EtcdPeer: one member of an etcd cluster, as the operator asks for it.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pod_template::PodTemplate;
use crate::storage::Storage;
use crate::{rules, schema};

/// What the member should be like. It cannot be changed; the operator replaces the EtcdPeer instead.
#[expect(clippy::duplicated_attributes, reason = "several printed columns have the same type")]
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "etcd.improbable.io",
    version = "v1alpha1",
    kind = "EtcdPeer",
    plural = "etcdpeers",
    singular = "etcdpeer",
    shortname = "ecp",
    category = "etcd",
    namespaced,
    doc = "One member of an etcd cluster. The operator creates and deletes these; change the EtcdCluster instead.",
    derive = "PartialEq",
    status = "EtcdPeerStatus",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = ".spec.clusterName",
        description = "The EtcdCluster that the member belongs to"
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".spec.version",
        description = "The version of etcd that was asked for"
    ),
    printcolumn(
        name = "Server-Version",
        type_ = "string",
        json_path = ".status.serverVersion",
        description = "The version of etcd that runs"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "When the member was created"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::join_wrapped_lines)]
#[x_kube(validation = rules::peer_stays())]
pub struct EtcdPeerSpec {
    /// The name of the EtcdCluster, in the same namespace, that this member belongs to.
    pub cluster_name: String,

    /// The version of etcd that this member runs, for example `3.6.16`.
    pub version: String,

    /// The storage of this member.
    pub storage: Storage,

    /// Optional. What to add to the pod of this member: annotations, resource requests and limits, affinity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,

    /// Optional. How the member finds the others when it starts for the first time, with an empty volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<Bootstrap>,
}

/// How a member finds the others when it starts for the first time.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bootstrap {
    /// Optional. The members of the cluster at that time, as a fixed list.
    #[serde(rename = "static", default, skip_serializing_if = "Option::is_none")]
    pub static_members: Option<StaticBootstrap>,

    /// Whether the member founds a new cluster together with the others (`New`) or joins one that exists already
    /// (`Existing`).
    pub initial_cluster_state: InitialClusterState,
}

/// The members of the cluster, as a fixed list.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StaticBootstrap {
    /// The members of the cluster, this one included.
    pub initial_cluster: Vec<InitialMember>,
}

/// A member that takes part in the first start.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InitialMember {
    /// The name of the member, for example `my-cluster-0`.
    pub name: String,

    /// The DNS name at which the others reach the member, for example `my-cluster-0.my-cluster.my-namespace.svc`.
    pub host: String,
}

/// Whether a member founds a new cluster or joins one that exists.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InitialClusterState {
    New,
    Existing,
}

/// What was last seen of the member. The operator writes it.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::join_wrapped_lines)]
pub struct EtcdPeerStatus {
    /// The version of etcd that the member reports it is running, for example `3.6.16`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_version: Option<String>,
}
