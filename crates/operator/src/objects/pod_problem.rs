//! What keeps a pod from running, as reported by the gate, the kubelet or the scheduler.

use etcd_operator_core::cluster::observed::{Problem, ProblemKind};
use etcd_operator_protocol::report::{Refusal, RefusalReason, Report};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};

use super::restore_containers::{FETCH, RESTORE};

/// Reasons for which a container is waiting that would also block a new member.
const NO_IMAGE: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "CreateContainerConfigError",
];

pub fn problem_of(pod: &Pod) -> Option<Problem> {
    let status = pod.status.as_ref()?;
    let containers = status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
    containers.into_iter().find_map(problem_of_container).or_else(|| no_node(status))
}

fn problem_of_container(container: &ContainerStatus) -> Option<Problem> {
    if let Some((Refusal { reason, message }, at)) = refusal_of(container) {
        let kind = ProblemKind::of_refusal(reason);
        return Some(Problem { at, ..Problem::new(kind, message) });
    }
    let waiting = container.state.as_ref().and_then(|state| state.waiting.as_ref())?;
    let reason = waiting.reason.as_deref().unwrap_or_default();
    if ["", "PodInitializing", "ContainerCreating"].contains(&reason) {
        return None;
    }
    let message = waiting.message.as_deref().unwrap_or("no further message");
    let kind = if NO_IMAGE.contains(&reason) { ProblemKind::NoImage } else { ProblemKind::Other };
    Some(Problem::new(kind, format!("container {} is waiting: {reason} ({message})", container.name)))
}

/// Why the gate refused, or restoring a backup failed, and when. The gate runs in the container of etcd too; there its
/// message is obsolete once etcd runs again, and what has another reason may as well be etcd's. In its own container the
/// last refusal holds while the gate checks again: a status that is written in that moment must not forget it.
fn refusal_of(container: &ContainerStatus) -> Option<(Refusal, Option<Timestamp>)> {
    let is_checking_again = container.name == "gate";
    let state = container.state.as_ref().filter(|state| state.running.is_none() || is_checking_again)?;
    let last = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    let ended = state.terminated.as_ref().or(last).filter(|ended| ended.exit_code != 0)?;
    let message = ended.message.as_deref()?.trim();
    let at = ended.finished_at.as_ref().map(|time| time.0);
    let is_known = ["gate", FETCH, RESTORE].contains(&container.name.as_str());
    let refusal = read_refusal(message);
    (is_known || refusal.reason != RefusalReason::Failed).then_some((refusal, at))
}

/// A report of the gate, or of the agent that fetches a backup; or the plain text of an earlier gate.
fn read_refusal(message: &str) -> Refusal {
    match serde_json::from_str(message) {
        Ok(Report::Refused(refusal)) => refusal,
        Ok(Report::Failed(failure)) => Refusal {
            reason: RefusalReason::Failed,
            message: format!("the backup can't be restored: {}", failure.message),
        },
        _ => Refusal::new(message),
    }
}

