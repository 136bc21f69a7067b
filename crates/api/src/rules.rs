//! The rules that the API server checks before it stores an object, each with the sentence a user reads when it is broken.
//!
//! They are written in CEL. A rule about a field that may be absent belongs to the object that holds the field.

use kube::core::{Reason, Rule};

use crate::labels::RESERVED_PREFIX;

/// Semantic Versioning 2.0.0, with pre-release and build parts.
const SEMANTIC_VERSION: &str = r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$";

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

pub fn replicas_are_positive() -> Rule {
    Rule::new("self >= 1").message(
        "spec.replicas must be at least 1; to stop a cluster and keep its data, delete the EtcdCluster: its volumes stay",
    )
}

pub fn storage_is_given() -> Rule {
    Rule::new("has(self.storage)")
        .message(
            "spec.storage is missing; describe the volume of each member in spec.storage.volumeClaimTemplate, with its \
             size in resources.requests.storage",
        )
        .field_path(".storage")
        .reason(Reason::FieldValueRequired)
}

pub fn volume_claim_template_is_given() -> Rule {
    Rule::new("has(self.volumeClaimTemplate)")
        .message(
            "spec.storage.volumeClaimTemplate is missing; describe the volume of each member there, with its size in \
             resources.requests.storage",
        )
        .field_path(".volumeClaimTemplate")
        .reason(Reason::FieldValueRequired)
}

pub fn storage_size_is_given() -> Rule {
    Rule::new("has(self.resources) && has(self.resources.requests) && 'storage' in self.resources.requests")
        .message(
            "spec.storage.volumeClaimTemplate.resources.requests.storage is missing; say how large the volume of each \
             member should be, for example 10Gi",
        )
        .field_path(".resources")
        .reason(Reason::FieldValueRequired)
}

pub fn storage_size_is_a_quantity() -> Rule {
    Rule::new(
        "!has(self.resources) || !has(self.resources.requests) || !('storage' in self.resources.requests) \
         || (isQuantity(string(self.resources.requests['storage'])) \
         && quantity(string(self.resources.requests['storage'])).isGreaterThan(quantity('0')))",
    )
    .message(
        "spec.storage.volumeClaimTemplate.resources.requests.storage must be a size greater than zero; write it like \
         10Gi or 500Mi",
    )
    .field_path(".resources.requests")
}

pub fn storage_stays() -> Rule {
    Rule::new("self == oldSelf")
        .message(
            "spec.storage cannot be changed after the cluster has been created; set its size, storage class and other \
             properties back to what they were, or create another cluster with the storage that you want",
        )
        .reason(Reason::FieldValueForbidden)
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

pub fn annotations_are_not_reserved() -> Rule {
    Rule::new(format!("self.all(name, !name.startsWith('{RESERVED_PREFIX}'))"))
        .message(
            "spec.podTemplate.metadata.annotations must not have names that begin with etcd.improbable.io/, which are \
             reserved for the operator; remove or rename them",
        )
        .reason(Reason::FieldValueForbidden)
}

pub fn limits_are_quantities() -> Rule {
    Rule::new("!has(self.limits) || self.limits.all(name, isQuantity(string(self.limits[name])))")
        .message("spec.podTemplate.resources.limits must be amounts; write them like cpu: 500m and memory: 2Gi")
        .field_path(".limits")
}

pub fn requests_are_quantities() -> Rule {
    Rule::new("!has(self.requests) || self.requests.all(name, isQuantity(string(self.requests[name])))")
        .message("spec.podTemplate.resources.requests must be amounts; write them like cpu: 500m and memory: 2Gi")
        .field_path(".requests")
}

pub fn peer_stays() -> Rule {
    Rule::new("self == oldSelf")
        .message("spec of an EtcdPeer cannot be changed; change the EtcdCluster that it belongs to instead")
        .reason(Reason::FieldValueForbidden)
}
