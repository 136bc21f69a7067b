//! Metadata stored next to a backup: what it contains, and the sizes and hashes to check it with, without opening it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The manifest of the object `x` is `x.manifest.json`.
pub const SUFFIX: &str = ".manifest.json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    #[serde(flatten)]
    pub origin: Origin,
    /// The ID that etcd gave the cluster, in hexadecimal.
    pub cluster_id: String,
    /// Everything up to this revision is in the backup; what was written while it was taken may be.
    pub revision: i64,
    /// How many keys there were at that revision.
    pub keys: i64,
    /// The version of the member that was asked.
    pub etcd_version: String,
    /// The member that was asked: its client URL.
    pub member: String,
    /// Whether the cluster had a quorum.
    pub with_quorum: bool,
    pub taken_at: Timestamp,
    /// Size and SHA-256 of the snapshot, as etcdutl reads it: the database and the 32 bytes of etcd's own SHA-256.
    pub snapshot_size: u64,
    pub snapshot_sha256: String,
    /// Size and SHA-256 of the object, which may be compressed and encrypted.
    pub object_size: u64,
    pub object_sha256: String,
    /// `zstd`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<String>,
    /// `age`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<String>,
    /// The result of etcd's HashKV at `revision`, if the backup was to be verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_hash: Option<KvHash>,
    /// Whether the backup is to be verified. Then it counts like others only once its proof is stored next to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub to_verify: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KvHash {
    pub hash: u32,
    /// Hashes can be compared only if this is the same.
    pub compact_revision: i64,
}

/// What was backed up for whom, as Kubernetes knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The EtcdBackup, `namespace/name`.
    pub backup: String,
    /// Its UID: another EtcdBackup may get the same name, here later or in another Kubernetes at any time.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The EtcdCluster, `namespace/name`, unless it was named by a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The EtcdBackupSchedule, if it was one: `namespace/name/` and the UID of the namespace, which no other Kubernetes has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
}

impl Origin {
    pub fn is_same_backup(&self, other: &Origin) -> bool {
        self.backup == other.backup && self.uid == other.uid
    }
}
