//! Writes the status of an EtcdRestore, if it changed, and publishes what is worth an event.

use etcd_operator_api::EtcdRestore;
use etcd_operator_core::restore::plan::Plan;

use crate::controllers::context::Context;
use crate::controllers::notices;
use crate::runtime::api_errors::ApiError;
use crate::runtime::status;

pub async fn report(restore: &EtcdRestore, plan: &Plan, context: &Context) -> Result<(), ApiError> {
    if restore.status.clone().unwrap_or_default() == plan.status {
        return Ok(());
    }
    status::write(restore, &plan.status, &context.client).await?;
    notices::publish(&plan.notices, restore, context).await;
    Ok(())
}
