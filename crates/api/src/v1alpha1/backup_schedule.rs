//! EtcdBackupSchedule: backups of an etcd cluster, again and again. What is kept of them is in `retention`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::backup::{BackupSource, EtcdBackupSpec};
use super::destination::Destination;
use super::metadata::TemplateMetadata;
use super::retention::Retention;
use super::validation;
use crate::schema;

/// When backups are taken, what they are like and how long they are kept. It may be changed at any time.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "etcd.improbable.io",
    version = "v1alpha1",
    kind = "EtcdBackupSchedule",
    plural = "etcdbackupschedules",
    singular = "etcdbackupschedule",
    shortname = "ebs",
    category = "etcd",
    namespaced,
    doc = "Takes backups of an etcd cluster at certain times: it makes an EtcdBackup each time.",
    derive = "PartialEq",
    status = "EtcdBackupScheduleStatus",
    validation = validation::schedule_name_leaves_room(),
    printcolumn(
        name = "Schedule",
        type_ = "string",
        json_path = ".spec.schedule",
        description = "When backups are taken"
    ),
    printcolumn(
        name = "Suspend",
        type_ = "boolean",
        json_path = ".spec.suspend",
        description = "Whether no backups are taken for now"
    ),
    printcolumn(
        name = "Last-Success",
        type_ = "date",
        json_path = ".status.lastSuccessfulTime",
        description = "When the last backup succeeded"
    ),
    printcolumn(
        name = "Next",
        type_ = "string",
        json_path = ".status.nextScheduleTime",
        description = "When the next backup is due"
    ),
    printcolumn(
        name = "Failures",
        type_ = "integer",
        json_path = ".status.consecutiveFailures",
        description = "How many backups have failed since the last one that succeeded"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "When the schedule was created"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::join_wrapped_lines)]
#[schemars(transform = schema::leave_required_to_rules)]
#[x_kube(
    validation = validation::schedule_is_given(),
    validation = validation::backup_template_is_given(),
    validation = validation::encrypted_backups_can_be_verified()
)]
pub struct EtcdBackupScheduleSpec {
    /// Required. When backups are taken: minute, hour, day of the month, month and day of the week, as cron has them, for
    /// example `0 3 * * *` for every night at three; or `@hourly`, `@daily`, `@weekly`, `@monthly` or `@yearly`.
    #[schemars(length(max = 256))]
    #[x_kube(validation = validation::schedule_has_five_fields())]
    pub schedule: String,

    /// Optional. The time zone of the schedule and of `retention`, for example `Europe/London`.
    #[serde(default = "utc")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = validation::time_zone_is_a_name())]
    pub time_zone: String,

    /// Optional. How many seconds late a backup may begin, for example because the operator was down. A backup that is
    /// later than that is left out. Without it, one backup is taken for all that were missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = validation::starting_deadline_is_long_enough())]
    pub starting_deadline_seconds: Option<i64>,

    /// Optional. What happens if a backup is due while the last one still runs: `Forbid`, the default, waits
    /// until that has ended, `Allow` starts it, `Replace` stops the last one and starts it.
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,

    /// Optional. `true` takes no backups for now.
    #[serde(default)]
    pub suspend: bool,

    /// Optional. How many EtcdBackup objects that succeeded are kept. The stored backups stay; `retention` is about those.
    #[serde(default = "default_history_limit")]
    #[x_kube(validation = validation::successful_history_limit_is_in_range())]
    pub successful_backups_history_limit: i32,

    /// Optional. How many EtcdBackup objects that failed are kept.
    #[serde(default = "default_history_limit")]
    #[x_kube(validation = validation::failed_history_limit_is_in_range())]
    pub failed_backups_history_limit: i32,

    /// Required. What the backups are like: `spec` is that of an EtcdBackup.
    #[serde(default)]
    #[schemars(transform = schema::no_default)]
    pub backup_template: BackupTemplate,

    /// Optional. Every so many backups, one is verified with `verify: Restore`: `1` verifies all, `7` every seventh. It
    /// adds to what `backupTemplate` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000), transform = schema::plain_number)]
    pub verify_every: Option<u32>,

    /// Optional. `true` also takes a backup before the cluster is upgraded to another minor version of etcd, and the
    /// upgrade waits for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_upgrade: bool,

