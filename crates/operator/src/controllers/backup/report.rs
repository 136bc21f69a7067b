//! Writes the status of an EtcdBackup, if it changed, and publishes what is worth an event.

use etcd_operator_api::EtcdBackup;
use etcd_operator_core::backup::plan::Plan;

use crate::controllers::context::Context;
use crate::controllers::notices;
use crate::runtime::api_errors::ApiError;
use crate::runtime::status;

pub async fn report(backup: &EtcdBackup, plan: &Plan, context: &Context) -> Result<(), ApiError> {
    if backup.status.clone().unwrap_or_default() == plan.status {
        return Ok(());
    }
    status::write(backup, &plan.status, &context.client).await?;
    notices::publish(&plan.notices, backup, context).await;
    Ok(())
}
