//! Collects what is known about an EtcdBackup. Changes nothing.

use etcd_operator_api::{EtcdBackup, EtcdBackupSchedule, EtcdCluster};
use etcd_operator_core::agent_job::Progress;
use etcd_operator_core::backup::observed::{JobKind, Observed, ObservedCluster, ObservedSchedule};
use etcd_operator_core::backup::task::awaits_schedule;
use jiff::Timestamp;
use kube::{Api, ResourceExt};

use crate::controllers::agent_job;
use crate::controllers::context::Context;
use crate::controllers::identity::identity_of;
use crate::runtime::api_errors::ApiError;

pub async fn observe<'a>(backup: &'a EtcdBackup, context: &Context) -> Result<Observed<'a>, ApiError> {
    let now = Timestamp::now();
    let name = agent_job::name_of(JobKind::of(backup).prefix(), backup);
    let job = agent_job::observe(&name, &backup.namespace().unwrap_or_default(), now, context);
    // Cluster and schedule matter only to a Job that is yet to be created.
    let cluster = match job.progress {
        Progress::NotBegun => source_cluster(backup, context).await?,
        _ => ObservedCluster::NotRead,
    };
    let mut observed = Observed { backup, job, cluster, schedule: None, now };
    if awaits_schedule(&observed) {
        observed.schedule = observe_schedule(backup, context).await?;
    }
    Ok(observed)
}

/// Reads the cluster live: its members may have changed a moment ago.
async fn source_cluster(backup: &EtcdBackup, context: &Context) -> Result<ObservedCluster, ApiError> {
    let Some(name) = &backup.spec.cluster_name else { return Ok(ObservedCluster::NotRead) };
    let clusters: Api<EtcdCluster> = Api::namespaced(context.client.clone(), &backup.namespace().unwrap_or_default());
    let found = clusters.get_opt(name).await;
    let found = found.map_err(ApiError::doing(format!("reading the EtcdCluster {name:?}")))?;
    let present = |cluster| ObservedCluster::present(&cluster, &context.domain);
    Ok(found.map_or(ObservedCluster::Missing, present))
}

async fn observe_schedule(backup: &EtcdBackup, context: &Context) -> Result<Option<ObservedSchedule>, ApiError> {
    let Some(schedule) = schedule_of(backup, context) else { return Ok(None) };
    let identity = identity_of(&schedule, &context.client).await?;
    Ok(Some(ObservedSchedule { schedule: Box::new(schedule), identity }))
}

/// The schedule that created this backup, if one did and it still exists.
fn schedule_of(backup: &EtcdBackup, context: &Context) -> Option<EtcdBackupSchedule> {
    let owner = backup.owner_references().iter().find(|owner| owner.kind == "EtcdBackupSchedule")?;
    let schedule = context.caches.schedules.get(&backup.namespace()?, &owner.name)?;
    let schedule = schedule.0.as_ref().ok().filter(|schedule| schedule.uid().as_ref() == Some(&owner.uid));
    schedule.cloned()
}
