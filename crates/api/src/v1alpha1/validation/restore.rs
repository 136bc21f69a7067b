//! Rules about an EtcdRestore, and about an EtcdCluster that begins with a backup.

use kube::core::{Reason, Rule};

use super::cluster::{fits_a_service, is_no_client_service, leaves_room_for_ordinals};
use super::is_there;
use super::object_store::{access_fits, are_given_once, exactly_one};

const RESTORE: &str = "bootstrap.restore";
const URL: &str = "has(self.objectURL) ? self.objectURL : has(self.bucket) ? self.bucket.bucketURL : ''";
const CLUSTER_NAME: &str = "spec.clusterTemplate.clusterName";
const PLACES: [&str; 3] = ["objectURL", "bucket", "persistentVolumeClaim"];
const BACKUPS: [&str; 4] = ["objectURL", "bucket", "persistentVolumeClaim", "backupName"];

pub fn restore_stays() -> Rule {
    Rule::new("self.spec == oldSelf.spec")
        .message(
            "spec of an EtcdRestore cannot be changed; make a new EtcdRestore instead, for a cluster of another name",
        )
        .field_path(".spec")
        .reason(Reason::FieldValueForbidden)
}

/// A cluster is bootstrapped once. What it was bootstrapped with may be forgotten afterwards, but not be something else.
pub fn bootstrap_is_not_made_up_later() -> Rule {
    Rule::new(format!(
        "!({}) || ({} && self.{RESTORE} == oldSelf.{RESTORE})",
        is_there("self", RESTORE),
        is_there("oldSelf", RESTORE)
    ))
    .message(
        "spec.bootstrap.restore can be removed but neither added nor changed after the cluster has been created, because \
         its data is there by then; make a new cluster with an EtcdRestore instead",
    )
    .field_path(".bootstrap")
    .reason(Reason::FieldValueForbidden)
}

pub fn restore_is_from_one_place() -> Rule {
    Rule::new(exactly_one(&PLACES)).message(
        "spec.bootstrap.restore must be one backup; set one of objectURL, bucket and persistentVolumeClaim, or make the \
         cluster with an EtcdRestore",
    )
}

pub fn restore_access_fits() -> Rule {
    access_fits(&exactly_one(&PLACES), URL, "bucket")
}

pub fn restore_has_credentials_once() -> Rule {
    are_given_once("bucket")
}

pub fn sha256_is_one() -> Rule {
    Rule::new("self.matches('^[0-9a-f]{64}$')")
        .message("sha256 must have 64 hexadecimal digits in lower case, as sha256sum prints them; correct or remove it")
}

pub fn source_is_given() -> Rule {
    Rule::new("has(self.source)")
        .message(
            "spec.source is missing; say which backup to restore, for example objectURL: s3://bucket/my-cluster.db",
        )
        .field_path(".source")
        .reason(Reason::FieldValueRequired)
}

pub fn source_is_one_backup() -> Rule {
    Rule::new(exactly_one(&BACKUPS))
        .message("spec.source must be one backup; set one of objectURL, bucket, persistentVolumeClaim and backupName")
}

pub fn source_access_fits() -> Rule {
    access_fits(&format!("!has(self.backupName) && {}", exactly_one(&PLACES)), URL, "bucket")
}

pub fn backup_brings_its_access() -> Rule {
    Rule::new(
        "!has(self.backupName) || !(has(self.credentials) || has(self.s3) || has(self.azure) || has(self.googleCloud))",
    )
    .message(
        "spec.source.backupName goes without credentials, s3, azure and googleCloud, which are those of the EtcdBackup; \
         remove them, or write the URL of the backup into spec.source.objectURL",
    )
    .field_path(".backupName")
    .reason(Reason::FieldValueForbidden)
}

pub fn cluster_template_is_given() -> Rule {
    Rule::new("has(self.clusterTemplate)")
        .message("spec.clusterTemplate is missing; say which cluster to make, with clusterName and spec")
        .field_path(".clusterTemplate")
        .reason(Reason::FieldValueRequired)
}

pub fn restored_cluster_has_a_name() -> Rule {
    Rule::new("has(self.clusterName)")
        .message("spec.clusterTemplate.clusterName is missing; say what the new EtcdCluster is called, for example my-cluster")
        .field_path(".clusterName")
        .reason(Reason::FieldValueRequired)
}

pub fn restored_cluster_has_a_spec() -> Rule {
    Rule::new("has(self.spec)")
        .message(
            "spec.clusterTemplate.spec is missing; describe the new cluster there as in an EtcdCluster, with storage at \
             least",
        )
        .field_path(".spec")
        .reason(Reason::FieldValueRequired)
}

pub fn restored_cluster_has_no_bootstrap() -> Rule {
    Rule::new("!has(self.spec) || !has(self.spec.bootstrap)")
        .message(
            "spec.clusterTemplate.spec.bootstrap cannot be set, because the operator sets it; say in spec.source which \
             backup to restore",
        )
        .field_path(".spec.bootstrap")
        .reason(Reason::FieldValueForbidden)
}

pub fn cluster_name_fits_a_service() -> Rule {
    fits_a_service("self", CLUSTER_NAME)
}

pub fn cluster_name_leaves_room_for_ordinals() -> Rule {
    leaves_room_for_ordinals("self", CLUSTER_NAME)
}

pub fn cluster_name_is_no_client_service() -> Rule {
    is_no_client_service("self", CLUSTER_NAME)
}
