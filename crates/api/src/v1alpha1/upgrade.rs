//! How a cluster is upgraded to another version of etcd.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the cluster is upgraded to another version of etcd.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// Optional. Whether a backup is taken before the cluster is upgraded to another minor version of etcd. The upgrade
    /// waits for it, and does not begin if it fails. It goes where an EtcdBackupSchedule of this cluster says. `true`
    /// demands one, `false` takes none; unset, one is taken if a schedule has `onUpgrade`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_first: Option<bool>,
}
