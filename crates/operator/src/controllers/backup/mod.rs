//! The reconcile of an EtcdBackup: a Job takes it, an optional second one verifies it, and the status reports the
//! result.
//!
//! `observe` reads caches and the API server, `act` takes the step of the plan, with `job` and `verify` for what the
//! Jobs are. What to do next is decided in `etcd_operator_core::backup`.

mod act;
pub mod job;
mod observe;
pub mod verify;

use etcd_operator_api::EtcdBackup;
use etcd_operator_core::backup::observed::is_over;
use etcd_operator_core::backup::plan::plan;
use kube::runtime::controller::Action;

use super::context::Context;
use super::report::report;
use crate::runtime::api_errors::ApiError;

pub async fn reconcile(backup: &EtcdBackup, context: &Context) -> Result<Action, ApiError> {
    if is_over(backup) {
        return Ok(Action::await_change());
    }
    let observed = observe::observe(backup, context).await?;
    let plan = plan(&observed);
    act::act(backup, &plan, context).await?;
    report(backup, &plan.status, &plan.notices, context).await?;
    Ok(plan.again.map_or_else(Action::await_change, Action::requeue))
}
