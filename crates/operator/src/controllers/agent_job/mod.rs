//! An agent job: a Job of this operator whose pod executes one task and reports the result when it terminates.
//!
//! `job` builds it; here it is observed, created and deleted. What its state means is decided in
//! `etcd_operator_core::agent_job`.

use crate::runtime::strict;
mod job;

use std::sync::Arc;

use etcd_operator_api::labels;
use etcd_operator_core::agent_job::{JobPod, ObservedJob, progress_of};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PostParams, Preconditions, PropagationPolicy};
use kube::runtime::watcher;
use kube::{Api, Resource, ResourceExt};

use super::context::Context;
use crate::objects::pod_problem::problem_of;
use crate::runtime::api_errors::ApiError;

pub use job::{Access, AgentJob, agent, pod, pod_of_agent};

/// The label that distinguishes agent Jobs and their pods from the pods of clusters.
const APP_NAME: &str = "etcd-agent";
/// The same label on what earlier operators created, which may still run.
const EARLIER_APP_NAME: &str = "etcd-errand";

/// Which Jobs and pods to watch.
pub fn labelled_agent_jobs() -> watcher::Config {
    watcher::Config::default().labels(&format!("{} in ({APP_NAME},{EARLIER_APP_NAME})", labels::APP))
}

/// The name of the Job that does something for an object. No other object ever has the same, not even one that is
/// recreated under its name.
pub fn name_of<K: Resource>(kind: &str, object: &K) -> String {
    let name: String = object.name_any().chars().take(40).map(|c| if c == '.' { '-' } else { c }).collect();
    let uid: String = object.uid().unwrap_or_default().chars().take(8).collect();
    format!("{kind}-{}-{uid}", name.trim_end_matches('-'))
}

/// Observes an agent job in the caches.
pub fn observe(name: &str, namespace: &str, now: Timestamp, context: &Context) -> ObservedJob {
    let Some(job) = context.caches.jobs.get(namespace, name) else { return ObservedJob::none() };
    let pods: Vec<Arc<Pod>> = context.caches.job_pods.of(namespace, name);
    let is_of_job = |pod: &&Arc<Pod>| pod.owner_references().iter().any(|owner| Some(&owner.uid) == job.uid().as_ref());
    let pods = pods.iter().filter(is_of_job);
    let pods: Vec<JobPod> =
        pods.map(|pod| JobPod { pod, problem: problem_of(pod).map(|problem| problem.message) }).collect();
    ObservedJob { progress: progress_of(&job, &pods, now), uid: job.uid() }
}

/// Creates the Job for an object, if it does not exist.
pub async fn create<K>(agent_job: &AgentJob, object: &K, context: &Context) -> Result<(), ApiError>
where
    K: Resource<DynamicType = ()>,
{
    match strict::create(&context.client, &PostParams::default(), &agent_job.job(object)).await {
        Err(kube::Error::Api(answer)) if answer.code == 409 && answer.reason == "AlreadyExists" => Ok(()),
        created => created.map(drop).map_err(ApiError::doing(format!("creating the Job {:?}", agent_job.name))),
    }
}

/// Deletes a Job with its pods, if it is still the one that was observed.
pub async fn delete(name: &str, namespace: &str, uid: Option<String>, context: &Context) -> Result<(), ApiError> {
    let jobs: Api<Job> = Api::namespaced(context.client.clone(), namespace);
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        preconditions: Some(Preconditions { uid, resource_version: None }),
        ..DeleteParams::default()
    };
    match jobs.delete(name, &params).await {
        Err(kube::Error::Api(answer)) if answer.code == 404 || answer.code == 409 => Ok(()),
        deleted => deleted.map(drop).map_err(ApiError::doing(format!("deleting the Job {name:?}"))),
    }
}

#[cfg(test)]
mod tests;
