//! The deployed operator.

use std::time::Duration;

use serde_json::Value;

use crate::{eventually, get, inject, is, kubectl, try_kubectl};

pub const IN_ITS_NAMESPACE: &str = "--namespace etcd-operator";
const ITS_PODS: &str = "pods -l app.kubernetes.io/name=etcd-operator";

pub fn running_pods() -> Vec<Value> {
    let pods = get(&format!("{IN_ITS_NAMESPACE} {ITS_PODS}"));
    let ready = |pod: &Value| {
        let statuses = pod["status"]["containerStatuses"].as_array().cloned().unwrap_or_default();
        pod["metadata"]["deletionTimestamp"].is_null() && statuses.iter().any(|status| status["ready"] == true)
    };
    pods["items"].as_array().expect("a list").iter().filter(|pod| ready(pod)).cloned().collect()
}

pub fn name(pod: &Value) -> String {
    pod["metadata"]["name"].as_str().expect("a name").to_owned()
}

/// The pod that holds the lease.
pub fn leader() -> Result<String, String> {
    let lease = get(&format!("{IN_ITS_NAMESPACE} lease etcd-operator"));
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
    let pods: Vec<String> = running_pods().iter().map(name).collect();
    let leading = pods.into_iter().find(|pod| holder.starts_with(pod.as_str()));
    leading.ok_or(format!("the lease is held by {holder:?}, which is no running pod"))
}

/// Deletes all its pods at once; others take their place.
pub fn delete_pods() {
    kubectl(&format!("{IN_ITS_NAMESPACE} delete {ITS_PODS} --now --wait=false"));
}

/// All its processes die at once, without a word. The lease of the dead is removed, so that the next ones needn't wait for
/// its end.
pub fn kill() {
    let names = kubectl(&format!("{IN_ITS_NAMESPACE} get {ITS_PODS} -o name"));
    for pod in names.lines().filter_map(|name| name.strip_prefix("pod/")) {
        // It may not have started again since the last time; then there is nothing to kill.
        let _ = inject::kill_container("etcd-operator", pod, "etcd-operator");
        let _ = try_kubectl(&format!("{IN_ITS_NAMESPACE} delete pod {pod} --now --wait=false"));
    }
    let _ = try_kubectl(&format!("{IN_ITS_NAMESPACE} delete lease etcd-operator"));
}

/// There is no operator until this is dropped.
pub struct Absence;

impl Absence {
    pub fn begin() -> Self {
        let absence = Absence;
        kubectl(&format!("{IN_ITS_NAMESPACE} scale deployment etcd-operator --replicas=0"));
        eventually("no operator runs", Duration::from_secs(60), || {
            let pods = get(&format!("{IN_ITS_NAMESPACE} {ITS_PODS}"));
            is(pods["items"].as_array().map(Vec::len), Some(0))
        });
        absence
    }
}

impl Drop for Absence {
    fn drop(&mut self) {
        let back = try_kubectl(&format!("{IN_ITS_NAMESPACE} scale deployment etcd-operator --replicas=2"));
        if let Err(complaint) = back {
            eprintln!("the operator could not be brought back: {complaint}");
        }
    }
}
