//! How a cluster is upgraded to another version of etcd.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the cluster is upgraded to another version of etcd.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// Optional. Whether a backup is taken before the cluster is upgraded to another minor version of etcd, if the
    /// cluster has a backup destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_first: Option<bool>,
}
