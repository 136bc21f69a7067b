//! What follows for a schedule if its EtcdCluster is there, is another one of the same name, or is gone.

use etcd_operator_api::{EtcdBackupScheduleSpec, EtcdBackupScheduleStatus};
use jiff::{SignedDuration, Timestamp};

/// How long a cluster has to be gone before anything is deleted for it.
const UNTIL_SURE: SignedDuration = SignedDuration::from_secs(30);

/// The condition that says whether the backups of a cluster that is gone are deleted.
pub const BACKUPS_DELETED: &str = "BackupsDeleted";

/// What was found when the API server was asked for the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It is not an EtcdCluster: it was given by its address.
    Elsewhere,
    There {
        uid: String,
    },
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It can be backed up. If it is an EtcdCluster, its UID is remembered.
    Backed { uid: Option<String> },
    /// There is none, and nothing follows from that.
    Missing,
    /// The one that was backed up is gone, and its backups are to go as well, but not before this time.
    Deleted { uid: String, not_before: Timestamp },
}

pub fn verdict(
    spec: &EtcdBackupScheduleSpec,
    written: &EtcdBackupScheduleStatus,
    seen: &Seen,
    now: Timestamp,
) -> Verdict {
    // A schedule that was given another cluster has nothing to do with the earlier one any more.
    let is_same_name = spec.backup_spec().cluster_name == written.cluster_name;
    let remembered = written.cluster_uid.as_ref().filter(|_| is_same_name);
    let (found, is_remembered) = match seen {
        Seen::Elsewhere => return Verdict::Backed { uid: None },
        Seen::There { uid } => (Some(uid), remembered.is_none_or(|remembered| remembered == uid)),
        Seen::Gone => (None, remembered.is_none()),
    };
    match (remembered, found) {
        (Some(uid), _) if !is_remembered && spec.delete_with_cluster => {
            Verdict::Deleted { uid: uid.clone(), not_before: gone_since(written).unwrap_or(now) + UNTIL_SURE }
        }
        (_, Some(uid)) => Verdict::Backed { uid: Some(uid.clone()) },
        (_, None) => Verdict::Missing,
    }
}

fn gone_since(written: &EtcdBackupScheduleStatus) -> Option<Timestamp> {
    let said = written.conditions.iter().find(|it| it.type_ == BACKUPS_DELETED && it.status == "False");
    said.map(|it| it.last_transition_time.0)
}
