//! The reconcile of an EtcdBackupSchedule: creates an EtcdBackup whenever one is due, deletes old ones, and reports.
//!
//! `act` creates and deletes EtcdBackups, `prune` runs the agent job that deletes the stored backups of a cluster that
//! is gone. What is due, and what may be deleted, is decided in `etcd_operator_core::schedule`.

mod act;
pub mod prune;

use std::time::Duration;

use etcd_operator_api::{EtcdBackup, EtcdBackupSchedule, EtcdCluster, EtcdRestore, labels};
use etcd_operator_core::schedule::plan::{Deletion, Observed, ObservedCluster, Plan, is_to_be_restored, plan};
use etcd_operator_core::schedule::scheduled_backup::{ScheduledBackup, is_of};
use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use kube::core::DeserializeGuard;
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt};
use tracing::debug;

use super::context::Context;
use crate::runtime::api_errors::ApiError;
use crate::runtime::status;

pub use prune::location_of_all;

/// The longest requeue: clocks are adjusted, and machines are suspended and resumed.
const AT_MOST: Duration = Duration::from_secs(3600);
const WHILE_THE_CLUSTER_MAY_GO: Duration = Duration::from_secs(30);
const AT_LEAST: Duration = Duration::from_millis(100);

/// A schedule with everything that is known about it.
struct Observation {
    schedule: EtcdBackupSchedule,
    backups: Vec<EtcdBackup>,
    cluster: ObservedCluster,
    deletion: Deletion,
}

pub async fn reconcile(schedule: &EtcdBackupSchedule, context: &Context) -> Result<Action, ApiError> {
    if schedule.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let cluster = see_cluster(schedule, context).await?;
    let deletion = prune::observed(schedule, context).await?;
    let mut observation =
        Observation { schedule: schedule.clone(), backups: in_cache(schedule, context), cluster, deletion };
    let now = Timestamp::now();
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let mut planned = observation.plan(now);
    let mut acted = Ok(());
    if !is_idle(&planned) {
        // Caches may be stale, and what was done must not be repeated.
        let Some(live) = observation.observe_live(context).await? else { return Ok(Action::await_change()) };
        observation = live;
        planned = observation.plan(now);
        acted = carry_out(&planned, &mut observation, context).await;
        planned = observation.plan(now);
    }
    report(&planned, &observation.schedule, context).await?;
    if let Err(error) = acted {
        context.events.failed(schedule, "BackupNotStarted", error.to_string()).await;
        return Err(error);
    }
    // The cluster is not watched here, so its deletion is not noticed by itself.
    let watches_cluster = observation.schedule.spec.delete_with_cluster;
    let at_most = if watches_cluster { WHILE_THE_CLUSTER_MAY_GO } else { AT_MOST };
    let time = planned.again.map(|again| time_until(again, at_most)).or(watches_cluster.then_some(at_most));
    Ok(time.map_or_else(Action::await_change, Action::requeue))
}

impl Observation {
    fn plan(&self, now: Timestamp) -> Plan {
        let taken: Vec<ScheduledBackup> = self.backups.iter().map(ScheduledBackup::of).collect();
        let (cluster, deletion) = (self.cluster.clone(), self.deletion.clone());
        plan(&Observed { schedule: &self.schedule, taken: &taken, cluster, deletion, now })
    }

