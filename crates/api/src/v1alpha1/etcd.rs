//! The options of etcd itself, the same for EtcdCluster and EtcdPeer.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::validation;
use crate::{duration, quantity, schema};

/// Options of etcd itself.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = validation::election_waits_for_heartbeats())]
pub struct EtcdOptions {
    /// Optional. How large the database of a member may become, for example `4Gi`. When it is full, etcd refuses
    /// writes until history is compacted and the database defragmented. Without it etcd's default of 2Gi counts;
    /// more than 8Gi is not recommended. Keep it well below the size of the volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = validation::quota_is_a_size())]
    pub quota_backend_bytes: Option<Quantity>,

    /// Optional. How much history etcd keeps. Without it etcd keeps everything until a client compacts it. Leave it
    /// out for the etcd of a Kubernetes API server, which does that itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_compaction: Option<AutoCompaction>,

    /// Optional. How often the leader sends heartbeats, for example `500ms`; `100ms` unless set. About the round-trip
    /// time between the members, or somewhat longer. A number without a unit is in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::bound_duration)]
    #[x_kube(validation = validation::heartbeat_is_in_range())]
    pub heartbeat_interval: Option<IntOrString>,

    /// Optional. After how long without a sign of the leader the others elect a new one, for example `2500ms`; `1s` unless
    /// set. At least 5 times `heartbeatInterval`; 10 times is usual. A number without a unit is in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::bound_duration)]
    #[x_kube(validation = validation::election_timeout_is_in_range())]
    pub election_timeout: Option<IntOrString>,

    /// Optional. After how many changes a member writes a snapshot to its disk and drops the log before it. Without
    /// it etcd's default counts, which depends on its version. A low number needs less memory and writes more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = validation::snapshot_count_is_in_range())]
    pub snapshot_count: Option<i32>,

    /// Optional. More flags of etcd, by their names without leading dashes, for example `max-txn-ops: "256"`. Values
    /// are strings, so put numbers, `true` and `false` in quotes. Flags that the operator sets itself and flags with
    /// a field of their own are refused. An upgrade or downgrade that would give members a flag which their new version
    /// does not know is refused before anything is restarted. A flag that no version knows is not checked: members do
    /// not start with it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = schema::bound_extra_args)]
    #[x_kube(
        validation = validation::extra_args_are_named_like_flags(),
        validation = validation::extra_args_are_not_owned(),
        validation = validation::extra_args_have_no_field()
    )]
    pub extra_args: BTreeMap<String, String>,
}

/// A length of time as etcd's flags take it.
fn milliseconds(written: Option<&IntOrString>) -> Option<String> {
    written.and_then(duration::parse_or_milliseconds).map(|it| it.as_millis().to_string())
}

/// How large a database may become if nobody says, in bytes: etcd's own default.
const ETCD_QUOTA: i64 = 2 << 30;

/// How large a database may become with these options, in bytes.
pub(crate) fn quota(options: Option<&EtcdOptions>) -> i64 {
    let asked_for = options.and_then(|options| options.quota_backend_bytes.as_ref());
    asked_for.and_then(quantity::rounded_up).unwrap_or(ETCD_QUOTA)
}

impl EtcdOptions {
    /// These options as flags of etcd: names without leading dashes, and values.
    pub fn flags(&self) -> BTreeMap<String, String> {
        let mut flags = self.extra_args.clone();
        let mut set = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                flags.insert(name.to_owned(), value);
            }
        };
        let quota = self.quota_backend_bytes.as_ref().and_then(quantity::rounded_up);
        let compaction = self.auto_compaction.as_ref();
        set("quota-backend-bytes", quota.map(|bytes| bytes.to_string()));
        set("auto-compaction-mode", compaction.map(|compaction| compaction.mode.as_flag().to_owned()));
        set("auto-compaction-retention", compaction.map(|compaction| compaction.retention.clone()));
        set("heartbeat-interval", milliseconds(self.heartbeat_interval.as_ref()));
        set("election-timeout", milliseconds(self.election_timeout.as_ref()));
        set("snapshot-count", self.snapshot_count.map(|changes| changes.to_string()));
        flags
    }
}

/// How much history etcd keeps.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::leave_required_to_rules)]
#[x_kube(
    validation = validation::retention_is_given(),
    validation = validation::periodic_retention_is_a_duration(),
    validation = validation::revision_retention_is_a_number()
)]
pub struct AutoCompaction {
    /// Optional. `Periodic`, the default, keeps the history of some time; `Revision` keeps a number of revisions.
    #[serde(default)]
    pub mode: CompactionMode,

    /// Required. How much to keep: with mode `Periodic` a duration such as `1h` or `30m`, with mode `Revision` a number
    /// such as `1000`, in quotes.
    #[schemars(length(max = 16))]
    pub retention: String,
}

/// What the retention of an automatic compaction counts.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CompactionMode {
    #[default]
    Periodic,
    Revision,
}

impl CompactionMode {
    /// The value of etcd's flag `--auto-compaction-mode`.
    pub fn as_flag(self) -> &'static str {
        match self {
            CompactionMode::Periodic => "periodic",
            CompactionMode::Revision => "revision",
        }
    }
}
