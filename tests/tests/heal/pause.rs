//! A cluster that its user wants to be left alone.

use std::time::Duration;

use e2e::etcd::{Etcd, manifest};
use e2e::{Namespace, SAFETY, eventually, is, stays};
use serde_json::json;

#[test]
fn paused_cluster_is_observed_and_left_alone() {
    let namespace = Namespace::create("heal-paused");
    let etcd = Etcd::create(&namespace, &manifest("c", 3));
    let members = etcd.members();
    is_left_alone(
        &etcd,
        || etcd.patch(&json!({"spec": {"paused": true}})),
        || etcd.patch(&json!({"spec": {"paused": false}})),
    );
    is_left_alone_if_annotated(&etcd, &["etcdcluster c"]);
    assert_eq!(etcd.members(), members, "{SAFETY}they are the same members");
}

/// Whoever must not be disturbed, for whatever reason, is marked where one stands; the rest of the cluster waits with it.
#[test]
fn cluster_with_one_paused_object_is_left_alone() {
    let namespace = Namespace::create("heal-paused-part");
    let etcd = Etcd::create(&namespace, &manifest("c", 3));
    let members = etcd.members();
    is_left_alone_if_annotated(&etcd, &["etcdpeer c-0", "pod c-2", "pvc c-0"]);
    assert_eq!(etcd.members(), members, "{SAFETY}they are the same members");
}

fn is_left_alone_if_annotated(etcd: &Etcd, objects: &[&str]) {
    for object in objects {
        println!("paused at the {object}");
        is_left_alone(
            etcd,
            || drop(etcd.namespace.kubectl(&format!("annotate {object} etcd.improbable.io/paused=true"))),
            || drop(etcd.namespace.kubectl(&format!("annotate {object} etcd.improbable.io/paused-"))),
        );
    }
}

fn is_left_alone(etcd: &Etcd, pause: impl FnOnce(), go_on: impl FnOnce()) {
    let run = etcd.run_of("c-1");
    pause();
    let soon = Duration::from_secs(30);
    eventually("the status says that it is paused", soon, || etcd.says("Progressing", "False", "Paused", &[]));
    etcd.namespace.kubectl("delete pod c-1 --now");
    eventually("the status names who is missing", soon, || {
        etcd.says("Degraded", "True", "MembersUnhealthy", &["c-1"])?;
        is(etcd.status()["readyReplicas"].as_u64(), Some(2))
    });
    stays("nobody starts it", Duration::from_secs(8), || {
        is(etcd.names_of("pods"), vec!["c-0".to_owned(), "c-2".to_owned()])?;
        etcd.says("Progressing", "False", "Paused", &[])
    });
    go_on();
    etcd.wait_until_restarted("c-1", &run);
    etcd.wait_until_whole(3);
}
