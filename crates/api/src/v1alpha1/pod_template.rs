//! What users may add to the pods of the members, the same for EtcdCluster and EtcdPeer.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, LocalObjectReference, ResourceRequirements, Toleration, TopologySpreadConstraint,
};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::validation;
use crate::schema;

/// What to add to the pods of the members: labels, annotations, resources, and where they may run.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodTemplate {
    /// Optional. Labels and annotations for the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<PodMetadata>,

    /// Optional. The resource requests and limits of the etcd container, for example `requests: {cpu: 200m, memory:
    /// 200Mi}`. Without them the limit ranges of the namespace apply. With a CPU limit, etcd uses as many threads as
    /// the limit has whole CPUs, and at least one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::tidy_quantities)]
    #[x_kube(validation = validation::limits_are_quantities(), validation = validation::requests_are_quantities())]
    pub resources: Option<ResourceRequirements>,

    /// Optional. Where the pods may run, relative to nodes and to other pods. To spread the members over nodes, write
    /// a `podAntiAffinity` that selects the label `etcd.improbable.io/cluster-name` with the name of this cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,

    /// Optional. The taints of nodes that do not keep the pods away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,

    /// Optional. The labels that a node must have for the pods to run on it, for example `disk: fast`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,

    /// Optional. How evenly to spread the pods over zones or nodes. Select the label
    /// `etcd.improbable.io/cluster-name` with the name of this cluster in the `labelSelector`: a constraint without
    /// one counts no pods and spreads nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,

    /// Optional. The name of the PriorityClass of the pods. With a high one they are scheduled first and evicted last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,

    /// Optional. The names of Secrets, in the same namespace, with which nodes may pull the images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
}

impl PodTemplate {
    /// The labels to add to the pods.
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.metadata.as_ref().map(|metadata| metadata.labels.clone()).unwrap_or_default()
    }

    /// The annotations to add to the pods.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        self.metadata.as_ref().map(|metadata| metadata.annotations.clone()).unwrap_or_default()
    }
}

/// Labels and annotations for the pods of the members.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodMetadata {
    /// Optional. Labels to put on the pods, for example `team: storage`. `app.kubernetes.io/name` and names that begin
    /// with `etcd.improbable.io/` are reserved for the operator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = schema::bound_labels)]
    #[x_kube(validation = validation::labels_are_not_reserved(), validation = validation::labels_are_well_formed())]
    pub labels: BTreeMap<String, String>,

    /// Optional. Annotations to put on the pods, for example `prometheus.io/scrape: "true"`. Names that begin with
    /// `etcd.improbable.io/` are reserved for the operator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 100))]
    #[x_kube(validation = validation::annotations_are_not_reserved())]
    pub annotations: BTreeMap<String, String>,
}
