//! What a pod of ours says when it ends. The agent leaves it as its termination message, the operator reads it there.

use serde::{Deserialize, Serialize};

use crate::manifest::Manifest;

/// As much as Kubernetes keeps of a termination message.
pub const MAX_BYTES: usize = 4096;

/// The exit codes of the agent: it may succeed the next time, or never will.
pub const FAILED: u8 = 1;
pub const FAILED_FOR_GOOD: u8 = 2;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "camelCase")]
pub enum Report {
    Done(Box<Done>),
    Failed(Failure),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// The backup that was taken, checked, fetched or verified. A backup that was not taken by this operator has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Manifest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pruned: Option<Pruned>,
    /// For a backup without a manifest: what the file itself says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<SnapshotFile>,
    /// What could not be compared when a backup was verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotFile {
    pub snapshot_size: u64,
    pub snapshot_sha256: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pruned {
    pub kept: u32,
    pub deleted: u32,
    /// In a dry run: what would have been deleted, as far as there is room to say so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub would_delete: Vec<String>,
    /// Why not everything could be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub reason: Reason,
    pub message: String,
}

/// The kinds of failure, as the status shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// The request makes no sense, for example a URL that is none.
    #[serde(alias = "BadOrder")]
    InvalidRequest,
    /// No member could be asked.
    EtcdUnreachable,
    /// The stream from etcd broke off, or its hash was wrong.
    BadStream,
    NoSuchBucket,
    NoSuchObject,
    AccessDenied,
    /// Something else is there already, which is never overwritten.
    ObjectExists,
    /// The bucket or the volume is full.
    NoSpace,
    StoreUnreachable,
    /// Any other answer of the store.
    StoreFailed,
    WrongKey,
    HashMismatch,
    WrongVersion,
    /// What was restored is not what the manifest says.
    #[serde(alias = "NotTheSame")]
    ContentMismatch,
    /// The pod was terminated before it finished.
    Stopped,
}

impl Reason {
    /// Whether another try could end otherwise, without anybody doing anything.
    pub fn may_pass(self) -> bool {
        matches!(
            self,
            Self::EtcdUnreachable
                | Self::BadStream
                | Self::StoreUnreachable
                | Self::StoreFailed
                | Self::NoSpace
                | Self::Stopped
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The agent may be of an earlier version than the operator.
    #[test]
    fn reasons_of_earlier_agents_are_parsed() {
        let reason = |name: &str| serde_json::from_value::<Reason>(name.into()).unwrap();
        assert_eq!(["BadOrder", "NotTheSame"].map(reason), [Reason::InvalidRequest, Reason::ContentMismatch]);
    }
}
