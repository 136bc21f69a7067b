//! What is known about an EtcdBackup.

use std::collections::BTreeSet;

use etcd_operator_api::{BackupPhase, EtcdBackup, EtcdBackupSchedule, EtcdCluster, Image};
use jiff::Timestamp;

use crate::agent_job::ObservedJob;
use crate::names::ClusterNames;
use crate::ordinal::Ordinal;

pub struct Observed<'a> {
    pub backup: &'a EtcdBackup,
    /// The Job of [`JobKind::of`] this backup.
    pub job: ObservedJob,
    pub cluster: ObservedCluster,
    /// The schedule that created it, if one did and it still exists.
    pub schedule: Option<ObservedSchedule>,
    pub now: Timestamp,
}

/// The Jobs of a backup, of which there is one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    Backup,
    Verify,
}

impl JobKind {
    /// The one whose turn it is.
    pub fn of(backup: &EtcdBackup) -> Self {
        match backup.status.as_ref().and_then(|status| status.phase) {
            Some(BackupPhase::Verifying) => JobKind::Verify,
            _ => JobKind::Backup,
        }
    }

    /// What the Job's name begins with.
    pub fn prefix(self) -> &'static str {
        match self {
            JobKind::Backup => "backup",
            JobKind::Verify => "verify",
        }
    }
}

/// The EtcdCluster that is backed up.
#[derive(Clone, Debug, PartialEq)]
pub enum ObservedCluster {
    /// It was not looked up: the backup is of another etcd, or its Job exists already.
    NotRead,
    Missing,
    Present {
        /// The client URLs of its members, as etcd knows them. The agent finds out which of them are reachable.
        endpoints: Vec<String>,
        image: Option<Image>,
    },
}

impl ObservedCluster {
    pub fn present(cluster: &EtcdCluster, domain: &str) -> Self {
        ObservedCluster::Present { endpoints: endpoints_of(cluster, domain), image: cluster.spec.image.clone() }
    }
}

/// A schedule, and what distinguishes its stored backups from all others.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedSchedule {
    pub schedule: Box<EtcdBackupSchedule>,
    pub identity: String,
}

fn endpoints_of(cluster: &EtcdCluster, domain: &str) -> Vec<String> {
    let names = ClusterNames {
        cluster: cluster.metadata.name.clone().unwrap_or_default(),
        namespace: cluster.metadata.namespace.clone().unwrap_or_default(),
        domain: domain.to_owned(),
    };
    let members = cluster.status.iter().flat_map(|status| &status.members);
    let ordinals: BTreeSet<Ordinal> = members.filter_map(|member| names.ordinal_of_name(&member.name)).collect();
    ordinals.into_iter().map(|ordinal| names.client_url(ordinal)).collect()
}

/// Whether nothing is to be done about a backup any more.
pub fn is_over(backup: &EtcdBackup) -> bool {
    backup.metadata.deletion_timestamp.is_some() || backup.status.as_ref().is_some_and(|status| status.has_ended())
}