fn no_node(status: &PodStatus) -> Option<Problem> {
    let conditions = status.conditions.iter().flatten();
    let unscheduled = conditions.into_iter().find(|it| it.type_ == "PodScheduled" && it.status == "False")?;
    let why = unscheduled.message.as_deref()?;
    Some(Problem::new(ProblemKind::NoNode, format!("pod not scheduled: {why}")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problem(status: Value) -> Option<(ProblemKind, String)> {
        let pod: Pod = serde_json::from_value(json!({"metadata": {}, "status": status})).unwrap();
        problem_of(&pod).map(|problem| (problem.kind, problem.message))
    }

    fn container(name: &str, state: Value, last: Value) -> Value {
        json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state, "lastState": last})
    }

    fn ended(message: &str) -> Value {
        json!({"terminated": {"exitCode": 1, "message": message}})
    }

    fn refusal() -> Value {
        ended(r#"{"end":"refused","reason":"DataLost","message":"refused: its data is gone"}"#)
    }

    fn refusal_of_an_earlier_gate() -> Value {
        ended("refused: its data is gone\n")
    }

    #[test]
    fn a_refusal_counts_in_either_container_and_between_two_tries() {
        let lost = Some((ProblemKind::DataLost, "refused: its data is gone".to_owned()));
        let waits = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        for (name, refusal) in
            ["gate", "etcd"].into_iter().flat_map(|it| [(it, refusal()), (it, refusal_of_an_earlier_gate())])
        {
            let now = container(name, refusal.clone(), json!({}));
            assert_eq!(problem(json!({"containerStatuses": [now]})), lost);
            assert_eq!(problem(json!({"containerStatuses": [container(name, waits.clone(), refusal)]})), lost);
        }
    }

    #[test]
    fn refusal_holds_while_the_gate_checks_again_but_not_once_etcd_runs() {
        let runs = json!({"running": {}});
        let found = |name: &str| problem(json!({"containerStatuses": [container(name, runs.clone(), refusal())]}));
        assert_eq!(found("gate"), Some((ProblemKind::DataLost, "refused: its data is gone".to_owned())));
        assert_eq!(found("etcd"), None);
    }

    #[test]
    fn a_pod_that_says_too_little_has_lost_no_data() {
        let report = r#"{"end":"refused","reason":"Misconfigured","message":"misconfigured: x"}"#;
        for (message, expected) in
            [(report, "misconfigured: x"), ("misconfigured: x", "misconfigured: x"), ("not told: x", "not told: x")]
        {
            let found = problem(json!({"containerStatuses": [container("etcd", ended(message), json!({}))]}));
            assert_eq!(found, Some((ProblemKind::Other, expected.to_owned())));
        }
    }

    #[test]
    fn other_failures_count_only_where_etcd_does_not_run() {
        let report = r#"{"end":"refused","reason":"Failed","message":"copying x"}"#;
        let expected = Some((ProblemKind::Other, "copying x".to_owned()));
        for message in [report, "copying x"] {
            let of =
                |name: &str| problem(json!({"initContainerStatuses": [container(name, ended(message), json!({}))]}));
            assert_eq!(["gate", FETCH, RESTORE].map(of), [expected.clone(), expected.clone(), expected.clone()]);
            assert_eq!(of("etcd"), None);
        }
        let failed = ended(r#"{"end":"failed","reason":"NoSuchBucket","message":"no bucket"}"#);
        let found = problem(json!({"initContainerStatuses": [container(FETCH, failed, json!({}))]}));
        assert_eq!(found, Some((ProblemKind::Other, "the backup can't be restored: no bucket".to_owned())));
    }

    #[test]
    fn a_refusal_is_of_the_past_once_etcd_runs() {
        let runs = json!({"running": {}});
        assert_eq!(problem(json!({"containerStatuses": [container("etcd", runs, refusal())]})), None);
    }

    #[test]
    fn termination_message_of_etcd_is_no_refusal() {
        let crashed = json!({"terminated": {"exitCode": 2, "message": "panic"}});
        let waits = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}});
        let expected = (ProblemKind::Other, "container etcd is waiting: CrashLoopBackOff (back-off)".to_owned());
        assert_eq!(problem(json!({"containerStatuses": [container("etcd", waits, crashed)]})), Some(expected));
    }

    #[test]
    fn images_and_nodes_may_be_missing() {
        let waits = json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}});
        let found = problem(json!({"containerStatuses": [container("etcd", waits, json!({}))]}));
        assert_eq!(found.unwrap().0, ProblemKind::NoImage);
        let unscheduled = json!({"type": "PodScheduled", "status": "False", "message": "0/3 nodes"});
        let found = problem(json!({"conditions": [unscheduled]}));
        assert_eq!(found, Some((ProblemKind::NoNode, "pod not scheduled: 0/3 nodes".to_owned())));
    }
}
