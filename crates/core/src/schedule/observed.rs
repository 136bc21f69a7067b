//! What is known about a schedule: the input of every decision about it.

use etcd_operator_api::EtcdBackupSchedule;
use jiff::Timestamp;

use super::cluster::ObservedCluster;
use super::deletion::Deletion;
use super::scheduled_backup::ScheduledBackup;

pub struct Observed<'a> {
    pub schedule: &'a EtcdBackupSchedule,
    pub taken: &'a [ScheduledBackup],
    pub cluster: ObservedCluster,
    pub deletion: Deletion,
    /// In whole seconds, as in the status.
    pub now: Timestamp,
}
