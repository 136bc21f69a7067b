//! What is known about an EtcdRestore.

use etcd_operator_api::{EtcdBackup, EtcdCluster, EtcdRestore, RestorePhase};
use jiff::Timestamp;

use super::cluster::is_made_by;
use crate::agent_job::ObservedJob;

pub struct Observed<'a> {
    pub restore: &'a EtcdRestore,
    pub cluster: ObservedCluster,
    /// The Job that reads the backup.
    pub check: ObservedJob,
    pub now: Timestamp,
}

/// What has the name of the EtcdCluster to create.
#[derive(Clone, Debug, PartialEq)]
pub enum ObservedCluster {
    /// The EtcdCluster of this EtcdRestore.
    Ours(Box<EtcdCluster>),
    /// An EtcdCluster that is not of this EtcdRestore.
    Another,
    /// There is none, although it was created.
    Deleted,
    /// There are only volume claims of one.
    Claims(Vec<String>),
    /// Nothing has it, so it may be created from this EtcdBackup, if the spec names one that exists.
    Nothing { backup: Option<Box<EtcdBackup>> },
}

impl ObservedCluster {
    /// What follows from the EtcdCluster alone. Nothing does if there is none: then it depends on what else there is.
    pub fn of(restore: &EtcdRestore, cluster: Option<EtcdCluster>) -> Option<Self> {
        match cluster {
            Some(cluster) if is_made_by(&cluster, restore) => Some(ObservedCluster::Ours(Box::new(cluster))),
            Some(_) => Some(ObservedCluster::Another),
            None if was_created(restore) => Some(ObservedCluster::Deleted),
            None => None,
        }
    }
}

fn was_created(restore: &EtcdRestore) -> bool {
    let phase = restore.status.as_ref().and_then(|status| status.phase);
    matches!(phase, Some(RestorePhase::Restoring | RestorePhase::ScalingUp))
}

/// Whether nothing is to be done about a restore any more.
pub fn is_over(restore: &EtcdRestore) -> bool {
    restore.metadata.deletion_timestamp.is_some() || restore.status.as_ref().is_some_and(|status| status.has_ended())
}
