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
    fits_a_service("self.metadata.name", "metadata.name").field_path(".metadata.name")
}

pub fn name_leaves_room_for_ordinals() -> Rule {
    leaves_room_for_ordinals("self.metadata.name", "metadata.name").field_path(".metadata.name")
}

pub fn name_is_no_client_service() -> Rule {
    is_no_client_service("self.metadata.name", "metadata.name").field_path(".metadata.name")
}

/// The name of a cluster that is `written` as the field that the sentence names.
pub(super) fn fits_a_service(written: &str, field: &str) -> Rule {
    Rule::new(format!("{written}.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")).message(format!(
        "{field} must consist of lower case letters, digits and '-', begin with a letter and end with a letter or digit, \
         because Services are named after the cluster; choose another name, for example my-cluster"
    ).as_str())
}

pub(super) fn leaves_room_for_ordinals(written: &str, field: &str) -> Rule {
    Rule::new(format!("size({written}) <= 50")).message(format!(
        "{field} must have at most 50 characters, because the names of members and Services are made from it; choose a \
         shorter name"
    ).as_str())
}

/// The client Service of a cluster `c` is `c-client`, which would be the headless one of a cluster of that name.
pub(super) fn is_no_client_service(written: &str, field: &str) -> Rule {
    Rule::new(format!("!{written}.endsWith('-client')")).message(
        format!("{field} must not end with -client, which the Services for clients do; choose another name").as_str(),
    )
}

/// A rule of the EtcdCluster and not of its spec: in the template of an EtcdRestore there need not be a version.
pub fn version_is_given() -> Rule {
    Rule::new("has(self.spec.version)")
        .message("spec.version is missing; say which version of etcd to run, for example 3.6.16")
        .field_path(".spec.version")
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
