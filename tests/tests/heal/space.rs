//! A database that has used up its quota.

use std::time::Duration;

use e2e::etcd::{Etcd, etcdctl, manifest};
use e2e::{Namespace, SAFETY, eventually};
use serde_json::json;

#[test]
fn full_database_is_reported_and_serves_again_once_space_is_freed() {
    let namespace = Namespace::create("heal-space");
    let mut cluster = manifest("c", 3);
    cluster["spec"]["etcd"] = json!({"quotaBackendBytes": "16Mi"});
    let etcd = Etcd::create(&namespace, &cluster);
    let members = etcd.members();

    // Always the same key: the room is taken by its history, which can be forgotten.
    let filling = "x".repeat(100 << 10);
    let endpoints = etcd.endpoints();
    let refuses = || etcdctl(&endpoints, &["put", "filling", &filling]).is_err_and(|it| it.contains("space exceeded"));
    assert!((0..1000).any(|_| refuses()), "etcd takes more than its quota");
    // The quota is in the message, in whichever unit.
    let says = |kind: &str, status: &str| {
        etcd.says(kind, status, "NoSpace", &["16Mi"]).or_else(|_| etcd.says(kind, status, "NoSpace", &["16777216"]))
    };
    // At first there are gaps in the databases, which the operator closes. It is full when there are none left.
    eventually("the status says that there is no room", Duration::from_secs(120), || {
        refuses();
        says("Available", "False")
    });
    assert!(refuses(), "what is full stays full until somebody makes room");
    eventually("so does Degraded", Duration::from_secs(60), || says("Degraded", "True"));

    let revision = etcd.revision().unwrap().to_string();
    etcd.etcdctl(&["compact", &revision]).unwrap();
    eventually("etcd takes writes again", Duration::from_secs(120), || etcd.etcdctl(&["put", "greeting", "hello"]));
    etcd.wait_until_whole(3);
    assert_eq!(etcd.members(), members, "{SAFETY}nobody was replaced for it");
    assert_eq!(etcd.etcdctl(&["alarm", "list"]).as_deref(), Ok(""));
    etcd.assert_same_data(3);
}
