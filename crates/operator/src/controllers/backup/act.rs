//! Takes the step of a plan for an EtcdBackup. It is safe to take twice.

use etcd_operator_api::EtcdBackup;
use etcd_operator_core::backup::plan::{Plan, Step};
use kube::ResourceExt;

use super::{job, verify};
use crate::controllers::agent_job;
use crate::controllers::context::Context;
use crate::runtime::api_errors::ApiError;

pub async fn act(backup: &EtcdBackup, plan: &Plan, context: &Context) -> Result<(), ApiError> {
    match &plan.step {
        Some(Step::CreateBackupJob(task)) => {
            let job = job::agent_job_of(backup, task.as_ref().clone(), &context.settings);
            agent_job::create(&job, backup, context).await
        }
        Some(Step::CreateVerifyJob { from, version, image }) => {
            let job = verify::agent_job_of(backup, from, version, image.as_ref(), &context.settings);
            agent_job::create(&job, backup, context).await
        }
        Some(Step::DeleteJob { kind, uid }) => {
            let name = agent_job::name_of(kind.prefix(), backup);
            agent_job::delete(&name, &backup.namespace().unwrap_or_default(), uid.clone(), context).await
        }
        None => Ok(()),
    }
}
