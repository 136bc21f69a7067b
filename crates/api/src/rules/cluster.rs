//! Rules about a cluster as a whole, and about a peer as a whole.

use kube::core::{Reason, Rule};

use super::unchanged;

/// Semantic Versioning 2.0.0, with pre-release and build parts.
const SEMANTIC_VERSION: &str = r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$";

/// What cannot be changed in the spec of a peer: all but the parts of a pod that Kubernetes can change in place.
pub const PEER_STAYS: [&str; 12] = [
    "clusterName",
    "version",
    "storage",
    "image",
    "etcd",
    "bootstrap",
    "podTemplate.affinity",
    "podTemplate.tolerations",
    "podTemplate.nodeSelector",
    "podTemplate.topologySpreadConstraints",
    "podTemplate.priorityClassName",
    "podTemplate.imagePullSecrets",
];

pub fn name_fits_a_service() -> Rule {
    Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message(
            "metadata.name must consist of lower case letters, digits and '-', begin with a letter and end with a \
             letter or digit, because Services are named after the cluster; choose another name, for example my-cluster",
        )
        .field_path(".metadata.name")
}

pub fn name_leaves_room_for_ordinals() -> Rule {
    Rule::new("size(self.metadata.name) <= 50")
        .message(
            "metadata.name must have at most 50 characters, because the names of members and Services are made from \
             it; choose a shorter name",
        )
        .field_path(".metadata.name")
}

pub fn version_is_given() -> Rule {
    Rule::new("has(self.version)")
        .message("spec.version is missing; say which version of etcd to run, for example 3.6.16")
        .field_path(".version")
        .reason(Reason::FieldValueRequired)
}

pub fn version_is_semantic() -> Rule {
    Rule::new(format!("self.matches(r'{SEMANTIC_VERSION}')")).message(
        "spec.version must be a semantic version without a leading v; write it as major.minor.patch, for example 3.6.16",
    )
}

/// Says nothing about what is not a version at all, so that the user reads one sentence and not two.
pub fn version_is_major_three() -> Rule {
    Rule::new(format!("!self.matches(r'{SEMANTIC_VERSION}') || self.startsWith('3.')"))
        .message("spec.version must be a version of etcd 3, the only one supported; choose one such as 3.6.16")
}

/// The client Service of a cluster `c` is `c-client`, which would be the headless one of a cluster of that name.
pub fn name_is_no_client_service() -> Rule {
    Rule::new("!self.metadata.name.endsWith('-client')")
        .message("metadata.name must not end with -client, which the Services for clients do; choose another name")
        .field_path(".metadata.name")
}

/// Far more than anybody runs: a slip of the finger should not start a thousand pods.
pub fn replicas_are_few() -> Rule {
    Rule::new("self <= 99").message(
        "spec.replicas must be at most 99; etcd is at its best with 3 or 5 members, and each further one makes writes slower",
    )
}

pub fn replicas_are_positive() -> Rule {
    Rule::new("self >= 1").message(
        "spec.replicas must be at least 1; to stop a cluster and keep its data, delete the EtcdCluster: its volumes stay \
         if spec.deletionPolicy is KeepVolumes",
    )
}

pub fn affinity_is_given_once() -> Rule {
    Rule::new("!has(self.affinity) || !has(self.podTemplate) || !has(self.podTemplate.affinity)")
        .message(
            "spec.affinity and spec.podTemplate.affinity mean the same and cannot both be set; keep \
             spec.podTemplate.affinity and remove spec.affinity",
        )
        .field_path(".affinity")
        .reason(Reason::FieldValueForbidden)
}

pub fn peer_stays() -> Rule {
    Rule::new(unchanged(PEER_STAYS))
        .message(
            "spec of an EtcdPeer cannot be changed, apart from podTemplate.metadata and podTemplate.resources; change \
             the EtcdCluster that it belongs to instead",
        )
        .reason(Reason::FieldValueForbidden)
}
