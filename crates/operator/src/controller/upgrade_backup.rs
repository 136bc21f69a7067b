//! The backup that is taken before a cluster is upgraded to another minor version, where a schedule says that backups of it go.

use etcd_operator_api::{BackupPhase, EtcdBackup, EtcdBackupSchedule, EtcdCluster, labels};
use etcd_operator_core::observed::BackupFirst;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use semver::Version;
use tracing::warn;

use super::act::{Actor, Error};
use crate::objects::owner;
use crate::words::describe;

/// Looks whether a backup is to be taken, and what became of it. If that can't be found out, it counts as being under way: the
/// next look may tell.
pub async fn look(client: &Client, cluster: &EtcdCluster) -> BackupFirst {
    if !is_asked_for(cluster) {
        return BackupFirst::NotAsked;
    }
    look_for_backup(client, cluster).await.unwrap_or_else(|error| {
        warn!(error = describe(&error), "cannot find out about the backup before an upgrade");
        BackupFirst::Running("that is to be taken".to_owned())
    })
}

/// Whether the cluster is to be upgraded to a later minor than it runs, and nobody said that no backup is wanted.
fn is_asked_for(cluster: &EtcdCluster) -> bool {
    let status = cluster.status.as_ref();
    let accepted = status.and_then(|status| status.target_version.as_deref()).and_then(|it| Version::parse(it).ok());
    let wanted = Version::parse(&cluster.spec.version).ok();
    let goes_up = accepted.zip(wanted).is_some_and(|(accepted, wanted)| wanted.minor > accepted.minor);
    let is_born = status.is_some_and(|status| status.cluster_id.is_some());
    goes_up && is_born && backup_first(cluster) != Some(false)
}

fn backup_first(cluster: &EtcdCluster) -> Option<bool> {
    cluster.spec.upgrade.as_ref().and_then(|upgrade| upgrade.backup_first)
}

async fn look_for_backup(client: &Client, cluster: &EtcdCluster) -> kube::Result<BackupFirst> {
    let Some(schedule) = find_schedule(client, cluster).await? else {
        let is_needed = backup_first(cluster) == Some(true);
        return Ok(if is_needed { BackupFirst::Nowhere } else { BackupFirst::NotAsked });
    };
    let name = name_of(&schedule, cluster);
    let backups: Api<EtcdBackup> = Api::namespaced(client.clone(), &cluster.namespace().unwrap_or_default());
    let Some(backup) = backups.get_opt(&name).await? else { return Ok(BackupFirst::ToTake) };
    let status = backup.status.unwrap_or_default();
    Ok(match status.phase {
        Some(BackupPhase::Completed) => BackupFirst::Taken,
        Some(BackupPhase::Failed) => BackupFirst::Failed { name, message: status.message.unwrap_or_default() },
        _ => BackupFirst::Running(name),
    })
}

/// The schedule that says where backups of the cluster go: one that asks for a backup before upgrades, or any if the cluster
/// itself asks for it.
async fn find_schedule(client: &Client, cluster: &EtcdCluster) -> kube::Result<Option<EtcdBackupSchedule>> {
    let schedules: Api<EtcdBackupSchedule> = Api::namespaced(client.clone(), &cluster.namespace().unwrap_or_default());
    let mut found = schedules.list(&ListParams::default()).await?.items;
    found.retain(|schedule| is_of(schedule, cluster));
    found.sort_by_key(|schedule| (!schedule.spec.on_upgrade, schedule.name_any()));
    Ok(found.into_iter().next())
}

fn is_of(schedule: &EtcdBackupSchedule, cluster: &EtcdCluster) -> bool {
    let spec = &schedule.spec;
    let is_meant = spec.on_upgrade || backup_first(cluster) == Some(true);
    is_meant && !spec.suspend && spec.backup_spec().cluster_name.as_deref() == Some(&cluster.name_any())
}

/// Each edit of the cluster has its own: an upgrade that is asked for again later has a later backup.
fn name_of(schedule: &EtcdBackupSchedule, cluster: &EtcdCluster) -> String {
    let schedule: String = schedule.name_any().chars().take(40).collect();
    format!("{}-upgrade-{}", schedule.trim_end_matches(['-', '.']), cluster.metadata.generation.unwrap_or_default())
}

impl Actor<'_> {
    /// Makes the EtcdBackup. The next looks see what becomes of it.
    pub async fn take_backup(&self) -> Result<(), Error> {
        let failed = |error: kube::Error| Error::Api {
            doing: "taking a backup before the upgrade".to_owned(),
            source: Box::new(error),
        };
        let (client, cluster) = (&self.context.client, self.cluster);
        let Some(schedule) = find_schedule(client, cluster).await.map_err(failed)? else {
            return Err(Error::OutOfDate("the schedule of backups is gone".to_owned()));
        };
        let name = name_of(&schedule, cluster);
        let mut backup = EtcdBackup::new(&name, schedule.spec.backup_spec());
        backup.metadata.namespace = cluster.namespace();
        let metadata = schedule.spec.backup_metadata();
        backup.labels_mut().extend(metadata.labels);
        backup.labels_mut().insert(labels::BACKUP_SCHEDULE_NAME.to_owned(), schedule.name_any());
        backup.annotations_mut().extend(metadata.annotations);
        let owner = owner::<EtcdBackupSchedule>(&schedule.name_any(), schedule.uid());
        backup.owner_references_mut().extend(serde_json::from_value(owner).ok());
        let backups: Api<EtcdBackup> = Api::namespaced(client.clone(), &cluster.namespace().unwrap_or_default());
        match backups.create(&PostParams::default(), &backup).await {
            Err(kube::Error::Api(answer)) if answer.code == 409 => return Ok(()),
            created => created.map(drop).map_err(failed)?,
        }
        self.tell("BackingUp", &name, format!("Takes the EtcdBackup {name} before the upgrade")).await
    }
}
