//! Collects what is known about an EtcdBackupSchedule, from the caches, or live before anything is done. Changes
//! nothing.

use etcd_operator_api::{EtcdBackup, EtcdBackupSchedule, EtcdCluster, EtcdRestore, labels};
use etcd_operator_core::schedule::plan::{Deletion, Observed, ObservedCluster, Plan, is_to_be_restored, plan};
use etcd_operator_core::schedule::scheduled_backup::{ScheduledBackup, is_of};
use jiff::Timestamp;
use kube::api::ListParams;
use kube::core::DeserializeGuard;
use kube::{Api, ResourceExt};

use super::prune;
use crate::controllers::context::Context;
use crate::runtime::api_errors::ApiError;

/// A schedule with everything that is known about it.
pub struct Observation {
    pub schedule: EtcdBackupSchedule,
    pub backups: Vec<EtcdBackup>,
    pub cluster: ObservedCluster,
    pub deletion: Deletion,
    /// In whole seconds, as in the status.
    now: Timestamp,
}

pub async fn observe(schedule: &EtcdBackupSchedule, context: &Context) -> Result<Observation, ApiError> {
    let cluster = see_cluster(schedule, context).await?;
    let now = Timestamp::now();
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    Ok(Observation {
        schedule: schedule.clone(),
        backups: in_cache(schedule, context),
        cluster,
        deletion: prune::observe(schedule, now, context),
        now,
    })
}

impl Observation {
    pub fn plan(&self) -> Plan {
        let taken: Vec<ScheduledBackup> = self.backups.iter().map(ScheduledBackup::of).collect();
        let (cluster, deletion) = (self.cluster.clone(), self.deletion.clone());
        plan(&Observed { schedule: &self.schedule, taken: &taken, cluster, deletion, now: self.now })
    }

    /// The same schedule, read live from the API server, unless it is gone.
    pub async fn observe_live(&self, context: &Context) -> Result<Option<Observation>, ApiError> {
        let (name, namespace) = (self.schedule.name_any(), self.schedule.namespace().unwrap_or_default());
        let schedules: Api<EtcdBackupSchedule> = Api::namespaced(context.client.clone(), &namespace);
        let read = schedules.get_opt(&name).await;
        let read = read.map_err(ApiError::doing(format!("reading the EtcdBackupSchedule {namespace}/{name}")))?;
        let Some(schedule) = read.filter(|it| it.uid() == self.schedule.uid()) else { return Ok(None) };
        let backups = listed(&schedule, context).await?;
        // Whether backups are deleted is decided last, so the cluster is read once more.
        let cluster = see_cluster(&schedule, context).await?;
        let deletion = prune::observe(&schedule, self.now, context);
        Ok(Some(Observation { schedule, backups, cluster, deletion, now: self.now }))
    }
}

fn in_cache(schedule: &EtcdBackupSchedule, context: &Context) -> Vec<EtcdBackup> {
    let (namespace, uid) = (schedule.namespace().unwrap_or_default(), schedule.uid().unwrap_or_default());
    let all = context.caches.backups.of(&namespace, &schedule.name_any());
    let understood = all.iter().filter_map(|backup| backup.0.as_ref().ok());
    understood.filter(|backup| is_of(backup, &uid)).cloned().collect()
}

/// The EtcdBackups of a schedule, read live from the API server.
async fn listed(schedule: &EtcdBackupSchedule, context: &Context) -> Result<Vec<EtcdBackup>, ApiError> {
    let (name, namespace) = (schedule.name_any(), schedule.namespace().unwrap_or_default());
    let backups: Api<DeserializeGuard<EtcdBackup>> = Api::namespaced(context.client.clone(), &namespace);
    let params = ListParams::default().labels(&format!("{}={name}", labels::BACKUP_SCHEDULE_NAME));
    let listed = backups.list(&params).await;
    let listed = listed.map_err(ApiError::doing(format!("listing the EtcdBackups of {namespace}/{name}")))?;
    let uid = schedule.uid().unwrap_or_default();
    let backups = listed.items.into_iter().filter_map(|backup| backup.0.ok());
    Ok(backups.filter(|backup| is_of(backup, &uid)).collect())
}

/// Reads the cluster live from the API server: a stale cache must not lead to the conclusion that it is gone.
async fn see_cluster(schedule: &EtcdBackupSchedule, context: &Context) -> Result<ObservedCluster, ApiError> {
    let Some(name) = schedule.spec.backup_spec().cluster_name else { return Ok(ObservedCluster::External) };
    let namespace = schedule.namespace().unwrap_or_default();
    let clusters: Api<EtcdCluster> = Api::namespaced(context.client.clone(), &namespace);
    let found = clusters.get_metadata_opt(&name).await;
    let found = found.map_err(ApiError::doing(format!("reading the EtcdCluster {namespace}/{name}")))?;
    match found {
        Some(cluster) => Ok(ObservedCluster::Present { uid: cluster.uid().unwrap_or_default() }),
        None if schedule.spec.delete_with_cluster && is_restored(&name, &namespace, context).await? => {
            Ok(ObservedCluster::ToBeRestored)
        }
        None => Ok(ObservedCluster::Gone),
    }
}

/// Whether an EtcdRestore is about to create the cluster.
async fn is_restored(cluster: &str, namespace: &str, context: &Context) -> Result<bool, ApiError> {
    let restores: Api<EtcdRestore> = Api::namespaced(context.client.clone(), namespace);
    let listed = restores.list(&ListParams::default()).await;
    let listed = listed.map_err(ApiError::doing(format!("listing the EtcdRestores of {namespace}")))?;
    Ok(is_to_be_restored(cluster, &listed.items))
}
