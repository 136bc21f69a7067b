//! The reasons of an EtcdBackup.

use super::severity::{Announced, Severity};

reasons! {
    /// A reason of the conditions `Complete`, `Failed`, `Verified` and `QuorumLost` of an EtcdBackup. If it failed at what
    /// its Job does, that is a [`JobFailureReason`](super::JobFailureReason) instead. A failure is also in
    /// `status.reason`.
    pub enum BackupReason {
        /// Not complete: it waits for its EtcdCluster.
        Pending,
        /// Not complete: it is being taken or verified.
        Running,
        /// Complete: it is stored.
        Completed,
        /// Failed: the EtcdCluster did not exist or had no members until the deadline.
        ClusterNotReady,
        /// Failed: the pod ended well, but did not say what it has backed up.
        NoReport,
        /// Verified: it was restored for a test, and the data is that of the cluster.
        Restored,
        /// Quorum lost: no quorum answered, and the backup is what one member had.
        SurvivingMember,
    }
}

reasons! {
    /// What an event about an EtcdBackup says.
    pub enum BackupEventReason {
        /// It is stored, and proven if that was asked for.
        BackupSucceeded,
        /// It failed; the note says why.
        BackupFailed,
        /// It is stored, but the test restore failed.
        BackupNotVerified,
    }
}

impl Announced for BackupEventReason {
    fn severity(&self) -> Severity {
        match self {
            BackupEventReason::BackupSucceeded => Severity::Normal,
            BackupEventReason::BackupFailed | BackupEventReason::BackupNotVerified => Severity::Warning,
        }
    }
}
