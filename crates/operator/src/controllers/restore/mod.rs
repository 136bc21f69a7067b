//! The reconcile of an EtcdRestore: a Job reads the backup completely, and only then a new EtcdCluster is created that
//! is bootstrapped from it.
//!
//! `observe` reads caches and the API server, `act` takes the step of the plan, with `job` for what the Job is.
//! What to do next is decided in `etcd_operator_core::restore`.

mod act;
pub mod job;
mod observe;

use etcd_operator_api::EtcdRestore;
use etcd_operator_core::restore::observed::is_over;
use etcd_operator_core::restore::plan::{plan, plan_without_cluster};
use kube::runtime::controller::Action;

use super::context::Context;
use super::report::report;
use crate::runtime::api_errors::ApiError;

pub async fn reconcile(restore: &EtcdRestore, context: &Context) -> Result<Action, ApiError> {
    if is_over(restore) {
        return Ok(Action::await_change());
    }
    let observed = observe::observe(restore, context).await?;
    let mut plan = plan(&observed);
    if let Err(why) = act::act(restore, &plan, context).await? {
        plan = plan_without_cluster(&observed, why);
    }
    report(restore, &plan.status, &plan.notices, context).await?;
    Ok(plan.again.map_or_else(Action::await_change, Action::requeue))
}
