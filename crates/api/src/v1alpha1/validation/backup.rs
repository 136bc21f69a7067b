//! Rules about an EtcdBackup.

use kube::core::{Reason, Rule};

use super::object_store::{access_fits, are_given_once, exactly_one};
use super::{DURATION, is_there};
use crate::v1alpha1::url_template::VARIABLES;

const PLACES: [&str; 4] = ["objectURLTemplate", "objectURL", "gcsBucket", "persistentVolumeClaim"];

pub fn backup_stays() -> Rule {
    Rule::new("self.spec == oldSelf.spec")
        .message("spec of an EtcdBackup cannot be changed; make a new EtcdBackup instead, under another name")
        .field_path(".spec")
        .reason(Reason::FieldValueForbidden)
}

/// Of an EtcdBackup or an EtcdRestore.
pub fn name_fits_a_label() -> Rule {
    Rule::new("size(self.metadata.name) <= 63")
        .message(
            "metadata.name must have at most 63 characters, because the pods that do the work are labelled with it; choose \
             a shorter name",
        )
        .field_path(".metadata.name")
}

pub fn backup_has_one_source() -> Rule {
    Rule::new("has(self.clusterName) != has(self.source)").message(
        "spec must have either clusterName, the name of an EtcdCluster in the same namespace, or source.clusterURL, the \
         address of any other etcd cluster; set one of the two",
    )
}

/// What has no name cannot be in the name of something else.
pub fn variables_have_a_meaning() -> Rule {
    let names_cluster = |path: &str| {
        let is_there = is_there("self.destination", path);
        format!(r"({is_there} && self.destination.{path}.matches(r'\{{\{{ *\.ClusterName'))")
    };
    Rule::new(format!(
        "!has(self.source) || has(self.clusterName) || !has(self.destination) || !({} || {})",
        names_cluster("objectURLTemplate"),
        names_cluster("persistentVolumeClaim.path")
    ))
    .message(
        "spec.destination must not have the variable {{ .ClusterName }} with spec.source.clusterURL, which has no such \
         name; use other variables",
    )
    .field_path(".destination")
}

pub fn cluster_url_is_an_address() -> Rule {
    Rule::new("self.matches('^https?://[^/?#,]+/?$')")
        .message("clusterURL must be one address of an etcd cluster; write it like http://my-cluster-client:2379")
}

pub fn destination_is_given() -> Rule {
    Rule::new("has(self.destination)")
        .message(
            "spec.destination is missing; say where the backup goes, for example objectURLTemplate: \
             s3://bucket/{{ .Namespace }}/{{ .Name }}.db",
        )
        .field_path(".destination")
        .reason(Reason::FieldValueRequired)
}

/// Says nothing about `local`, which has a sentence of its own.
pub fn destination_is_one_place() -> Rule {
    Rule::new(format!("has(self.local) || {}", exactly_one(&PLACES))).message(
        "destination must be one place; set one of objectURLTemplate, objectURL, gcsBucket and persistentVolumeClaim",
    )
}

pub fn local_destination_is_gone() -> Rule {
    Rule::new("!has(self.local)")
        .message(
            "destination.local is not supported, because a file in a pod is lost with it; use \
             destination.persistentVolumeClaim with the claimName of a volume, or a bucket",
        )
        .field_path(".local")
        .reason(Reason::FieldValueForbidden)
}

pub fn destination_access_fits() -> Rule {
    access_fits(
        &exactly_one(&PLACES),
        "has(self.objectURLTemplate) ? self.objectURLTemplate : has(self.objectURL) ? self.objectURL \
         : has(self.gcsBucket) ? 'gs://' : ''",
        "gcsBucket",
    )
}

pub fn destination_has_credentials_once() -> Rule {
    are_given_once("gcsBucket")
}

pub fn object_url_template_has_known_variables() -> Rule {
    has_known_variables("objectURLTemplate")
}

pub fn path_has_known_variables() -> Rule {
    has_known_variables("path")
}

fn has_known_variables(field: &str) -> Rule {
    let variables = VARIABLES.join("|");
    let list = VARIABLES.map(|name| format!("{{{{ .{name} }}}}")).join(", ");
    Rule::new(format!(r"self.matches(r'^([^{{}}]|\{{\{{ *\.({variables}) *\}}\}})*$')"))
        .message(format!("{field} must have no braces but those of variables; the variables are {list}").as_str())
}

pub fn object_url_has_no_variables() -> Rule {
    Rule::new("!self.contains('{{')")
        .message("objectURL must not have variables; write a URL with variables into objectURLTemplate instead")
}

pub fn bucket_name_is_a_name() -> Rule {
    Rule::new("self.matches('^[a-z0-9]([-_.a-z0-9]*[a-z0-9])?$')").message(
        "bucketName must be the name of a bucket alone, without gs:// and without a path; write it like my-bucket",
    )
}

pub fn path_stays_in_the_volume() -> Rule {
    Rule::new("self.split('/').all(part, !(part in ['', '.', '..']))").message(
        "path must be that of a file in the volume, without a slash at its beginning or end and without .. in it; write \
         it like backups/my-cluster.db",
    )
}

pub fn recipients_are_public_keys() -> Rule {
    Rule::new("self.all(recipient, recipient.matches('^age1[a-z0-9]+$'))").message(
        "recipients must be public keys of age, which begin with age1; write what age-keygen prints after \
         \"public key\", and keep the private key to yourself",
    )
}

pub fn encrypted_backup_can_be_verified() -> Rule {
    Rule::new("!has(self.encryption) || !has(self.verify) || self.verify != 'Restore' || has(self.decryption)")
        .message(
            "spec.decryption is missing; an encrypted backup can be verified only with a private key, so set \
             spec.decryption.age.identitySecretKeyRef, or spec.verify to None",
        )
        .field_path(".decryption")
        .reason(Reason::FieldValueRequired)
}

pub fn backoff_limit_is_in_range() -> Rule {
    Rule::new("self >= 0 && self <= 10")
        .message("spec.backoffLimit must be between 0, to try once and never again, and 10; the default is 4")
}

pub fn active_deadline_is_a_duration() -> Rule {
    Rule::new(format!("string(self).matches('{DURATION}') && duration(string(self)) >= duration('10s')"))
        .message("spec.activeDeadline must be a duration of at least 10s; write it like 30m or 2h")
}