    /// The same schedule, read live from the API server, unless it is gone.
    async fn observe_live(&self, context: &Context) -> Result<Option<Observation>, ApiError> {
        let (name, namespace) = (self.schedule.name_any(), self.schedule.namespace().unwrap_or_default());
        let schedules: Api<EtcdBackupSchedule> = Api::namespaced(context.client.clone(), &namespace);
        let read = schedules.get_opt(&name).await;
        let read = read.map_err(ApiError::doing(format!("reading the EtcdBackupSchedule {namespace}/{name}")))?;
        let Some(schedule) = read.filter(|it| it.uid() == self.schedule.uid()) else { return Ok(None) };
        let backups: Api<DeserializeGuard<EtcdBackup>> = Api::namespaced(context.client.clone(), &namespace);
        let params = ListParams::default().labels(&format!("{}={name}", labels::BACKUP_SCHEDULE_NAME));
        let listed = backups.list(&params).await;
        let listed = listed.map_err(ApiError::doing(format!("listing the EtcdBackups of {namespace}/{name}")))?;
        let uid = schedule.uid().unwrap_or_default();
        let backups = listed.items.into_iter().filter_map(|backup| backup.0.ok());
        let backups = backups.filter(|backup| is_of(backup, &uid)).collect();
        // Whether backups are deleted is decided last, so the cluster is read once more.
        let cluster = see_cluster(&schedule, context).await?;
        let deletion = prune::observed(&schedule, context).await?;
        Ok(Some(Observation { schedule, backups, cluster, deletion }))
    }
}

fn is_idle(plan: &Plan) -> bool {
    plan.begin.is_none()
        && plan.delete_backups_of.is_none()
        && !plan.stop_deleting
        && plan.beyond_history_limits.is_empty()
}

fn in_cache(schedule: &EtcdBackupSchedule, context: &Context) -> Vec<EtcdBackup> {
    let (namespace, uid) = (schedule.namespace().unwrap_or_default(), schedule.uid().unwrap_or_default());
    let all = context.caches.backups.of(&namespace, &schedule.name_any());
    let understood = all.iter().filter_map(|backup| backup.0.as_ref().ok());
    understood.filter(|backup| is_of(backup, &uid)).cloned().collect()
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

/// Executes the plan. Created EtcdBackups are added to the observation, so that the next plan includes them.
async fn carry_out(plan: &Plan, observation: &mut Observation, context: &Context) -> Result<(), ApiError> {
    if let Some(begin) = &plan.begin {
        for backup in act::named(&observation.backups, &plan.stop) {
            act::delete(backup, context).await?;
            let name = backup.name_any();
            let note = format!("Stopped {name}, because the next backup is due");
            context.events.done(&observation.schedule, "BackupReplaced", &name, note).await;
        }
        let made = act::make(&observation.schedule, begin, context).await?;
        observation.backups.retain(|backup| !plan.stop.contains(&backup.name_any()) && backup.uid() != made.uid());
        observation.backups.push(made);
    }
    if plan.stop_deleting {
        prune::stop(&observation.schedule, context).await?;
        observation.deletion = Deletion::NotBegun;
    }
    if let Some(cluster) = &plan.delete_backups_of {
        prune::begin(&observation.schedule, cluster, context).await?;
        observation.deletion = Deletion::Runs { trouble: None };
    }
    // Only the status keeps their results, so they are deleted after it is written.
    if observation.schedule.status.as_ref() == Some(&plan.status) {
        for backup in act::named(&observation.backups, &plan.beyond_history_limits) {
            act::delete(backup, context).await?;
        }
    }
    Ok(())
}

async fn report(plan: &Plan, schedule: &EtcdBackupSchedule, context: &Context) -> Result<(), ApiError> {
    if schedule.status.as_ref() == Some(&plan.status) {
        return Ok(());
    }
    debug!(status = ?plan.status, "reporting");
    status::write(schedule, &plan.status, &context.client).await?;
    for notice in &plan.notices {
        if notice.is_bad {
            context.events.failed(schedule, &notice.reason, notice.note.clone()).await;
        } else {
            context.events.done(schedule, &notice.reason, &schedule.name_any(), notice.note.clone()).await;
        }
    }
    Ok(())
}

fn time_until(time: Timestamp, at_most: Duration) -> Duration {
    let left = time.duration_since(Timestamp::now()).max(SignedDuration::ZERO);
    left.unsigned_abs().clamp(AT_LEAST, at_most)
}