    /// Optional. `true` deletes all backups of this schedule, wherever they are stored, when the EtcdCluster is deleted
    /// and none of its name follows. The default is `false`: backups outlive the cluster.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete_with_cluster: bool,

    /// Optional. Which stored backups of this schedule are kept. A backup that any of the rules keeps is kept, and the
    /// newest good one is never deleted. Without any rule nothing is ever deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
}

impl EtcdBackupScheduleSpec {
    /// What each EtcdBackup is like, from whichever of its two places it was written in.
    pub fn backup_spec(&self) -> EtcdBackupSpec {
        let BackupTemplate { spec, cluster_name, source, destination, .. } = self.backup_template.clone();
        spec.unwrap_or_else(|| EtcdBackupSpec {
            cluster_name,
            source,
            destination: destination.unwrap_or_default(),
            ..Default::default()
        })
    }

    /// The labels and annotations of each EtcdBackup.
    pub fn backup_metadata(&self) -> TemplateMetadata {
        self.backup_template.metadata.clone().unwrap_or_default()
    }
}

fn utc() -> String {
    "UTC".to_owned()
}

fn default_history_limit() -> i32 {
    3
}

/// What the backups are like. An earlier form has `source` and `destination` here rather than in `spec`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = validation::backup_template_has_one_form(), validation = validation::earlier_template_is_whole())]
pub struct BackupTemplate {
    /// Optional. Labels and annotations of each EtcdBackup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,

    /// What each EtcdBackup is like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<EtcdBackupSpec>,

    /// The same as `spec.clusterName`, in another place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub cluster_name: Option<String>,

    /// The same as `spec.source`, in another place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<BackupSource>,

    /// The same as `spec.destination`, in another place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<Destination>,
}

/// What happens if a backup is due while the last one still runs.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConcurrencyPolicy {
    Allow,
    #[default]
    Forbid,
    Replace,
}

/// The observed state of the schedule. The operator writes it.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::join_wrapped_lines)]
pub struct EtcdBackupScheduleStatus {
    /// The latest time of the schedule for which a backup was begun or left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,

    /// When the next backup is due. Absent while the schedule is suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_schedule_time: Option<Time>,

    /// When the last backup succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<Time>,

    /// The name of the last EtcdBackup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_backup: Option<String>,

    /// How many backups have failed since the last one that succeeded.
    #[serde(default)]
    pub consecutive_failures: i32,

    /// How many backups this schedule has begun.
    #[serde(default)]
    pub backups_taken: i64,

    /// The names of the EtcdBackups that run now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub active: Vec<String>,

    /// The schedule and the time zone that are in force, for example `0 3 * * * UTC`. Absent while no backups are taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,

    /// Times of the schedule up to this one are not made up for: it was created, changed or resumed then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_since: Option<Time>,

    /// The number of the last EtcdBackup whose end is counted in `consecutiveFailures`.
    #[serde(default)]
    pub last_counted_backup: i64,

    /// The earlier name of `activeSince`. It is read, and moved there when the status is written next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_from: Option<Time>,

    /// The earlier name of `lastCountedBackup`. It is read, and moved there when the status is written next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<i64>,

    /// The name of the EtcdCluster that `clusterUID` is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,

    /// The UID of the EtcdCluster when it was last seen. It tells a cluster from another one of the same name. Absent
    /// unless `deleteWithCluster` is set.
    #[serde(rename = "clusterUID", default, skip_serializing_if = "Option::is_none")]
    pub cluster_uid: Option<String>,

    /// The `metadata.generation` that this status describes. If it is lower than the object's own, the operator has
    /// not yet acted on the latest change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// What is true of the schedule now. `Ready` says whether backups will be taken as it says, and if not, why;
    /// `Overdue` that none has succeeded for too long; `BackupsDeleted` whether the backups of a cluster that is gone are
    /// deleted, if that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl EtcdBackupScheduleStatus {
    /// This status with what an earlier operator wrote under the names of today.
    pub fn with_current_names(mut self) -> Self {
        self.active_since = self.active_since.or(self.counted_from.take());
        self.last_counted_backup = self.last_counted_backup.max(self.judged.take().unwrap_or_default());
        self
    }
}
