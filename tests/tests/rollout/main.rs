//! The spec of an EtcdCluster is changed, and the change is rolled out to its members: one at a time, while the others
//! serve. Nothing here touches more than one cluster, so these tests run side by side. Faults in the middle of a
//! rollout that hit nodes or the operator are in `power`.

mod between_versions;
mod corrected;
mod edited_again;
mod ephemeral;
mod halted;
mod in_place;
mod refused;
mod restart;
mod together;
mod volumes;

use e2e::etcd::{Etcd, manifest};
use serde_json::{Value, json};

/// The manifest of a cluster that runs a given version.
fn manifest_of(version: &str, replicas: u32) -> Value {
    let mut manifest = manifest("c", replicas);
    manifest["spec"]["version"] = json!(version);
    manifest
}

/// The etcd container of a member's pod, as it was asked for.
fn container_of(etcd: &Etcd, member: &str) -> Value {
    let pod = etcd.namespace.get(&format!("pod {member}"));
    pod["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|it| it["name"] == "etcd")
        .cloned()
        .unwrap_or_default()
}
