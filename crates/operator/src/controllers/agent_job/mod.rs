//! An agent job: a Job of this operator whose pod executes one task and reports the result when it terminates.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use etcd_operator_api::{Credentials, Decryption, JobPodTemplate, labels};
use etcd_operator_protocol::report::{Done, FAILED_FOR_GOOD, Failure, Report};
use etcd_operator_protocol::task::Task;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};
use kube::api::{DeleteParams, PostParams, Preconditions, PropagationPolicy};
use kube::runtime::watcher;
use kube::{Api, Resource, ResourceExt};
use serde_json::{Value, json};

use super::context::Context;
use crate::objects::pod::{Settings, USER, locked_down};
use crate::objects::{locations, owner_reference, pod_problem};
use crate::runtime::api_errors::ApiError;

/// The label that distinguishes agent Jobs and their pods from the pods of clusters.
const APP_NAME: &str = "etcd-agent";
/// The same label on what earlier operators created, which may still run.
const EARLIER_APP_NAME: &str = "etcd-errand";

/// The container whose report counts.
pub const AGENT: &str = "agent";
/// How long a finished agent job is kept. By then its result is long recorded.
const KEPT_FOR: Duration = Duration::from_secs(3600);
/// How long a pod may wait for something that is missing, such as its Secret, before the job fails.
const WAITS_FOR: Duration = Duration::from_secs(120);

/// Which Jobs and pods to watch.
pub fn labelled_agent_jobs() -> watcher::Config {
    watcher::Config::default().labels(&format!("{} in ({APP_NAME},{EARLIER_APP_NAME})", labels::APP))
}

/// A Job to create.
pub struct AgentJob {
    pub name: String,
    /// The label that names the object which the job is run for.
    pub label: &'static str,
    pub pod: Value,
    pub template: JobPodTemplate,
    pub retries: i32,
    pub deadline: Duration,
}

/// The name of the Job that does something for an object. No other object ever has the same, not even one that is
/// recreated under its name.
pub fn name_of<K: Resource>(kind: &str, object: &K) -> String {
    let name: String = object.name_any().chars().take(40).map(|c| if c == '.' { '-' } else { c }).collect();
    let uid: String = object.uid().unwrap_or_default().chars().take(8).collect();
    format!("{kind}-{}-{uid}", name.trim_end_matches('-'))
}

impl AgentJob {
    fn job<K: Resource<DynamicType = ()>>(&self, object: &K) -> Value {
        let own =
            BTreeMap::from([(labels::APP.to_owned(), APP_NAME.to_owned()), (self.label.to_owned(), object.name_any())]);
        let mut of_pod = self.template.labels();
        of_pod.extend(own.clone());
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": self.name,
                "namespace": object.namespace(),
                "labels": own,
                "ownerReferences": [owner_reference(object)],
            },
            "spec": {
                "backoffLimit": self.retries,
                "activeDeadlineSeconds": self.deadline.as_secs(),
                "ttlSecondsAfterFinished": KEPT_FOR.as_secs(),
                "podFailurePolicy": {"rules": [
                    {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [FAILED_FOR_GOOD]}},
                ]},
                "template": {
                    "metadata": {"labels": of_pod, "annotations": self.template.annotations()},
                    "spec": self.pod,
                },
            },
        })
    }

    /// Creates the Job, if it does not exist.
    pub async fn begin<K>(&self, object: &K, context: &Context) -> Result<(), ApiError>
    where
        K: Resource<DynamicType = ()>,
    {
        let doing = format!("creating the Job {:?}", self.name);
        let job: Job = serde_json::from_value(self.job(object))
            .map_err(|error| ApiError { doing: doing.clone(), source: Box::new(kube::Error::SerdeError(error)) })?;
        let jobs: Api<Job> = Api::namespaced(context.client.clone(), &object.namespace().unwrap_or_default());
        match jobs.create(&PostParams::default(), &job).await {
            Err(kube::Error::Api(answer)) if answer.code == 409 && answer.reason == "AlreadyExists" => Ok(()),
            created => created.map(drop).map_err(ApiError::doing(doing)),
        }
    }
}

