//! Rules about `spec.storage`.

use kube::core::{Reason, Rule};

pub fn storage_is_given() -> Rule {
    Rule::new("has(self.storage)")
        .message(
            "spec.storage is missing; describe the volume of each member in spec.storage.volumeClaimTemplate, with its \
             size in resources.requests.storage, or set spec.storage.ephemeral for a test whose data may be lost",
        )
        .field_path(".storage")
        .reason(Reason::FieldValueRequired)
}

pub fn storage_has_a_kind() -> Rule {
    Rule::new("has(self.volumeClaimTemplate) || has(self.ephemeral)")
        .message(
            "spec.storage.volumeClaimTemplate is missing; describe the volume of each member there, with its size in \
             resources.requests.storage, or set spec.storage.ephemeral for a test whose data may be lost",
        )
        .field_path(".volumeClaimTemplate")
        .reason(Reason::FieldValueRequired)
}

pub fn storage_has_one_kind() -> Rule {
    Rule::new("!has(self.volumeClaimTemplate) || !has(self.ephemeral)")
        .message(
            "spec.storage.volumeClaimTemplate and spec.storage.ephemeral cannot both be set; remove \
             spec.storage.ephemeral to keep the data in volumes",
        )
        .field_path(".ephemeral")
        .reason(Reason::FieldValueForbidden)
}

pub fn volumes_are_file_systems() -> Rule {
    Rule::new("!has(self.volumeMode) || self.volumeMode == 'Filesystem'")
        .message("spec.storage.volumeClaimTemplate.volumeMode must be Filesystem, because etcd writes files; remove it")
        .field_path(".volumeMode")
}

pub fn volumes_are_not_shared() -> Rule {
    Rule::new("!has(self.volumeName)")
        .message(
            "spec.storage.volumeClaimTemplate.volumeName cannot be set, because each member needs a volume of its own; \
             remove it",
        )
        .field_path(".volumeName")
        .reason(Reason::FieldValueForbidden)
}

pub fn size_limit_is_a_quantity() -> Rule {
    Rule::new("isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0'))")
        .message("spec.storage.ephemeral.sizeLimit must be a size greater than zero; write it like 1Gi or 500Mi")
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
