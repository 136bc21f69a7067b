//! The container image of etcd, the same for EtcdCluster and EtcdPeer.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::validation;

/// Where the container image of etcd comes from.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Optional. The repository of the image, without a tag, for example `registry.example.com/mirror/etcd`. The tag
    /// is `v` and the version, so 3.6.16 in this repository is `registry.example.com/mirror/etcd:v3.6.16`. Without
    /// it the repository that the operator was started with serves, which is `quay.io/coreos/etcd` unless changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    #[x_kube(validation = validation::repository_has_no_tag(), validation = validation::repository_is_well_formed())]
    pub repository: Option<String>,

    /// Optional. When a node pulls the image: `Always`, `IfNotPresent` or `Never`. Without it Kubernetes chooses
    /// `IfNotPresent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_policy: Option<PullPolicy>,
}

/// When a node pulls an image.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PullPolicy {
    Always,
    IfNotPresent,
    Never,
}

impl PullPolicy {
    /// As a container's `imagePullPolicy` has it.
    pub fn as_str(self) -> &'static str {
        match self {
            PullPolicy::Always => "Always",
            PullPolicy::IfNotPresent => "IfNotPresent",
            PullPolicy::Never => "Never",
        }
    }
}

/// The image to run: what a user said about it, and the operator's repository if that says nothing.
pub fn name(image: Option<&Image>, version: &str, default_repository: &str) -> String {
    let repository = image.and_then(|image| image.repository.as_deref()).unwrap_or(default_repository);
    // A tag cannot have the plus that begins the build part of a version.
    format!("{repository}:v{}", version.replace('+', "-"))
}
