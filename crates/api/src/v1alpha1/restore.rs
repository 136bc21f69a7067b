//! EtcdRestore: a new cluster with the data of a backup.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cluster::EtcdClusterSpec;
use super::metadata::TemplateMetadata;
// Not the type itself: KubeSchema brings another of that name into scope.
use super::reasons;
use super::restore_from::RestoreSource;
use super::validation;
use crate::schema;

/// Which backup is restored, and the cluster that is made with it. It cannot be changed: make another EtcdRestore instead.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "etcd.improbable.io",
    version = "v1alpha1",
    kind = "EtcdRestore",
    plural = "etcdrestores",
    singular = "etcdrestore",
    shortname = "er",
    category = "etcd",
    namespaced,
    doc = "Makes a new EtcdCluster with the data of a backup. Deleting this object leaves the cluster as it is.",
    derive = "PartialEq",
    status = "EtcdRestoreStatus",
    validation = validation::restore_stays(),
    validation = validation::name_fits_a_label(),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "How far the restore has come"
    ),
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = ".spec.clusterTemplate.clusterName",
        description = "The EtcdCluster that is made"
    ),
    printcolumn(
        name = "Revision",
        type_ = "integer",
        json_path = ".status.restoredRevision",
        description = "The revision of etcd that the cluster began with"
    ),
    printcolumn(
        name = "Progress",
        type_ = "string",
        priority = 1,
        json_path = ".status.progress",
        description = "How far the current phase has come"
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
        description = "When the restore was asked for"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::join_wrapped_lines)]
#[schemars(transform = schema::leave_required_to_rules)]
#[x_kube(validation = validation::source_is_given(), validation = validation::cluster_template_is_given())]
pub struct EtcdRestoreSpec {
    /// Required. The backup: `objectURL`, `bucket`, `persistentVolumeClaim` or `backupName`.
    #[x_kube(
        validation = validation::source_is_one_backup(),
        validation = validation::source_access_fits(),
        validation = validation::restore_has_credentials_once(),
        validation = validation::backup_brings_its_access()
    )]
    pub source: RestoreSource,

    /// Required. The EtcdCluster that is made.
    pub cluster_template: ClusterTemplate,
}

/// An EtcdCluster that is made.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::leave_required_to_rules)]
#[x_kube(
    validation = validation::restored_cluster_has_a_name(),
    validation = validation::restored_cluster_has_a_spec(),
    validation = validation::restored_cluster_has_no_bootstrap()
)]
pub struct ClusterTemplate {
    /// Required. The name of the EtcdCluster. There must be none of that name, nor volumes of one.
    #[schemars(length(max = 253))]
    #[x_kube(
        validation = validation::cluster_name_fits_a_service(),
        validation = validation::cluster_name_leaves_room_for_ordinals(),
        validation = validation::cluster_name_is_no_client_service()
    )]
    pub cluster_name: String,

    /// Optional. Labels and annotations of the EtcdCluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,

    /// Required. What the cluster should be like, as in an EtcdCluster. `version` may be left out: it is then that of the
    /// backup.
    pub spec: EtcdClusterSpec,
}

/// The observed state of the restore. The operator writes it.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::join_wrapped_lines)]
pub struct EtcdRestoreStatus {
    /// How far the restore has come: `Pending`, `Validating` the backup, `Restoring` the first member, `ScalingUp` to the
    /// full size, and in the end `Completed` or `Failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<RestorePhase>,

    /// How far the current phase has come, for example `1 of 3 members are ready`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,

    /// The earlier name of `progress`. It is not written any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,

    /// Why the restore is where it is, in one word, for example `HashMismatch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<reasons::Reason>,

    /// Human-readable details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// When the work began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,

    /// When the work ended, successfully or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,

    /// Where the backup is.
    #[serde(rename = "objectURL", default, skip_serializing_if = "Option::is_none")]
    pub object_url: Option<String>,

    /// The revision of etcd that the cluster began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_revision: Option<i64>,

    /// The version of etcd that the cluster was made with, for example `3.6.16`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd_version: Option<String>,

    /// The name of the EtcdCluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,

    /// The ID that etcd gave the new cluster, in hexadecimal, for example `cdf818194e3a8c32`.
    #[serde(rename = "clusterID", default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,

    /// The `metadata.generation` that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// What is true of the restore now. `Complete` says whether all members of the cluster serve the data of the backup.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl EtcdRestoreStatus {
    /// Whether the work has ended, successfully or not.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Some(RestorePhase::Completed | RestorePhase::Failed))
    }
}

/// How far a restore has come. `Checking` and `Growing` are the earlier names of `Validating` and `ScalingUp`.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(transform = schema::allow_earlier_phases)]
pub enum RestorePhase {
    #[default]
    Pending,
    #[serde(alias = "Checking")]
    Validating,
    Restoring,
    #[serde(alias = "Growing")]
    ScalingUp,
    Completed,
    Failed,
}
