//! The backup before an upgrade: which schedule says where it goes, what it is named, and what an existing EtcdBackup
//! means for the upgrade.

use etcd_operator_api::{BackupPhase, EtcdBackup, EtcdBackupSchedule, EtcdCluster, Verify};
use sha1::{Digest, Sha1};

use crate::cluster::observed::BackupFirst;
use crate::schedule::cron::parse;
use crate::schedule::scheduled_backup::is_of;

/// An annotation on an EtcdBackup that was created before an upgrade: the UID of the cluster, whose name an earlier
/// cluster may have had.
pub const CLUSTER_UID: &str = "etcd.improbable.io/cluster-uid";

/// How much of a schedule's name fits into the name of an EtcdBackup, which has at most 63 characters.
const ROOM_FOR_SCHEDULE: usize = 36;

/// The schedule that says where the backup goes.
#[derive(Debug, PartialEq)]
pub enum Choice<'a> {
    Schedule(&'a EtcdBackupSchedule),
    /// Only an invalid one, and why.
    Invalid {
        name: String,
        why: String,
    },
    None,
}

/// Chooses among the schedules of a namespace: one that requires a backup before upgrades, or any if the cluster itself
/// requires it. Suspended schedules don't count.
pub fn choose<'a>(schedules: &'a [EtcdBackupSchedule], cluster: &EtcdCluster) -> Choice<'a> {
    let is_wanted = backup_first(cluster) == Some(true);
    let is_meant = |it: &&EtcdBackupSchedule| {
        let is_of_cluster = it.spec.backup_spec().cluster_name == cluster.metadata.name;
        (it.spec.on_upgrade || is_wanted) && !it.spec.suspend && is_of_cluster
    };
    let mut meant: Vec<&EtcdBackupSchedule> = schedules.iter().filter(is_meant).collect();
    meant.sort_by_key(|it| (!it.spec.on_upgrade, it.metadata.name.clone()));
    let mut invalid = None;
    for schedule in meant {
        match parse(&schedule.spec.schedule, &schedule.spec.time_zone) {
            Ok(_) => return Choice::Schedule(schedule),
            Err(why) => invalid = invalid.or(Some((schedule.metadata.name.clone().unwrap_or_default(), why))),
        }
    }
    invalid.map_or(Choice::None, |(name, why)| Choice::Invalid { name, why: why.to_string() })
}

/// Whether the cluster's spec requires the backup, if it says so.
pub fn backup_first(cluster: &EtcdCluster) -> Option<bool> {
    cluster.spec.upgrade.as_ref().and_then(|upgrade| upgrade.backup_first)
}

/// The result if there is no schedule to take the backup with.
pub fn without_schedule(choice: &Choice, cluster: &EtcdCluster) -> BackupFirst {
    match choice {
        Choice::Invalid { name, why } => BackupFirst::InvalidSchedule { name: name.clone(), why: why.clone() },
        _ if backup_first(cluster) == Some(true) => BackupFirst::NoSchedule,
        _ => BackupFirst::NotRequired,
    }
}

/// The name of the EtcdBackup. Each generation of the cluster has its own, so that an upgrade that is requested again
/// later gets a later backup; and it is never shared with another schedule or another cluster of the same name.
pub fn name_of(schedule: &EtcdBackupSchedule, cluster: &EtcdCluster) -> String {
    let name = schedule.metadata.name.as_deref().unwrap_or_default();
    let name: String = name.chars().take(ROOM_FOR_SCHEDULE).collect();
    let uid = |metadata: &Option<String>| metadata.clone().unwrap_or_default();
    let whose = format!("{}/{}", uid(&schedule.metadata.uid), uid(&cluster.metadata.uid));
    let whose: String = Sha1::digest(whose).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let generation = cluster.metadata.generation.unwrap_or_default();
    format!("{}-upgrade-{generation}-{whose}", name.trim_end_matches(['-', '.']))
}

/// What the EtcdBackup of that name means for the upgrade.
pub fn meaning(found: Option<&EtcdBackup>, schedule: &EtcdBackupSchedule, cluster: &EtcdCluster) -> BackupFirst {
    let name = name_of(schedule, cluster);
    let Some(backup) = found else { return BackupFirst::ToTake };
    if !is_for(backup, schedule, cluster) {
        let message = "it is another one of that name, which was not made for this upgrade".to_owned();
        return BackupFirst::Failed { name, message };
    }
    let status = backup.status.clone().unwrap_or_default();
    let message = status.message.unwrap_or_default();
    let is_to_verify = backup.spec.verify == Verify::Restore;
    match (status.phase, status.verified) {
        (Some(BackupPhase::Failed), _) => BackupFirst::Failed { name, message },
        (_, Some(false)) => BackupFirst::Failed { name, message: format!("it is stored, but not proven: {message}") },
        (Some(BackupPhase::Completed), Some(true)) => BackupFirst::Taken,
        (Some(BackupPhase::Completed), None) if !is_to_verify => BackupFirst::Taken,
        _ => BackupFirst::Running(name),
    }
}

/// Whether an EtcdBackup was created by this very schedule for this very cluster.
fn is_for(backup: &EtcdBackup, schedule: &EtcdBackupSchedule, cluster: &EtcdCluster) -> bool {
    let uid_of_cluster = backup.metadata.annotations.as_ref().and_then(|it| it.get(CLUSTER_UID));
    is_of(backup, schedule.metadata.uid.as_deref().unwrap_or_default())
        && backup.spec.cluster_name == cluster.metadata.name
        && uid_of_cluster == cluster.metadata.uid.as_ref()
}