/// What the pods of all agent jobs have in common.
pub fn pod(template: &JobPodTemplate, credentials: Option<&Credentials>, parts: Value) -> Value {
    let mut pod = json!({
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 30,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "serviceAccountName": credentials.and_then(|it| it.service_account_name.clone()),
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "affinity": template.affinity,
        "tolerations": template.tolerations,
        "nodeSelector": template.node_selector,
        "priorityClassName": template.priority_class_name,
        "imagePullSecrets": template.image_pull_secrets,
    });
    if let (Value::Object(pod), Value::Object(parts)) = (&mut pod, parts) {
        pod.extend(parts);
    }
    pod
}

/// A container with the operator's image that executes a task.
pub fn agent(
    name: &str,
    task: &Task,
    credentials: Option<&Credentials>,
    decryption: Option<&Decryption>,
    template: &JobPodTemplate,
    settings: &Settings,
) -> Value {
    let resources = template.resources.as_ref().map_or_else(
        // The data is streamed, so memory does not depend on the size of the database.
        || json!({"requests": {"cpu": "100m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}}),
        |resources| json!(resources),
    );
    json!({
        "name": name,
        "image": settings.agent_image,
        "imagePullPolicy": settings.pull_policy,
        "command": ["/agent"],
        "env": locations::environment(task, credentials, decryption),
        "resources": resources,
        "securityContext": locked_down(),
        "terminationMessagePolicy": "File",
    })
}

/// The progress of an agent job.
#[derive(Debug, PartialEq)]
pub enum Progress {
    NotBegun,
    Running {
        attempts: i32,
        /// Why it makes no progress, if it doesn't.
        trouble: Option<String>,
    },
    Done {
        attempts: i32,
        done: Box<Done>,
    },
    Failed {
        attempts: i32,
        reason: String,
        message: String,
    },
    /// It succeeded, but its report is lost. Running it again does no harm, and reports.
    NoReport,
}

/// The progress of an agent job, and the UID of the Job that it was observed on.
pub struct JobState {
    pub progress: Progress,
    pub job: Option<String>,
}

/// Observes an agent job in the caches.
pub fn observe(name: &str, namespace: &str, context: &Context) -> JobState {
    let Some(job) = context.caches.jobs.get(namespace, name) else {
        return JobState { progress: Progress::NotBegun, job: None };
    };
    let is_of_job = |pod: &Arc<Pod>| pod.owner_references().iter().any(|owner| Some(&owner.uid) == job.uid().as_ref());
    let pods: Vec<Arc<Pod>> = context.caches.job_pods.of(namespace, name).into_iter().filter(is_of_job).collect();
    JobState { progress: progress_of(&job, &pods, jiff::Timestamp::now().as_second()), job: job.uid() }
}

fn progress_of(job: &Job, pods: &[Arc<Pod>], now: i64) -> Progress {
    let mut pods: Vec<&Pod> = pods.iter().map(Arc::as_ref).collect();
    pods.sort_by_key(|pod| std::cmp::Reverse(pod.creation_timestamp().map(|time| time.0)));
    let status = job.status.clone().unwrap_or_default();
    let has = |type_: &str| {
        let mut conditions = status.conditions.iter().flatten();
        conditions.find(|condition| condition.type_ == type_ && condition.status == "True")
    };
    let attempts = status.failed.unwrap_or_default() + status.active.unwrap_or_default();
    let attempts = attempts + status.succeeded.unwrap_or_default();
    let failure = pods.iter().find_map(|pod| failure_of(pod));
    if has("Complete").is_some() {
        let done = pods.iter().find_map(|pod| done_of(pod));
        return done.map_or(Progress::NoReport, |done| Progress::Done { attempts, done: Box::new(done) });
    }
    if let Some(condition) = has("Failed") {
        let of_job = condition.message.clone().unwrap_or_default();
        let (reason, message) = match (failure, condition.reason.as_deref()) {
            (Some((_, message)), Some("DeadlineExceeded")) => {
                ("DeadlineExceeded".to_owned(), format!("it took too long; at last: {message}"))
            }
            (Some(failure), _) => failure,
            (None, Some("DeadlineExceeded")) => ("DeadlineExceeded".to_owned(), "it took too long".to_owned()),
            (None, reason) => (reason.unwrap_or("Failed").to_owned(), of_job),
        };
        return Progress::Failed { attempts, reason, message };
    }
    let waits = pods.first().and_then(|pod| Some((pod.creation_timestamp()?, pod_problem::problem_of(pod)?)));
    if let Some((created, problem)) = waits {
        let waited = now - created.0.as_second();
        if waited > WAITS_FOR.as_secs().cast_signed() {
            return Progress::Failed { attempts, reason: "PodCannotStart".to_owned(), message: problem.message };
        }
        return Progress::Running { attempts, trouble: Some(problem.message) };
    }
    Progress::Running { attempts, trouble: failure.map(|(_, message)| message) }
}

fn containers(pod: &Pod) -> impl Iterator<Item = (&ContainerStatus, &ContainerStateTerminated)> {
    let status = pod.status.iter();
    let all = status.flat_map(|it| it.init_container_statuses.iter().chain(&it.container_statuses)).flatten();
    all.filter_map(|container| Some((container, container.state.as_ref()?.terminated.as_ref()?)))
}

fn report_of(ended: &ContainerStateTerminated) -> Option<Report> {
    serde_json::from_str(ended.message.as_deref()?).ok()
}

fn done_of(pod: &Pod) -> Option<Done> {
    let (_, ended) = containers(pod).find(|(container, _)| container.name == AGENT)?;
    match report_of(ended)? {
        Report::Done(done) => Some(*done),
        Report::Failed(_) | Report::Refused(_) => None,
    }
}

/// Why a pod failed: a one-word reason and a sentence.
fn failure_of(pod: &Pod) -> Option<(String, String)> {
    let (container, ended) = containers(pod).find(|(_, ended)| ended.exit_code != 0)?;
    Some(match report_of(ended) {
        Some(Report::Failed(Failure { reason, message })) => (format!("{reason:?}"), message),
        _ => {
            let reason = ended.reason.clone().unwrap_or_else(|| "Error".to_owned());
            let words = ended.message.as_deref().map(str::trim).filter(|words| !words.is_empty());
            let words = words.map(|words| format!(": {words}")).unwrap_or_default();
            let (name, code) = (&container.name, ended.exit_code);
            let message = format!("the container {name} ended with exit code {code} ({reason}){words}");
            (reason, message)
        }
    })
}

/// Deletes a Job with its pods, if it is still the one that was observed.
pub async fn end(name: &str, namespace: &str, uid: Option<String>, context: &Context) -> Result<(), ApiError> {
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
mod golden;

#[cfg(test)]
mod tests {
    use super::*;

    fn job(status: Value) -> Job {
        serde_json::from_value(json!({"metadata": {"name": "j"}, "spec": {"template": {}}, "status": status})).unwrap()
    }

    fn ended(name: &str, code: i32, reason: &str, message: &str) -> Value {
        let state = json!({"terminated": {"exitCode": code, "reason": reason, "message": message}});
        json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state})
    }

    /// The n-th pod of a Job.
    fn pod(number: i32, status: Value) -> Arc<Pod> {
        let created = format!("2026-01-01T00:0{number}:00Z");
        let pod = json!({"metadata": {"name": "p", "creationTimestamp": created}, "status": status});
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn failed_pod(number: i32, message: &str) -> Arc<Pod> {
        let report = json!({"end": "failed", "reason": "AccessDenied", "message": message}).to_string();
        pod(number, json!({"containerStatuses": [ended(AGENT, 1, "Error", &report)]}))
    }

    const COMPLETE: &str = r#"{"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}"#;

    fn given_up(reason: &str) -> Job {
        let condition = json!({"type": "Failed", "status": "True", "reason": reason, "message": "given up"});
        job(json!({"failed": 3, "conditions": [condition]}))
    }

    #[test]
    fn jobs_of_earlier_operators_are_watched_too() {
        let selector = labelled_agent_jobs().label_selector;
        assert_eq!(selector.as_deref(), Some("app.kubernetes.io/name in (etcd-agent,etcd-errand)"));
    }

    #[test]
    fn what_it_said_in_the_end_counts() {
        let job = job(serde_json::from_str(COMPLETE).unwrap());
        let said = ended(AGENT, 0, "Completed", r#"{"end": "done"}"#);
        let done = Progress::Done { attempts: 1, done: Box::default() };
        assert_eq!(progress_of(&job, &[pod(1, json!({"containerStatuses": [said]}))], 0), done);
        assert_eq!(progress_of(&job, &[], 0), Progress::NoReport, "its pod is gone");
        let silent = ended(AGENT, 0, "Completed", "");
        assert_eq!(progress_of(&job, &[pod(1, json!({"containerStatuses": [silent]}))], 0), Progress::NoReport);
    }

    #[test]
    fn the_last_failure_is_why_it_failed() {
        let pods = [failed_pod(2, "second"), failed_pod(1, "first")];
        let failed = |reason: &str, message: &str| Progress::Failed {
            attempts: 3,
            reason: reason.to_owned(),
            message: message.to_owned(),
        };
        assert_eq!(progress_of(&given_up("BackoffLimitExceeded"), &pods, 0), failed("AccessDenied", "second"));
        let late = progress_of(&given_up("DeadlineExceeded"), &pods, 0);
        assert_eq!(late, failed("DeadlineExceeded", "it took too long; at last: second"));
        let unknown = progress_of(&given_up("BackoffLimitExceeded"), &[], 0);
        assert_eq!(unknown, failed("BackoffLimitExceeded", "given up"));
    }

    #[test]
    fn a_pod_that_was_killed_has_a_reason_too() {
        let killed = pod(1, json!({"containerStatuses": [ended(AGENT, 137, "OOMKilled", "")]}));
        let message = "the container agent ended with exit code 137 (OOMKilled)".to_owned();
        assert_eq!(failure_of(&killed), Some(("OOMKilled".to_owned(), message)));
    }

    #[test]
    fn what_is_missing_is_told_at_once_and_not_waited_for_in_vain() {
        let state = json!({"waiting": {"reason": "CreateContainerConfigError", "message": "secret \"s\" not found"}});
        let waits =
            json!({"name": AGENT, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        let pod = pod(1, json!({"containerStatuses": [waits]}));
        let begun = pod.creation_timestamp().unwrap().0.as_second();
        let job = job(json!({"active": 1}));
        let words = |progress: Progress| match progress {
            Progress::Running { trouble, .. } => (false, trouble.unwrap()),
            Progress::Failed { message, reason, .. } => (reason == "PodCannotStart", message),
            other => panic!("{other:?}"),
        };
        let (given_up, message) = words(progress_of(&job, std::slice::from_ref(&pod), begun + 5));
        assert!(!given_up && message.contains("secret \"s\" not found"), "{message}");
        assert!(words(progress_of(&job, &[pod], begun + 121)).0);
    }

    #[test]
    fn names_are_unique_and_fit() {
        let mut backup = etcd_operator_api::EtcdBackup::new(&"a.b".repeat(21), Default::default());
        backup.metadata.uid = Some("0123456789".to_owned());
        let name = name_of("backup", &backup);
        assert!(name.len() <= 63 && name.ends_with("-01234567") && !name.contains('.'), "{name}");
    }
}
