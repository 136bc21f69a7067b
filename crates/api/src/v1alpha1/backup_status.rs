//! What the operator reports about an EtcdBackup.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// Not the type itself: KubeSchema brings another of that name into scope.
use super::reasons;
use super::retention::RetentionResult;
use crate::schema;

/// The observed state of the backup. The operator writes it.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::join_wrapped_lines)]
pub struct EtcdBackupStatus {
    /// How far the backup has come: `Pending`, `Running`, `Verifying`, and in the end `Completed` or `Failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<BackupPhase>,

    /// When the work began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,

    /// When the work ended, successfully or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,

    /// Where the backup is or will be. What is stored there is complete once `phase` is `Verifying` or `Completed`.
    #[serde(rename = "objectURL", default, skip_serializing_if = "Option::is_none")]
    pub object_url: Option<String>,

    /// Everything up to this revision of etcd is in the backup; what was written while it was taken may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,

    /// How many keys there were at that revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<i64>,

    /// The version of etcd that the data is from, for example `3.6.16`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd_version: Option<String>,

    /// The ID that etcd gave the cluster, in hexadecimal, for example `cdf818194e3a8c32`.
    #[serde(rename = "clusterID", default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,

    /// The member that the data is from: its name or its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,

    /// Whether the cluster had a quorum. Without one, the member that was asked may not have known the latest writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_quorum: Option<bool>,

    /// The size of the backup as etcd's own tools read it, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_size: Option<i64>,

    /// The size of what was stored, in bytes. It may be compressed and encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_size: Option<i64>,

    /// The SHA-256 of the backup as etcd's own tools read it, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,

    /// How often it was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i32>,

    /// Why the backup is where it is, in one word, for example `AccessDenied`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<reasons::Reason>,

    /// Human-readable details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// What retention did with earlier backups of the same schedule once this one was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<RetentionResult>,

    /// Whether the backup was restored for a test and was complete. Absent if that was not asked for or is not yet known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,

    /// The `metadata.generation` that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// What is true of the backup now. `Complete` says whether it is stored and complete, `Failed` that it never will be,
    /// `Verified` whether it was restored for a test, `QuorumLost` that it was taken from a cluster without a quorum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl EtcdBackupStatus {
    /// Whether the work has ended, successfully or not.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Some(BackupPhase::Completed | BackupPhase::Failed))
    }
}

/// How far a backup has come.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackupPhase {
    #[default]
    Pending,
    Running,
    Verifying,
    Completed,
    Failed,
}
