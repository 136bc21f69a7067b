//! The backup before a cluster is upgraded to another minor version, stored where a schedule stores the cluster's
//! backups. Which schedule that is and what an EtcdBackup means is decided in `etcd_operator_core::cluster::upgrade_backup`.

use etcd_operator_api::{EtcdBackup, EtcdBackupSchedule, EtcdCluster, EventReason, labels};
use etcd_operator_core::cluster::observed::BackupFirst;
use etcd_operator_core::cluster::upgrade_backup::{
    CLUSTER_UID, Choice, backup_first, choose, meaning, name_of, without_schedule,
};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use semver::Version;
use tracing::warn;

use super::act::{Actor, Error};
use crate::objects::owner_reference;
use crate::runtime::api_errors::describe;
use crate::runtime::strict;

/// Whether a backup is required, and its state. If that can't be determined, the backup counts as running: the next
/// reconcile may know.
pub async fn observe(client: &Client, cluster: &EtcdCluster) -> BackupFirst {
    if !is_required(cluster) {
        return BackupFirst::NotRequired;
    }
    look_for_backup(client, cluster).await.unwrap_or_else(|error| {
        warn!(error = describe(&error), "cannot find out about the backup before an upgrade");
        BackupFirst::Running("that is to be taken".to_owned())
    })
}

/// Whether the cluster is to be upgraded to a later minor than it runs, and the backup is not disabled.
fn is_required(cluster: &EtcdCluster) -> bool {
    let status = cluster.status.as_ref();
    let accepted = status.and_then(|status| status.target_version.as_deref()).and_then(|it| Version::parse(it).ok());
    let wanted = Version::parse(&cluster.spec.version).ok();
    let goes_up = accepted.zip(wanted).is_some_and(|(accepted, wanted)| wanted.minor > accepted.minor);
    let is_bootstrapped = status.is_some_and(|status| status.cluster_id.is_some());
    goes_up && is_bootstrapped && backup_first(cluster) != Some(false)
}

async fn look_for_backup(client: &Client, cluster: &EtcdCluster) -> kube::Result<BackupFirst> {
    let schedules = list_schedules(client, cluster).await?;
    let choice = choose(&schedules, cluster);
    let Choice::Schedule(schedule) = choice else { return Ok(without_schedule(&choice, cluster)) };
    let backups: Api<EtcdBackup> = Api::namespaced(client.clone(), &cluster.namespace().unwrap_or_default());
    let found = backups.get_opt(&name_of(schedule, cluster)).await?;
    Ok(meaning(found.as_ref(), schedule, cluster))
}

async fn list_schedules(client: &Client, cluster: &EtcdCluster) -> kube::Result<Vec<EtcdBackupSchedule>> {
    let schedules: Api<EtcdBackupSchedule> = Api::namespaced(client.clone(), &cluster.namespace().unwrap_or_default());
    Ok(schedules.list(&ListParams::default()).await?.items)
}

impl Actor<'_> {
    /// Creates the EtcdBackup. Later reconciles observe its state.
    pub async fn take_backup(&self) -> Result<(), Error> {
        let failed = |error: kube::Error| Error::Api {
            doing: "taking a backup before the upgrade".to_owned(),
            source: Box::new(error),
        };
        let (client, cluster) = (&self.context.client, self.cluster);
        let schedules = list_schedules(client, cluster).await.map_err(failed)?;
        let Choice::Schedule(schedule) = choose(&schedules, cluster) else {
            return Err(Error::OutOfDate("the schedule of backups is gone".to_owned()));
        };
        let name = name_of(schedule, cluster);
        let mut backup = EtcdBackup::new(&name, schedule.spec.backup_spec());
        backup.metadata.namespace = cluster.namespace();
        let metadata = schedule.spec.backup_metadata();
        backup.labels_mut().extend(metadata.labels);
        backup.labels_mut().insert(labels::BACKUP_SCHEDULE_NAME.to_owned(), schedule.name_any());
        backup.annotations_mut().extend(metadata.annotations);
        backup.annotations_mut().insert(CLUSTER_UID.to_owned(), cluster.uid().unwrap_or_default());
        backup.owner_references_mut().push(owner_reference(schedule));
        match strict::create(client, &PostParams::default(), &backup).await {
            Err(kube::Error::Api(answer)) if answer.code == 409 => return Ok(()),
            created => created.map(drop).map_err(failed)?,
        }
        self.tell(EventReason::BackingUp, &name, format!("Taking EtcdBackup {name} before the upgrade")).await
    }
}
