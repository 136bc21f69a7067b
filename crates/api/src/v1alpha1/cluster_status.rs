//! The status of an EtcdCluster: what the operator last saw of it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{ClusterId, MemberId};
use crate::schema;

/// What was last seen of the etcd cluster. The operator writes it.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::join_wrapped_lines)]
pub struct EtcdClusterStatus {
    /// The number of EtcdPeer objects of this cluster. It differs from `spec.replicas` while the cluster is created
    /// or scaled.
    #[serde(default)]
    pub replicas: i32,

    /// The number of members that are ready to serve clients.
    #[serde(default)]
    pub ready_replicas: i32,

    /// The number of members that are as the spec asks for and answer. It is lower than `replicas` while a change is
    /// rolled out.
    #[serde(default)]
    pub updated_replicas: i32,

    /// A label selector that matches the pods of this cluster. `kubectl scale` and autoscalers read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,

    /// How the cluster was bootstrapped. Written before its first member is started, and never changed: a cluster that has it
    /// is not bootstrapped again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<BootstrapRecord>,

    /// The earlier name of `bootstrap`. It is read, and moved to `bootstrap` when the status is written next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub birth: Option<BootstrapRecord>,

    /// The ID that etcd gave the cluster, in hexadecimal, for example `cdf818194e3a8c32`.
    #[serde(rename = "clusterID", default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,

    /// The name of the member that leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,

    /// The members as etcd itself lists them. The list stays as it was while etcd cannot be reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberStatus>,

    /// The version of etcd's protocol that all members support, as etcd reports it, for example `3.6.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_version: Option<String>,

    /// The version of etcd that members have or are being brought to, for example `3.6.16`. It follows `spec.version`
    /// once that change has been found possible, so that a refused change reaches no member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_version: Option<String>,

    /// The earliest version of etcd of which entries may be left in the logs of the members, if it is known. etcd 3.7
    /// cannot read what 3.5 wrote there, so before an upgrade to it the members write snapshots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_log_version: Option<String>,

    /// The `metadata.generation` that this status describes. If it is lower than the object's own, the operator has
    /// not yet acted on the latest change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// What is true of the cluster now. `Available` says whether it serves reads and writes, and if not, why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl EtcdClusterStatus {
    /// How the cluster was bootstrapped, also if an earlier operator recorded it.
    pub fn bootstrap(&self) -> Option<&BootstrapRecord> {
        self.bootstrap.as_ref().or(self.birth.as_ref())
    }

    /// The ID of the cluster. `None` if it is not known.
    pub fn cluster_id(&self) -> Option<ClusterId> {
        self.cluster_id.as_deref().and_then(ClusterId::parse)
    }

    /// The member with a name.
    pub fn member(&self, name: &str) -> Option<&MemberStatus> {
        self.members.iter().find(|member| member.name == name)
    }
}

/// How a cluster was bootstrapped.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BootstrapRecord {
    /// A string unique to this bootstrap, from which etcd makes the IDs of the cluster and of its first members.
    pub token: String,

    /// How many initial members the cluster has.
    pub size: i32,
}

/// One member of the cluster.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberStatus {
    /// The name of the member, which is also the name of its EtcdPeer and of its pod.
    pub name: String,

    /// The ID that etcd gave the member, in hexadecimal, for example `8eca1236bfa86a0a`.
    pub id: String,

    /// What the member is to the others: `Leader`, `Voter`, or `Learner`, which only follows until it has caught up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<MemberRole>,

    /// The version of etcd that the member runs, for example `3.6.16`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,

    /// Whether the member answered when it was last asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy: Option<bool>,

    /// Since when the member has not answered. Absent if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unhealthy_since: Option<Time>,

    /// How large the database of the member is, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub db_size: Option<i64>,

    /// How large the volume of the member is, for example `10Gi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_size: Option<String>,
}

impl MemberStatus {
    /// The ID of the member. `None` if it is not one.
    pub fn id(&self) -> Option<MemberId> {
        MemberId::parse(&self.id)
    }
}

/// What a member is to the others.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemberRole {
    Leader,
    Voter,
    Learner,
}
