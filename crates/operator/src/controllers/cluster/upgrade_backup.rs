//! The backup before a cluster is upgraded to another minor version, stored where a schedule stores the cluster's
//! backups. Which schedule that is and what an EtcdBackup means is decided in `etcd_operator_core::cluster::upgrade_backup`.

use etcd_operator_api::{EtcdBackup, EtcdBackupSchedule, EtcdCluster};
use etcd_operator_core::cluster::observed::BackupFirst;
use etcd_operator_core::cluster::upgrade_backup::{Choice, backup_first, choose, meaning, name_of, without_schedule};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use semver::Version;
use tracing::warn;

use crate::runtime::api_errors::describe;

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

pub async fn list_schedules(client: &Client, cluster: &EtcdCluster) -> kube::Result<Vec<EtcdBackupSchedule>> {
    let schedules: Api<EtcdBackupSchedule> = Api::namespaced(client.clone(), &cluster.namespace().unwrap_or_default());
    Ok(schedules.list(&ListParams::default()).await?.items)
}
