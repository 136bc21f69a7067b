//! A member whose data is still there comes back as who it was: nobody joins, and nobody leaves.

use std::time::Duration;

use e2e::etcd::{Etcd, manifest};
use e2e::{Namespace, SAFETY, eventually, inject, kubectl_with_input};
use serde_json::json;

fn comes_back_as_who_it_was(namespace: &str, fault: impl FnOnce(&Namespace)) {
    let namespace = Namespace::create(namespace);
    let etcd = Etcd::create(&namespace, &manifest("c", 3));
    etcd.put("greeting", "hello");
    let (members, run, claims) = (etcd.members(), etcd.run_of("c-1"), etcd.uids_of("pvc"));

    fault(&namespace);
    etcd.wait_until_restarted("c-1", &run);
    etcd.wait_until_whole(3);
    assert_eq!(etcd.members(), members, "{SAFETY}they are the same members");
    assert_eq!(etcd.uids_of("pvc"), claims, "{SAFETY}they have the same claims");
    assert_eq!(etcd.value_on("c-1", "greeting").as_deref(), Ok("hello"));
}

#[test]
fn member_with_deleted_pod_comes_back_with_the_same_id() {
    comes_back_as_who_it_was("heal-pod", |namespace| {
        namespace.kubectl("delete pod c-1 --now");
    });
}

#[test]
fn member_with_killed_container_comes_back_with_the_same_id() {
    comes_back_as_who_it_was("heal-container", |namespace| {
        inject::kill_container(&namespace.name, "c-1", "etcd").unwrap();
    });
}

#[test]
fn evicted_member_comes_back_with_the_same_id() {
    comes_back_as_who_it_was("heal-evicted", |namespace| {
        let eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": "c-1", "namespace": namespace.name},
        });
        let path = format!("/api/v1/namespaces/{}/pods/c-1/eviction", namespace.name);
        // The disruption budget allows it once Kubernetes has counted the pods.
        eventually("the eviction is allowed", Duration::from_secs(30), || {
            kubectl_with_input(&["create", "--raw", &path, "-f", "-"], &eviction.to_string())
        });
    });
}
