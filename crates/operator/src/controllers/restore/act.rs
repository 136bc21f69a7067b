//! Takes the step of a plan for an EtcdRestore. It is safe to take twice.

use etcd_operator_api::{EtcdCluster, EtcdRestore};
use etcd_operator_core::restore::plan::{NotCreated, Plan, Step};
use kube::ResourceExt;
use kube::api::PostParams;

use super::job::{agent_job_of, name_of_check};
use crate::controllers::agent_job;
use crate::controllers::context::Context;
use crate::runtime::api_errors::ApiError;
use crate::runtime::strict;

/// The inner error is an answer of the API server that the plan has to be made again for.
pub async fn act(restore: &EtcdRestore, plan: &Plan, context: &Context) -> Result<Result<(), NotCreated>, ApiError> {
    match &plan.step {
        Some(Step::CreateCheckJob(from)) => {
            let job = agent_job_of(restore, from, &context.settings);
            agent_job::create(&job, restore, context).await.map(Ok)
        }
        Some(Step::DeleteCheckJob { uid }) => {
            let (name, namespace) = (name_of_check(restore), restore.namespace().unwrap_or_default());
            agent_job::delete(&name, &namespace, uid.clone(), context).await.map(Ok)
        }
        Some(Step::CreateCluster(cluster)) => create_cluster(cluster, context).await,
        None => Ok(Ok(())),
    }
}

async fn create_cluster(cluster: &EtcdCluster, context: &Context) -> Result<Result<(), NotCreated>, ApiError> {
    match strict::create(&context.client, &PostParams::default(), cluster).await {
        Ok(_) => Ok(Ok(())),
        Err(kube::Error::Api(answer)) if answer.code == 409 => Ok(Err(NotCreated::Exists)),
        Err(kube::Error::Api(answer)) if answer.code == 422 || answer.code == 400 => {
            Ok(Err(NotCreated::Refused(answer.message.clone())))
        }
        Err(error) => Err(ApiError::doing(format!("creating the EtcdCluster {:?}", cluster.name_any()))(error)),
    }
}
