//! The reconcile of an EtcdBackupSchedule: creates an EtcdBackup whenever one is due, deletes old ones, and reports.
//!
//! `observe` reads caches and the API server; `act` creates and deletes EtcdBackups, with `prune` for the agent job that
//! deletes the stored backups of a cluster that is gone. What is due, and what may be deleted, is decided in
//! `etcd_operator_core::schedule`.

mod act;
mod observe;
pub mod prune;

use etcd_operator_api::{EtcdBackupSchedule, ScheduleEventReason};
use etcd_operator_core::notice::Notice;
use jiff::Timestamp;
use kube::runtime::controller::Action;

use super::context::Context;
use super::report::report;
use crate::runtime::api_errors::ApiError;

pub async fn reconcile(schedule: &EtcdBackupSchedule, context: &Context) -> Result<Action, ApiError> {
    if schedule.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let mut observation = observe::observe(schedule, context).await?;
    let mut planned = observation.plan();
    let mut acted = Ok(());
    if !planned.is_idle() {
        // Caches may be stale, and what was done must not be repeated.
        let Some(live) = observation.observe_live(context).await? else { return Ok(Action::await_change()) };
        observation = live;
        planned = observation.plan();
        acted = act::act(&planned, &mut observation, context).await;
        planned = observation.plan();
    }
    report(&observation.schedule, &planned.status, &planned.notices, context).await?;
    if let Err(error) = acted {
        let notice = Notice::of(ScheduleEventReason::BackupNotStarted, error.to_string());
        context.events.publish(schedule, &notice).await;
        return Err(error);
    }
    let again = planned.requeue_after(&observation.schedule, Timestamp::now());
    Ok(again.map_or_else(Action::await_change, Action::requeue))
}
