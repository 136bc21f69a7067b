//! What users may add to the pods of the members, the same for EtcdCluster and EtcdPeer.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, ResourceRequirements};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::{rules, schema};

/// What to add to the pods of the members: annotations, resource requests and limits, affinity.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodTemplate {
    /// Optional. Annotations for the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<PodMetadata>,

    /// Optional. The resource requests and limits of the etcd container, for example `requests: {cpu: 200m, memory:
    /// 200Mi}`. Without them the limit ranges of the namespace apply. With a CPU limit, etcd uses as many threads as
    /// the limit has whole CPUs, and at least one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::tidy_quantities)]
    #[x_kube(validation = rules::limits_are_quantities(), validation = rules::requests_are_quantities())]
    pub resources: Option<ResourceRequirements>,

    /// Optional. Where the pods may run, relative to nodes and to other pods. To spread the members over nodes, write
    /// a `podAntiAffinity` that selects the label `etcd.improbable.io/cluster-name` with the name of this cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
}

/// Annotations for the pods of the members.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodMetadata {
    /// Optional. Annotations to put on the pods, for example `prometheus.io/scrape: "true"`. Names that begin with
    /// `etcd.improbable.io/` are reserved for the operator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 100))]
    #[x_kube(validation = rules::annotations_are_not_reserved())]
    pub annotations: BTreeMap<String, String>,
}
