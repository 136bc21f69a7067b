//! What Kubernetes refuses, or finds no node for, is corrected in the spec, and the correction reaches whoever needs it.

use std::time::Duration;

use e2e::etcd::{Etcd, manifest};
use e2e::{Namespace, eventually, is};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(60);

/// A patch for the class of the pods. There is none but those that Kubernetes has itself.
fn class(name: Value) -> Value {
    json!({"spec": {"podTemplate": {"priorityClassName": name}}})
}

/// A patch for the CPUs that the pods ask for.
fn cpus(amount: &str) -> Value {
    json!({"spec": {"podTemplate": {"resources": {"requests": {"cpu": amount}}}}})
}

/// More than a node of the lab has.
const TOO_MANY: &str = "1000";

fn small_manifest(name: &str, replicas: u32) -> Value {
    let mut manifest = manifest(name, replicas);
    manifest["spec"]["podTemplate"] = cpus("10m")["spec"]["podTemplate"].clone();
    manifest
}

/// For `eventually`: Kubernetes was asked for a member's pod and said no, and the user is told so.
fn is_refused(etcd: &Etcd, member: &str) -> Result<(), String> {
    is(etcd.names_of("pods").iter().any(|it| it == member), false)?;
    let told = etcd.events("ReconcileFailed");
    let is_told = told.iter().any(|(_, message)| message.contains("no-such-class") && message.contains(member));
    if is_told { Ok(()) } else { Err(format!("{told:?}")) }
}

/// For `eventually`: no node takes a member's pod.
fn is_pending(etcd: &Etcd, member: &str) -> Result<(), String> {
    let pods = etcd.pods();
    let pod = pods.iter().find(|pod| pod["metadata"]["name"] == member).ok_or("it has no pod")?;
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let is_unscheduled = conditions.iter().any(|it| it["type"] == "PodScheduled" && it["status"] == "False");
    if is_unscheduled { Ok(()) } else { Err(pod["status"].to_string()) }
}

#[test]
fn member_with_refused_or_pending_pod_runs_when_the_spec_goes_back() {
    let namespace = Namespace::create("roll-corrected");
    let etcd = Etcd::create(&namespace, &small_manifest("c", 3));
    etcd.move_leader("c-0");
    etcd.put("greeting", "hello");
    let members = etcd.members();
    let others = || etcd.uids_of("pods").into_iter().filter(|(name, _)| name != "c-2").collect::<Vec<_>>();
    let others_before = others();

    etcd.patch(&class(json!("no-such-class")));
    eventually("c-2's pod is refused", SOON, || is_refused(&etcd, "c-2"));
    etcd.patch(&class(Value::Null));
    etcd.wait_until_runs(3, "3.6.16");

    etcd.patch(&cpus(TOO_MANY));
    eventually("c-2's pod is pending", SOON, || is_pending(&etcd, "c-2"));
    etcd.patch(&cpus("10m"));
    etcd.wait_until_runs(3, "3.6.16");

    assert_eq!(others(), others_before, "the two others were never touched");
    assert_eq!(etcd.members(), members, "they are the same members");
    assert_eq!(etcd.value("greeting").as_deref(), Some("hello"));
}

#[test]
fn new_cluster_and_learner_run_when_what_was_refused_or_pending_is_corrected() {
    let namespace = Namespace::create("roll-corrected-new");
    let create = |name: &str, replicas: u32, patch: &Value| {
        let mut manifest = small_manifest(name, replicas);
        for (field, value) in patch["spec"]["podTemplate"].as_object().expect("fields") {
            manifest["spec"]["podTemplate"][field] = value.clone();
        }
        namespace.apply(&manifest.to_string()).expect("the manifest is accepted");
        Etcd { namespace: &namespace, name: name.to_owned() }
    };
    let refused = create("refused", 3, &class(json!("no-such-class")));
    let pending = create("pending", 1, &cpus(TOO_MANY));
    eventually("the pods are refused", SOON, || is_refused(&refused, "refused-0"));
    eventually("the pod is pending", SOON, || is_pending(&pending, "pending-0"));
    refused.patch(&class(Value::Null));
    pending.patch(&cpus("10m"));
    refused.wait_until_runs(3, "3.6.16");
    pending.wait_until_runs(1, "3.6.16");

    let mut too_many = cpus(TOO_MANY);
    too_many["spec"]["replicas"] = json!(2);
    pending.patch(&too_many);
    eventually("the learner's pod is pending", SOON, || is_pending(&pending, "pending-1"));
    pending.patch(&cpus("10m"));
    pending.wait_until_runs(2, "3.6.16");
}
