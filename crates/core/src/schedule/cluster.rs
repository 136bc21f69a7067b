//! What follows for a schedule if its EtcdCluster exists, is another one of the same name, or is gone.

use etcd_operator_api::{EtcdBackupSchedule, EtcdBackupScheduleStatus, EtcdRestore, RestorePhase};
use jiff::{SignedDuration, Timestamp};

/// How long a cluster has to be gone before its backups are deleted.
const UNTIL_SURE: SignedDuration = SignedDuration::from_secs(30);

/// The condition that reports whether the backups of a cluster that is gone are deleted.
pub const BACKUPS_DELETED: &str = "BackupsDeleted";

/// What the API server returned for the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObservedCluster {
    /// It is not an EtcdCluster, but given by its endpoints.
    External,
    Present {
        uid: String,
    },
    /// It does not exist, but an EtcdRestore is about to create it.
    ToBeRestored,
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterState {
    /// It can be backed up. Its UID is recorded if its backups are to be deleted with it.
    Present { uid: Option<String> },
    /// It does not exist, and nothing follows from that.
    Missing,
    /// The cluster that was backed up is gone, and its backups are to be deleted as well, but not before this time.
    Deleted { uid: String, not_before: Timestamp },
}

/// Backups are deleted only for a cluster that was observed while the spec desired that, is gone, and has no successor
/// of its name: a cluster that has that name, or is about to, may have been restored from them.
pub fn cluster_state(
    schedule: &EtcdBackupSchedule,
    written: &EtcdBackupScheduleStatus,
    seen: &ObservedCluster,
    now: Timestamp,
) -> ClusterState {
    let spec = &schedule.spec;
    match seen {
        ObservedCluster::External => ClusterState::Present { uid: None },
        // While the spec does not desire it, nothing is recorded, so that nothing can follow from it later.
        ObservedCluster::Present { uid } => {
            ClusterState::Present { uid: Some(uid.clone()).filter(|_| spec.delete_with_cluster) }
        }
        ObservedCluster::ToBeRestored => ClusterState::Missing,
        ObservedCluster::Gone => match remembered(schedule, written).filter(|_| spec.delete_with_cluster) {
            Some(uid) => ClusterState::Deleted { uid, not_before: gone_since(written).unwrap_or(now) + UNTIL_SURE },
            None => ClusterState::Missing,
        },
    }
}

/// The cluster that was observed last, if its backups were to be deleted with it at that time.
fn remembered(schedule: &EtcdBackupSchedule, written: &EtcdBackupScheduleStatus) -> Option<String> {
    // A schedule whose cluster was changed has nothing to do with the earlier one any more.
    let is_same_name = schedule.spec.backup_spec().cluster_name == written.cluster_name;
    // Between two edits that were not observed the deletion may not have been desired, and the cluster may have been
    // deleted then.
    let is_unchanged = schedule.metadata.generation == written.observed_generation;
    let is_known_to_be_gone = gone_since(written).is_some();
    written.cluster_uid.clone().filter(|_| is_same_name && (is_unchanged || is_known_to_be_gone))
}

/// Whether one of these is to create a cluster of that name, or was and has failed: then it is likely to be retried.
pub fn is_to_be_restored(cluster: &str, restores: &[EtcdRestore]) -> bool {
    let has_completed = |it: &EtcdRestore| it.status.as_ref().and_then(|it| it.phase) == Some(RestorePhase::Completed);
    restores.iter().any(|it| it.spec.cluster_template.cluster_name == cluster && !has_completed(it))
}

fn gone_since(written: &EtcdBackupScheduleStatus) -> Option<Timestamp> {
    let said = written.conditions.iter().find(|it| it.type_ == BACKUPS_DELETED && it.status == "False");
    said.map(|it| it.last_transition_time.0)
}
