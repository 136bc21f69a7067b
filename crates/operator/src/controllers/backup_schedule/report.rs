//! Writes the status of an EtcdBackupSchedule, if it changed, and publishes what is worth an event.

use etcd_operator_api::{EtcdBackupSchedule, ScheduleEventReason};
use etcd_operator_core::notice::Notice;
use etcd_operator_core::schedule::plan::Plan;
use tracing::debug;

use crate::controllers::context::Context;
use crate::controllers::notices;
use crate::runtime::api_errors::ApiError;
use crate::runtime::status;

pub async fn report(plan: &Plan, schedule: &EtcdBackupSchedule, context: &Context) -> Result<(), ApiError> {
    if schedule.status.as_ref() == Some(&plan.status) {
        return Ok(());
    }
    debug!(status = ?plan.status, "reporting");
    status::write(schedule, &plan.status, &context.client).await?;
    notices::publish(&plan.notices, schedule, context).await;
    Ok(())
}

/// Reports that the plan could not be carried out.
pub async fn report_failure(schedule: &EtcdBackupSchedule, error: &ApiError, context: &Context) {
    let notice = Notice::of(ScheduleEventReason::BackupNotStarted, error.to_string());
    context.events.publish(schedule, &notice).await;
}
