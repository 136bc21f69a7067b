//! What users may add to the pods that take and verify backups.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, LocalObjectReference, ResourceRequirements, Toleration};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::pod_template::PodMetadata;
use super::validation;
use crate::schema;

/// What to add to the pods that do the work: labels, annotations, resources, and where they may run.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobPodTemplate {
    /// Optional. Labels and annotations for the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<PodMetadata>,

    /// Optional. The resource requests and limits of the container that does the work, instead of the operator's own: a
    /// memory limit of `64Mi`, which is enough for a database of any size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::tidy_quantities)]
    #[x_kube(validation = validation::limits_are_quantities(), validation = validation::requests_are_quantities())]
    pub resources: Option<ResourceRequirements>,

    /// Optional. Where the pods may run, relative to nodes and to other pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,

    /// Optional. The taints of nodes that do not keep the pods away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,

    /// Optional. The labels that a node must have for the pods to run on it, for example `disk: fast`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,

    /// Optional. The name of the PriorityClass of the pods. With a low one they give way to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,

    /// Optional. The names of Secrets, in the same namespace, with which nodes may pull the images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
}

impl JobPodTemplate {
    /// The labels to add to the pods.
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.metadata.as_ref().map(|metadata| metadata.labels.clone()).unwrap_or_default()
    }

    /// The annotations to add to the pods.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        self.metadata.as_ref().map(|metadata| metadata.annotations.clone()).unwrap_or_default()
    }
}
