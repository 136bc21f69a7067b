//! What etcd reads when it starts, and what its user just wants, restarts every member.

use e2e::etcd::{Etcd, manifest};
use e2e::watch::Pods;
use e2e::writer::Writer;
use e2e::{Namespace, SAFETY};
use serde_json::{Value, json};

use crate::container_of;

fn threads_of(etcd: &Etcd, member: &str) -> Value {
    let environment = container_of(etcd, member)["env"].as_array().cloned().unwrap_or_default();
    environment.into_iter().find(|it| it["name"] == "GOMAXPROCS").map(|it| it["value"].clone()).unwrap_or_default()
}

#[test]
fn changed_cpu_limit_restarts_members_with_as_many_threads() {
    let namespace = Namespace::create("roll-cpus");
    let mut cluster = manifest("c", 3);
    let cpus = |limit: &str| json!({"resources": {"requests": {"cpu": "50m"}, "limits": {"cpu": limit}}});
    cluster["spec"]["podTemplate"] = cpus("1");
    let etcd = Etcd::create(&namespace, &cluster);
    let (members, before, pods) = (etcd.members(), etcd.uids_of("pods"), Pods::watch(&etcd, 3));
    assert_eq!(threads_of(&etcd, "c-0"), "1");

    etcd.patch(&json!({"spec": {"podTemplate": cpus("2")}}));
    etcd.wait_until_restarted_all(&before);
    for name in etcd.names(3) {
        assert_eq!(threads_of(&etcd, &name), "2", "{name}");
        assert_eq!(container_of(&etcd, &name)["resources"]["limits"]["cpu"], "2", "{name}");
    }
    assert_eq!(etcd.members(), members, "{SAFETY}they are the same members");
    assert_eq!(pods.made().len(), 3, "each was restarted once: {:?}", pods.made());
    assert!(pods.most_away().len() <= 1, "{SAFETY}these were away at the same time: {:?}", pods.most_away());
    let told = etcd.events("RecreatingMember");
    assert!(told.iter().all(|(_, message)| message.contains("spec.podTemplate.resources")), "{told:?}");
}

#[test]
fn restart_annotation_restarts_all_members_under_load() {
    let namespace = Namespace::create("roll-annotation");
    let etcd = Etcd::create(&namespace, &manifest("c", 3));
    let (members, before, claims) = (etcd.members(), etcd.uids_of("pods"), etcd.uids_of("pvc"));
    let (writer, pods) = (Writer::start(&namespace, "c"), Pods::watch(&etcd, 3));

    etcd.ask_for_a_restart("please");
    etcd.wait_until_restarted_all(&before);
    let written = writer.finish();
    written.assert_kept(&etcd);
    etcd.assert_same_data(3);
    assert_eq!(etcd.members(), members, "{SAFETY}they are the same members");
    assert_eq!(etcd.uids_of("pvc"), claims, "{SAFETY}they have the same claims");
    assert_eq!(pods.made().len(), 3, "each was restarted once: {:?}", pods.made());
    assert!(pods.most_away().len() <= 1, "{SAFETY}these were away at the same time: {:?}", pods.most_away());
}

#[test]
fn singleton_restarts_with_its_data() {
    let namespace = Namespace::create("roll-singleton");
    let etcd = Etcd::create(&namespace, &manifest("c", 1));
    etcd.put("greeting", "hello");
    let (members, before, claims) = (etcd.members(), etcd.uids_of("pods"), etcd.uids_of("pvc"));
    etcd.patch(&json!({"spec": {"etcd": {"snapshotCount": 5000}}}));
    etcd.wait_until_restarted_all(&before);
    let args = container_of(&etcd, "c-0")["args"].to_string();
    assert!(args.contains("--snapshot-count=5000"), "{args}");
    assert_eq!(etcd.members(), members, "{SAFETY}they are the same members");
    assert_eq!(etcd.uids_of("pvc"), claims, "{SAFETY}they have the same claims");
    etcd.assert_has("greeting", "hello");
}
