//! What the Job of an agent and its pods mean: how far the task is, and how it ended. The agent reports in the
//! termination message of its container.

use std::cmp::Reverse;

use etcd_operator_api::{JobFailureReason, Reason};
use etcd_operator_protocol::report::{Done, Failure, Report};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};

/// The container whose report counts.
pub const AGENT: &str = "agent";
/// How long a pod may wait for something that is missing, such as its Secret, before the job fails.
const WAITS_FOR: SignedDuration = SignedDuration::from_secs(120);

/// The progress of an agent job.
#[derive(Clone, Debug, PartialEq)]
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
        /// A [`JobFailureReason`], or a word of Kubernetes.
        reason: Reason,
        message: String,
    },
    /// It succeeded, but its report is lost. Running it again does no harm, and reports.
    NoReport,
}

impl Progress {
    /// Whether the Job has to be deleted: it has to run again, or its pod would go on waiting although it was given up.
    pub fn leaves_a_job_to_delete(&self) -> bool {
        match self {
            Progress::NoReport => true,
            Progress::Failed { reason, .. } => *reason == JobFailureReason::PodCannotStart,
            Progress::NotBegun | Progress::Running { .. } | Progress::Done { .. } => false,
        }
    }
}

/// An agent job as it was observed, and the UID of the Job that it was observed on.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedJob {
    pub progress: Progress,
    pub uid: Option<String>,
}

impl ObservedJob {
    pub fn none() -> Self {
        ObservedJob { progress: Progress::NotBegun, uid: None }
    }
}

/// A pod of a Job.
pub struct JobPod<'a> {
    pub pod: &'a Pod,
    /// What keeps it from running.
    pub problem: Option<String>,
}

impl JobPod<'_> {
    fn created(&self) -> Option<Timestamp> {
        self.pod.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }
}

/// Why something failed: a one-word reason and a sentence.
type Why = (Reason, String);

/// The progress of a Job with these pods.
pub fn progress_of(job: &Job, pods: &[JobPod], now: Timestamp) -> Progress {
    let mut newest_first: Vec<&JobPod> = pods.iter().collect();
    newest_first.sort_by_key(|pod| Reverse(pod.created()));
    let attempts = attempts_of(job);
    let failure = newest_first.iter().find_map(|pod| failure_of(pod.pod));
    if condition_of(job, "Complete").is_some() {
        let done = newest_first.iter().find_map(|pod| done_of(pod.pod));
        return done.map_or(Progress::NoReport, |done| Progress::Done { attempts, done: Box::new(done) });
    }
    if let Some(condition) = condition_of(job, "Failed") {
        let (reason, message) = why_given_up(condition, failure);
        return Progress::Failed { attempts, reason, message };
    }
    let newest = newest_first.first().and_then(|pod| Some((pod.created()?, pod.problem.clone()?)));
    match newest {
        Some((created, message)) if now.duration_since(created).as_secs() > WAITS_FOR.as_secs() => {
            Progress::Failed { attempts, reason: JobFailureReason::PodCannotStart.into(), message }
        }
        Some((_, problem)) => Progress::Running { attempts, trouble: Some(problem) },
        None => Progress::Running { attempts, trouble: failure.map(|(_, message)| message) },
    }
}

fn attempts_of(job: &Job) -> i32 {
    let status = job.status.iter();
    status.flat_map(|status| [status.failed, status.active, status.succeeded]).flatten().sum()
}

fn condition_of<'a>(job: &'a Job, type_: &str) -> Option<&'a JobCondition> {
    let mut conditions = job.status.iter().flat_map(|status| &status.conditions).flatten();
    conditions.find(|condition| condition.type_ == type_ && condition.status == "True")
}

/// Why a Job was given up. What its pod said tells more than what the Job says, except that time was up.
fn why_given_up(condition: &JobCondition, failure: Option<Why>) -> Why {
    let reason = condition.reason.clone().map_or_else(|| JobFailureReason::Failed.into(), Reason::verbatim);
    let is_late = reason == JobFailureReason::DeadlineExceeded;
    match failure {
        Some((_, message)) if is_late => (reason, format!("it took too long; at last: {message}")),
        Some(failure) => failure,
        None if is_late => (reason, "it took too long".to_owned()),
        None => (reason, condition.message.clone().unwrap_or_default()),
    }
}

