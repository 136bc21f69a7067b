//! The reconcile of an EtcdBackupSchedule: creates an EtcdBackup whenever one is due, deletes old ones, and reports.
//!
//! `observe` reads caches and the API server; `act` creates and deletes EtcdBackups, with `prune` for the agent job that
//! deletes the stored backups of a cluster that is gone; `report` writes the status. What is due, and what may be
//! deleted, is decided in `etcd_operator_core::schedule`.

mod act;
mod observe;
pub mod prune;
mod report;

use etcd_operator_api::EtcdBackupSchedule;
use jiff::Timestamp;
use kube::runtime::controller::Action;

use super::context::Context;
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
    report::report(&planned, &observation.schedule, context).await?;
    if let Err(error) = acted {
        report::report_failure(schedule, &error, context).await;
        return Err(error);
    }
    let again = planned.requeue_after(&observation.schedule, Timestamp::now());
    Ok(again.map_or_else(Action::await_change, Action::requeue))
}
