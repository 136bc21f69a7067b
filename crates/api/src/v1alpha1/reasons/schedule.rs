//! The reasons of an EtcdBackupSchedule.

use super::severity::{Announced, Severity};

reasons! {
    /// A reason of the conditions `Ready`, `Overdue` and `BackupsDeleted` of an EtcdBackupSchedule. If the deletion of
    /// stored backups failed, that is a [`JobFailureReason`](super::JobFailureReason) instead.
    pub enum ScheduleReason {
        /// Ready: backups are taken as the schedule says.
        Scheduled,
        /// Ready: a backup is due, and waits until the last one has ended.
        WaitingForRunningBackup,
        /// Not ready: the user has suspended it. No backups are expected, so it is not overdue.
        Suspended,
        /// Not ready: the schedule or its time zone can't be parsed. No backups are expected.
        InvalidSchedule,
        /// Not ready: there is no EtcdCluster of that name. No backups are expected.
        NoCluster,
        /// Not ready: the EtcdCluster is gone, and its backups are deleted first. No backups are expected.
        DeletingBackups,
        /// Not overdue: backups succeed, or none is due yet.
        OnSchedule,
        /// Overdue: no backup succeeded when one should have.
        NoRecentSuccess,
        /// Backups deleted: the stored backups were deleted with the cluster.
        Deleted,
        /// Backups not deleted yet: they are being deleted.
        Deleting,
        /// Backups not deleted yet: the EtcdCluster is gone, and they will be soon.
        ClusterGone,
        /// Backups not deleted: some could not be. It is tried again.
        NotAllDeleted,
    }
}

reasons! {
    /// What an event about an EtcdBackupSchedule says. That a Job failed to delete stored backups is an event with a
    /// [`JobFailureReason`](super::JobFailureReason).
    pub enum ScheduleEventReason {
        /// An EtcdBackup was created.
        BackupScheduled,
        /// A running EtcdBackup was deleted, because the next is due.
        BackupReplaced,
        /// A backup was left out, because it would have begun too late.
        BackupMissed,
        /// The plan could not be carried out, for example an EtcdBackup not be created. It is tried again.
        BackupNotStarted,
        /// A backup is due, and waits until the last one has ended.
        WaitingForRunningBackup,
        /// The schedule or its time zone can't be parsed.
        InvalidSchedule,
        /// There is no EtcdCluster of that name.
        NoCluster,
        /// No backup succeeded when one should have.
        Overdue,
        /// The EtcdCluster is gone, and the stored backups are deleted soon.
        ClusterGone,
        /// The stored backups are being deleted.
        Deleting,
        /// Some stored backups could not be deleted. It is tried again.
        NotAllDeleted,
        /// The stored backups were deleted.
        BackupsDeleted,
    }
}

impl Announced for ScheduleEventReason {
    fn severity(&self) -> Severity {
        match self {
            ScheduleEventReason::BackupScheduled
            | ScheduleEventReason::BackupReplaced
            | ScheduleEventReason::WaitingForRunningBackup
            | ScheduleEventReason::ClusterGone
            | ScheduleEventReason::Deleting
            | ScheduleEventReason::BackupsDeleted => Severity::Normal,
            ScheduleEventReason::BackupMissed
            | ScheduleEventReason::BackupNotStarted
            | ScheduleEventReason::InvalidSchedule
            | ScheduleEventReason::NoCluster
            | ScheduleEventReason::Overdue
            | ScheduleEventReason::NotAllDeleted => Severity::Warning,
        }
    }
}