fn terminated(pod: &Pod) -> impl Iterator<Item = (&ContainerStatus, &ContainerStateTerminated)> {
    let status = pod.status.iter();
    let all = status.flat_map(|it| it.init_container_statuses.iter().chain(&it.container_statuses)).flatten();
    all.filter_map(|container| Some((container, container.state.as_ref()?.terminated.as_ref()?)))
}

fn report_of(ended: &ContainerStateTerminated) -> Option<Report> {
    serde_json::from_str(ended.message.as_deref()?).ok()
}

fn done_of(pod: &Pod) -> Option<Done> {
    let (_, ended) = terminated(pod).find(|(container, _)| container.name == AGENT)?;
    match report_of(ended)? {
        Report::Done(done) => Some(*done),
        Report::Failed(_) | Report::Refused(_) => None,
    }
}

/// Why a pod failed.
fn failure_of(pod: &Pod) -> Option<Why> {
    let (container, ended) = terminated(pod).find(|(_, ended)| ended.exit_code != 0)?;
    Some(match report_of(ended) {
        Some(Report::Failed(Failure { reason, message })) => (JobFailureReason::from(reason).into(), message),
        _ => {
            let reason = ended.reason.clone().map_or_else(|| JobFailureReason::Error.into(), Reason::verbatim);
            let words = ended.message.as_deref().map(str::trim).filter(|words| !words.is_empty());
            let words = words.map(|words| format!(": {words}")).unwrap_or_default();
            let (name, code) = (&container.name, ended.exit_code);
            let message = format!("the container {name} ended with exit code {code} ({reason}){words}");
            (reason, message)
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const COMPLETE: &str = r#"{"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}"#;

    fn job(status: &Value) -> Job {
        serde_json::from_value(json!({"metadata": {"name": "j"}, "spec": {"template": {}}, "status": status})).unwrap()
    }

    fn complete() -> Job {
        job(&serde_json::from_str(COMPLETE).unwrap())
    }

    fn given_up(reason: &str) -> Job {
        let condition = json!({"type": "Failed", "status": "True", "reason": reason, "message": "given up"});
        job(&json!({"failed": 3, "conditions": [condition]}))
    }

    fn container(name: &str, state: &Value) -> Value {
        json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state})
    }

    fn ended(name: &str, code: i32, reason: &str, message: &str) -> Value {
        container(name, &json!({"terminated": {"exitCode": code, "reason": reason, "message": message}}))
    }

    /// The n-th pod of a Job.
    fn pod(number: i32, containers: &[Value]) -> Pod {
        let created = format!("2026-01-01T00:0{number}:00Z");
        let metadata = json!({"name": "p", "creationTimestamp": created});
        serde_json::from_value(json!({"metadata": metadata, "status": {"containerStatuses": containers}})).unwrap()
    }

    fn failed_pod(number: i32, message: &str) -> Pod {
        let report = json!({"end": "failed", "reason": "AccessDenied", "message": message}).to_string();
        pod(number, &[ended(AGENT, 1, "Error", &report)])
    }

    fn at(time: &str) -> Timestamp {
        format!("2026-01-01T00:{time}Z").parse().unwrap()
    }

    fn progress(job: &Job, pods: &[Pod]) -> Progress {
        let pods: Vec<JobPod> = pods.iter().map(|pod| JobPod { pod, problem: None }).collect();
        progress_of(job, &pods, at("09:00"))
    }

    fn failed(reason: &str, message: &str) -> Progress {
        Progress::Failed { attempts: 3, reason: Reason::verbatim(reason), message: message.to_owned() }
    }

    #[test]
    fn complete_job_whose_pod_reports_is_done() {
        let said = ended(AGENT, 0, "Completed", r#"{"end": "done"}"#);
        let done = Progress::Done { attempts: 1, done: Box::default() };
        assert_eq!(progress(&complete(), &[pod(1, std::slice::from_ref(&said))]), done);
        let first_failed = [failed_pod(1, "first"), pod(2, &[said])];
        assert_eq!(progress(&complete(), &first_failed), done, "a try that failed before does not count");
    }

    #[test]
    fn complete_job_without_a_report_has_to_run_again() {
        assert_eq!(progress(&complete(), &[]), Progress::NoReport, "its pod is gone");
        for silent in ["", "done", r#"{"end": "failed", "reason": "NoSpace", "message": "m"}"#] {
            let pod = pod(1, &[ended(AGENT, 0, "Completed", silent)]);
            assert_eq!(progress(&complete(), &[pod]), Progress::NoReport, "{silent}");
        }
        let of_another = pod(1, &[ended("fetch", 0, "Completed", r#"{"end": "done"}"#)]);
        assert_eq!(progress(&complete(), &[of_another]), Progress::NoReport, "only the agent's own report counts");
    }

    #[test]
    fn failed_job_has_the_reason_of_its_last_pod() {
        let pods = [failed_pod(1, "first"), failed_pod(2, "second")];
        assert_eq!(progress(&given_up("BackoffLimitExceeded"), &pods), failed("AccessDenied", "second"));
    }

    #[test]
    fn failed_job_without_pods_has_its_own_reason() {
        assert_eq!(progress(&given_up("BackoffLimitExceeded"), &[]), failed("BackoffLimitExceeded", "given up"));
    }

    #[test]
    fn job_past_its_deadline_says_so_and_what_went_wrong_last() {
        let late = given_up("DeadlineExceeded");
        let pods = [failed_pod(2, "second"), failed_pod(1, "first")];
        assert_eq!(progress(&late, &pods), failed("DeadlineExceeded", "it took too long; at last: second"));
        assert_eq!(progress(&late, &[]), failed("DeadlineExceeded", "it took too long"));
    }

    #[test]
    fn killed_pod_has_the_reason_of_the_kubelet() {
        let killed = pod(1, &[ended(AGENT, 137, "OOMKilled", "")]);
        let message = "the container agent ended with exit code 137 (OOMKilled)".to_owned();
        assert_eq!(failure_of(&killed), Some((Reason::verbatim("OOMKilled"), message)));
        let talking = pod(1, &[ended("restore", 1, "Error", " no such file\n")]);
        let message = "the container restore ended with exit code 1 (Error): no such file".to_owned();
        assert_eq!(failure_of(&talking), Some((Reason::verbatim("Error"), message)));
    }

    #[test]
    fn running_job_that_failed_before_says_why_and_how_often_it_was_tried() {
        let job = job(&json!({"active": 1, "failed": 2}));
        let trouble = Some("second".to_owned());
        let pods = [failed_pod(1, "first"), failed_pod(2, "second"), pod(3, &[])];
        assert_eq!(progress(&job, &pods), Progress::Running { attempts: 3, trouble });
        assert_eq!(progress(&job, &[]), Progress::Running { attempts: 3, trouble: None });
    }

    fn waiting(now: &str) -> Progress {
        let pods = [pod(1, &[]), pod(2, &[])];
        let problem = Some("secret \"s\" not found".to_owned());
        let waiting = [JobPod { pod: &pods[0], problem: None }, JobPod { pod: &pods[1], problem }];
        progress_of(&job(&json!({"active": 1})), &waiting, at(now))
    }

    #[test]
    fn pod_that_cannot_start_is_reported_at_once_and_given_up_after_two_minutes() {
        let message = "secret \"s\" not found".to_owned();
        let runs = Progress::Running { attempts: 1, trouble: Some(message.clone()) };
        assert_eq!(waiting("02:05"), runs);
        assert_eq!(waiting("04:00"), runs);
        let failed = Progress::Failed { attempts: 1, reason: Reason::verbatim("PodCannotStart"), message };
        assert_eq!(waiting("04:01"), failed);
    }

    #[test]
    fn job_is_deleted_only_if_it_has_to_run_again_or_waits_in_vain() {
        assert!(Progress::NoReport.leaves_a_job_to_delete());
        assert!(waiting("09:00").leaves_a_job_to_delete());
        let ended = Progress::Done { attempts: 1, done: Box::default() };
        for kept in [Progress::NotBegun, waiting("02:05"), ended, failed("AccessDenied", "")] {
            assert!(!kept.leaves_a_job_to_delete(), "{kept:?}: its result is kept for a while");
        }
    }
}
