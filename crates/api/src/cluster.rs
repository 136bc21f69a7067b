//! EtcdCluster: an etcd cluster as its user asks for it.

use k8s_openapi::api::core::v1::Affinity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pod_template::PodTemplate;
use crate::storage::Storage;
use crate::{rules, schema};

/// What the etcd cluster should be like.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "etcd.improbable.io",
    version = "v1alpha1",
    kind = "EtcdCluster",
    plural = "etcdclusters",
    singular = "etcdcluster",
    shortname = "ec",
    category = "etcd",
    namespaced,
    doc = "An etcd cluster. The operator runs its members as pods in the namespace of this object.",
    derive = "PartialEq",
    status = "EtcdClusterStatus",
    validation = rules::name_fits_a_service(),
    validation = rules::name_leaves_room_for_ordinals(),
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.labelSelector"
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "How many members are ready to serve"
    ),
    printcolumn(
        name = "Desired",
        type_ = "integer",
        json_path = ".spec.replicas",
        description = "How many members were asked for"
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".spec.version",
        description = "The version of etcd that was asked for"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].status"#,
        description = "Whether the cluster serves reads and writes"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        priority = 1,
        json_path = r#".status.conditions[?(@.type=="Available")].reason"#,
        description = "Why the cluster is or is not available"
    ),
    printcolumn(
        name = "Cluster-Version",
        type_ = "string",
        priority = 1,
        json_path = ".status.clusterVersion",
        description = "The version of etcd that all members support"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "When the cluster was created"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::join_wrapped_lines)]
#[schemars(transform = schema::leave_required_to_rules)]
#[x_kube(
    validation = rules::version_is_given(),
    validation = rules::storage_is_given(),
    validation = rules::affinity_is_given_once()
)]
pub struct EtcdClusterSpec {
    /// How many members the cluster has. The default is 3, which survives the loss of one member; 5 survives two.
    /// Choose an odd number: an even one is slower and survives no more. Use 1 only for tests. Change it at any time,
    /// here or with `kubectl scale`; members are added and removed one by one and the data is kept.
    #[serde(default = "default_replicas")]
    #[x_kube(validation = rules::replicas_are_positive())]
    pub replicas: i32,

    /// Required. The version of etcd to run, for example `3.6.16`: a semantic version of major version 3, without a
    /// leading `v`, for which there is an official etcd image. Raise it to upgrade the cluster, one minor version at
    /// a time.
    #[schemars(length(max = 64))]
    #[x_kube(validation = rules::version_is_semantic(), validation = rules::version_is_major_three())]
    pub version: String,

    /// Required. The storage of each member. It cannot be changed after the cluster has been created.
    #[x_kube(validation = rules::storage_stays())]
    pub storage: Storage,

    /// Optional. What to add to the pods of the members: annotations, resource requests and limits, affinity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,

    /// Optional. The same as `podTemplate.affinity`, in another place. Set one of the two, not both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
}

impl EtcdClusterSpec {
    /// The affinity of the members' pods, from whichever of its two places it was written in.
    pub fn affinity(&self) -> Option<&Affinity> {
        let in_pod_template = self.pod_template.as_ref().and_then(|template| template.affinity.as_ref());
        in_pod_template.or(self.affinity.as_ref())
    }
}

fn default_replicas() -> i32 {
    3
}

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

    /// A label selector that matches the pods of this cluster. `kubectl scale` and autoscalers read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,

    /// The members as etcd itself lists them. The list stays as it was while etcd cannot be reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,

    /// The version of etcd's protocol that all members support, as etcd reports it, for example `3.6.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_version: Option<String>,

    /// The `metadata.generation` that this status describes. If it is lower than the object's own, the operator has
    /// not yet acted on the latest change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// What is true of the cluster now. `Available` says whether it serves reads and writes, and if not, why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// One member of the cluster.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// The name of the member, which is also the name of its EtcdPeer and of its pod.
    pub name: String,

    /// The ID that etcd gave the member, in hexadecimal, for example `8eca1236bfa86a0a`.
    pub id: String,
}
