//! EtcdPeer: one member of an etcd cluster, as the operator asks for it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::etcd::{self, EtcdOptions};
use super::image::{self, Image, PullPolicy};
use super::pod_template::PodTemplate;
use super::restore_from::RestoreFrom;
use super::storage::Storage;
use super::validation;
use crate::ids::{ClusterId, MemberId};
use crate::schema;

/// What the member should be like. It cannot be changed, apart from `podTemplate.metadata` and `podTemplate.resources`,
/// which the operator changes in place when Kubernetes can; for any other change it replaces the EtcdPeer.
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
        name = "Member",
        type_ = "string",
        json_path = ".status.memberID",
        description = "The ID that etcd gave the member"
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
#[x_kube(validation = validation::peer_stays())]
pub struct EtcdPeerSpec {
    /// The name of the EtcdCluster, in the same namespace, that this member belongs to.
    pub cluster_name: String,

    /// The version of etcd that this member runs, for example `3.6.16`.
    pub version: String,

    /// The storage of this member.
    pub storage: Storage,

    /// Optional. Where the container image of etcd comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,

    /// Optional. Options of etcd itself: the size of its database, compaction, timeouts and other flags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdOptions>,

    /// Optional. What to add to the pod of this member: labels, annotations, resources, and where it may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,

    /// Optional. How the member finds the others when it starts for the first time, with an empty volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<Bootstrap>,
}

impl EtcdPeerSpec {
    /// What to add to the pod of this member.
    pub fn pod_template(&self) -> PodTemplate {
        self.pod_template.clone().unwrap_or_default()
    }

    /// The container image of etcd, from the operator's own repository if this says nothing about it.
    pub fn image(&self, default_repository: &str) -> String {
        image::name(self.image.as_ref(), &self.version, default_repository)
    }

    /// When a node pulls the image.
    pub fn pull_policy(&self) -> Option<PullPolicy> {
        self.image.as_ref().and_then(|image| image.pull_policy)
    }

    /// The flags of etcd that were asked for: names without leading dashes, and values.
    pub fn etcd_flags(&self) -> BTreeMap<String, String> {
        self.etcd.as_ref().map(EtcdOptions::flags).unwrap_or_default()
    }

    /// How large the database of the member may become, in bytes.
    pub fn quota(&self) -> i64 {
        etcd::quota(self.etcd.as_ref())
    }

    /// The members that took part in the first start of this one, itself included.
    pub fn initial_cluster(&self) -> &[InitialMember] {
        let members = self.bootstrap.as_ref().and_then(|bootstrap| bootstrap.static_members.as_ref());
        members.map(|members| members.initial_cluster.as_slice()).unwrap_or_default()
    }
}

/// How a member finds the others when it starts for the first time.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bootstrap {
    /// Optional. The members of the cluster at that time, as a fixed list.
    #[serde(rename = "static", default, skip_serializing_if = "Option::is_none")]
    pub static_members: Option<StaticBootstrap>,

    /// Whether the member bootstraps a new cluster together with the others (`New`) or joins one that exists already
    /// (`Existing`).
    pub initial_cluster_state: InitialClusterState,

    /// Optional. The backup that the member begins with. Only the first member of a cluster has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<RestoreFrom>,
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

/// Whether a member bootstraps a new cluster or joins one that exists.
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

    /// The ID that etcd gave the member, in hexadecimal, for example `8eca1236bfa86a0a`.
    #[serde(rename = "memberID", default, skip_serializing_if = "Option::is_none")]
    pub member_id: Option<String>,

    /// The ID of the etcd cluster that the member belongs to, in hexadecimal, for example `cdf818194e3a8c32`.
    #[serde(rename = "clusterID", default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,

    /// Whether the member was ever seen started. From then on its data is expected in its volume: it never starts
    /// with an empty one again.
    #[serde(default)]
    pub started: bool,

    /// The last time that the member was given up for a new one of the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<Replacement>,

    /// The last time that the database of the member was defragmented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_defragmentation: Option<Defragmentation>,
}

/// A defragmentation of a member's database.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Defragmentation {
    /// When it was begun.
    pub time: Time,

    /// The revision up to which history was compacted by then, if that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted_revision: Option<i64>,
}

/// The replacement of a member by a new one of the same name.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replacement {
    /// The ID of the member that was given up, in hexadecimal.
    #[serde(rename = "memberID")]
    pub member_id: String,

    /// When it was given up.
    pub time: Time,

    /// How often members of this name were given up in close succession. Each next one waits twice as long.
    pub count: i32,

    /// Why it was given up.
    pub reason: String,
}

impl EtcdPeerStatus {
    /// The ID of the member. `None` if it is not known.
    pub fn member_id(&self) -> Option<MemberId> {
        self.member_id.as_deref().and_then(MemberId::parse)
    }

    /// The ID of the cluster. `None` if it is not known.
    pub fn cluster_id(&self) -> Option<ClusterId> {
        self.cluster_id.as_deref().and_then(ClusterId::parse)
    }
}
