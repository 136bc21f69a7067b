//! Rules about `spec.storage`.

use kube::core::{Reason, Rule};

use super::{is_there, unchanged};

/// Whether members may be replaced for the sake of other volumes.
const MIGRATES: &str = "(has(self.migrate) && self.migrate)";

/// What is requested of the volume of a member: its size above all.
const REQUESTS: &str = "volumeClaimTemplate.resources.requests";

/// What volumes cannot follow. What is requested of them is apart, and `volumeName` is never set.
pub const VOLUMES_STAY: [&str; 8] = [
    "volumeClaimTemplate.accessModes",
    "volumeClaimTemplate.dataSource",
    "volumeClaimTemplate.dataSourceRef",
    "volumeClaimTemplate.selector",
    "volumeClaimTemplate.storageClassName",
    "volumeClaimTemplate.volumeAttributesClassName",
    "volumeClaimTemplate.volumeMode",
    "volumeClaimTemplate.resources.limits",
];

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
    Rule::new(is_size("self"))
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
    Rule::new(format!(
        "!has(self.resources) || !has(self.resources.requests) || !('storage' in self.resources.requests) || ({})",
        is_size("self.resources.requests['storage']")
    ))
    .message(
        "spec.storage.volumeClaimTemplate.resources.requests.storage must be a size greater than zero; write it like \
         10Gi or 500Mi",
    )
    .field_path(".resources.requests")
}

/// Says nothing about both kinds or none, which have sentences of their own.
pub fn storage_keeps_its_kind() -> Rule {
    Rule::new(
        "has(self.volumeClaimTemplate) == has(self.ephemeral) \
         || has(self.volumeClaimTemplate) == has(oldSelf.volumeClaimTemplate)",
    )
    .message(
        "spec.storage cannot be changed from volumeClaimTemplate to ephemeral or back after the cluster has been \
         created; set it back to what it was, or create another cluster with the storage that you want",
    )
    .reason(Reason::FieldValueForbidden)
}

pub fn ephemeral_storage_stays() -> Rule {
    Rule::new("!has(self.ephemeral) || !has(oldSelf.ephemeral) || self.ephemeral == oldSelf.ephemeral")
        .message(
            "spec.storage.ephemeral cannot be changed after the cluster has been created; set it back to what it was, \
             or create another cluster with the storage that you want",
        )
        .field_path(".ephemeral")
        .reason(Reason::FieldValueForbidden)
}

/// Says nothing about what is no size. Sizes are compared by what they mean: 1024Mi is not less than 1Gi.
pub fn volumes_do_not_shrink() -> Rule {
    let [new, old] = ["self", "oldSelf"].map(|holder| format!("{holder}.{REQUESTS}['storage']"));
    let has_size = |holder: &str, size: &str| {
        format!("{} && 'storage' in {holder}.{REQUESTS} && {}", is_there(holder, REQUESTS), is_size(size))
    };
    Rule::new(format!(
        "{MIGRATES} || !({}) || !({}) || quantity(string({new})).compareTo(quantity(string({old}))) >= 0",
        has_size("self", &new),
        has_size("oldSelf", &old)
    ))
    .message(
        "spec.storage.volumeClaimTemplate.resources.requests.storage can grow but not shrink, because volumes cannot; \
         set it back to what it was, or set spec.storage.migrate to true as well, which replaces the members one by \
         one, each by a new one on a smaller volume",
    )
    .field_path(".volumeClaimTemplate.resources.requests")
    .reason(Reason::FieldValueForbidden)
}

/// Says nothing about the size, nor about a template that other rules refuse.
pub fn volumes_stay() -> Rule {
    let [new, old] = ["self", "oldSelf"].map(|holder| format!("{holder}.{REQUESTS}"));
    Rule::new(format!(
        "{MIGRATES} || !({}) || !({}) \
         || (has(self.volumeClaimTemplate.volumeMode) && self.volumeClaimTemplate.volumeMode != 'Filesystem') \
         || ({} && {new}.all(name, name == 'storage' || (name in {old} && {new}[name] == {old}[name])) \
         && {old}.all(name, name == 'storage' || name in {new}))",
        is_there("self", REQUESTS),
        is_there("oldSelf", REQUESTS),
        unchanged(VOLUMES_STAY)
    ))
    .message(
        "spec.storage.volumeClaimTemplate cannot be changed apart from its size, because volumes cannot follow; set it \
         back to what it was, or set spec.storage.migrate to true as well, which replaces the members one by one, each \
         by a new one on a new volume",
    )
    .field_path(".volumeClaimTemplate")
    .reason(Reason::FieldValueForbidden)
}

/// Says nothing about less than one member, which has a sentence of its own.
pub fn migration_has_enough_members() -> Rule {
    Rule::new(
        "!has(self.storage) || !has(self.storage.migrate) || !self.storage.migrate || self.replicas < 1 \
         || self.replicas >= 3",
    )
    .message(
        "spec.storage.migrate needs at least 3 members, because with fewer the data has no second place while a member \
         is replaced; set spec.replicas to 3 or more, or remove spec.storage.migrate",
    )
    .field_path(".storage.migrate")
    .reason(Reason::FieldValueForbidden)
}

/// The condition that a number or a text is a size, and not nothing.
fn is_size(value: &str) -> String {
    format!("isQuantity(string({value})) && quantity(string({value})).isGreaterThan(quantity('0'))")
}
