//! EtcdBackup: one backup of an etcd cluster. What the operator reports about it is in `backup_status`.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::backup_status::EtcdBackupStatus;
use super::destination::Destination;
use super::encryption::{Decryption, Encryption};
use super::job_pod::JobPodTemplate;
use super::validation;
use crate::{duration, schema};

const ACTIVE_DEADLINE: Duration = Duration::from_secs(60 * 60);

/// What is backed up, and where to. It cannot be changed: make another EtcdBackup instead.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "etcd.improbable.io",
    version = "v1alpha1",
    kind = "EtcdBackup",
    plural = "etcdbackups",
    singular = "etcdbackup",
    shortname = "eb",
    category = "etcd",
    namespaced,
    doc = "One backup of an etcd cluster. Deleting this object stops the backup if it runs; what was stored stays.",
    derive = "PartialEq",
    status = "EtcdBackupStatus",
    validation = validation::backup_stays(),
    validation = validation::name_fits_a_label(),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "How far the backup has come"
    ),
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = ".spec.clusterName",
        description = "The EtcdCluster that is backed up"
    ),
    printcolumn(
        name = "Revision",
        type_ = "integer",
        json_path = ".status.revision",
        description = "Everything up to this revision of etcd is in the backup"
    ),
    printcolumn(
        name = "Size",
        type_ = "integer",
        json_path = ".status.objectSize",
        description = "The size of what was stored, in bytes"
    ),
    printcolumn(
        name = "URL",
        type_ = "string",
        priority = 1,
        json_path = ".status.objectURL",
        description = "Where the backup is"
    ),
    printcolumn(
        name = "Verified",
        type_ = "boolean",
        priority = 1,
        json_path = ".status.verified",
        description = "Whether the backup was restored for a test, and was complete"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        priority = 1,
        json_path = ".status.message",
        description = "Human-readable details"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "When the backup was asked for"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::join_wrapped_lines)]
#[schemars(transform = schema::leave_required_to_rules)]
#[x_kube(
    validation = validation::backup_has_one_source(),
    validation = validation::destination_is_given(),
    validation = validation::variables_have_a_meaning(),
    validation = validation::encrypted_backup_can_be_verified()
)]
pub struct EtcdBackupSpec {
    /// The name of the EtcdCluster, in the same namespace, that is backed up. Set either this or `source`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub cluster_name: Option<String>,

    /// An etcd cluster that is not an EtcdCluster of this namespace, given by its address. Set either this or
    /// `clusterName`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<BackupSource>,

    /// Required. Where the backup goes: `objectURLTemplate`, `objectURL`, `gcsBucket` or `persistentVolumeClaim`.
    #[serde(default)]
    #[schemars(transform = schema::no_default)]
    pub destination: Destination,

    /// Optional. `None`, the default, stores the backup as etcd's own tools read it. `Zstd` compresses it.
    #[serde(default)]
    pub compression: Compression,

    /// Optional. Encrypts the backup, so that only the owners of private keys can read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<Encryption>,

    /// Optional. `None`, the default, checks the hash that etcd adds to a backup. `Restore` also fetches what was stored,
    /// starts an etcd with it and compares its data with that of the cluster.
    #[serde(default)]
    pub verify: Verify,

    /// Optional. How an encrypted backup is read when it is verified. Without `verify: Restore` it is not needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decryption: Option<Decryption>,

    /// Optional. How often a backup that failed is tried again. What cannot succeed, for example because the bucket does
    /// not exist, is not tried again.
    #[serde(default = "default_backoff_limit")]
    #[x_kube(validation = validation::backoff_limit_is_in_range())]
    pub backoff_limit: i32,

    /// Optional. How long the backup may take with all its tries, for example `30m`. The default is `1h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::bound_duration)]
    #[x_kube(validation = validation::active_deadline_is_a_duration())]
    pub active_deadline: Option<IntOrString>,

    /// Optional. What to add to the pods that do the work: labels, annotations, resources, and where they may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<JobPodTemplate>,
}

impl Default for EtcdBackupSpec {
    fn default() -> Self {
        EtcdBackupSpec {
            cluster_name: None,
            source: None,
            destination: Destination::default(),
            compression: Compression::default(),
            encryption: None,
            verify: Verify::default(),
            decryption: None,
            backoff_limit: default_backoff_limit(),
            active_deadline: None,
            pod_template: None,
        }
    }
}

impl EtcdBackupSpec {
    /// How long the backup may take with all its tries.
    pub fn active_deadline(&self) -> Duration {
        self.active_deadline.as_ref().and_then(duration::parse).unwrap_or(ACTIVE_DEADLINE)
    }

    /// The public keys of those who may read the backup. None if it is not encrypted.
    pub fn recipients(&self) -> &[String] {
        self.encryption.as_ref().map(|encryption| encryption.age.recipients.as_slice()).unwrap_or_default()
    }

    /// What to add to the pods that do the work.
    pub fn pod_template(&self) -> JobPodTemplate {
        self.pod_template.clone().unwrap_or_default()
    }
}

fn default_backoff_limit() -> i32 {
    4
}

/// An etcd cluster, given by its address.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupSource {
    /// Required. The address at which the cluster serves clients, for example `http://my-cluster-client:2379`.
    #[serde(rename = "clusterURL")]
    #[schemars(length(max = 512))]
    #[x_kube(validation = validation::cluster_url_is_an_address())]
    pub cluster_url: String,
}

/// How a backup is compressed.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Compression {
    #[default]
    None,
    Zstd,
}

/// How a backup is verified, apart from its hash.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verify {
    #[default]
    None,
    Restore,
}
