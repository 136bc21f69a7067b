//! The reasons of an EtcdRestore.

use super::severity::{Announced, Severity};

reasons! {
    /// A reason of the conditions `Complete` and `Failed` of an EtcdRestore. If its Job could not read the backup, that is
    /// a [`JobFailureReason`](super::JobFailureReason) instead. A failure is also in `status.reason`.
    pub enum RestoreReason {
        /// Not complete: it waits for the EtcdBackup to complete.
        Pending,
        /// Not complete: the backup is being read from one end to the other.
        Validating,
        /// Not complete: the backup is being restored to the first member.
        Restoring,
        /// Not complete: the other members join.
        ScalingUp,
        /// Complete: all members of the cluster run with the data of the backup.
        Completed,
        /// Failed: there is an EtcdCluster of that name already.
        ClusterExists,
        /// Failed: there are volume claims of a cluster of that name.
        VolumesExist,
        /// Failed: the EtcdCluster was deleted before it was complete.
        ClusterDeleted,
        /// Failed: the API server refused the EtcdCluster.
        ClusterRefused,
        /// Failed: the backup can't be restored with this version of etcd, or nobody knows which version wrote it.
        WrongVersion,
        /// Failed: there is no EtcdBackup of that name.
        NoSuchBackup,
        /// Failed: the EtcdBackup of that name failed.
        BackupFailed,
    }
}

reasons! {
    /// What an event about an EtcdRestore says.
    pub enum RestoreEventReason {
        /// The backup was read, and the EtcdCluster was created.
        ClusterCreated,
        /// All members of the cluster run with the data of the backup.
        RestoreSucceeded,
        /// It failed; the note says why.
        RestoreFailed,
    }
}

impl Announced for RestoreEventReason {
    fn severity(&self) -> Severity {
        match self {
            RestoreEventReason::ClusterCreated | RestoreEventReason::RestoreSucceeded => Severity::Normal,
            RestoreEventReason::RestoreFailed => Severity::Warning,
        }
    }
}
