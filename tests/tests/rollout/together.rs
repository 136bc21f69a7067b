//! Several changes at once.

use e2e::etcd::Etcd;
use e2e::watch::Pods;
use e2e::writer::{Writer, write};
use e2e::{Namespace, SAFETY};
use serde_json::json;

use crate::{container_of, manifest_of};

#[test]
fn version_and_resources_changed_together_restart_each_member_once() {
    let namespace = Namespace::create("roll-two");
    let etcd = Etcd::create(&namespace, &manifest_of("3.6.12", 3));
    let written = write(20, &etcd);
    let (members, pods) = (etcd.members(), Pods::watch(&etcd, 3));
    let resources = json!({"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "2", "memory": "300Mi"}});
    let metadata = json!({"labels": {"team": "storage"}});
    let template = json!({"resources": resources, "metadata": metadata});
    etcd.patch(&json!({"spec": {"version": "3.6.16", "podTemplate": template}}));
    etcd.wait_until_runs(3, "3.6.16");
    for name in etcd.names(3) {
        assert_eq!(container_of(&etcd, &name)["resources"], resources, "{name}");
        assert_eq!(namespace.get(&format!("pod {name}"))["metadata"]["labels"]["team"], "storage", "{name}");
    }
    let mut made = pods.made();
    made.sort();
    assert_eq!(made, etcd.names(3), "each was restarted once");
    assert!(pods.most_away().len() <= 1, "{SAFETY}these were away at the same time: {:?}", pods.most_away());
    let told = etcd.events("RecreatingMember");
    let complete = |message: &str| {
        message.contains("spec.version 3.6.12 → 3.6.16") && message.contains("spec.podTemplate.resources")
    };
    assert!(told.iter().all(|(_, message)| complete(message)), "both changes are named: {told:?}");
    assert_eq!(etcd.members(), members, "{SAFETY}they are the same members");
    written.assert_kept(&etcd);
    etcd.assert_same_data(3);
}

#[test]
fn version_and_replicas_changed_together_roll_out_under_load() {
    let namespace = Namespace::create("roll-grow");
    let etcd = Etcd::create(&namespace, &manifest_of("3.6.12", 3));
    let members = etcd.members();
    let writer = Writer::start(&namespace, "c");
    etcd.patch(&json!({"spec": {"version": "3.6.16", "replicas": 5}}));
    etcd.wait_until_runs(5, "3.6.16");
    let written = writer.finish();
    written.assert_kept(&etcd);
    etcd.assert_voters(5);
    etcd.assert_objects(5);
    etcd.assert_same_data(5);
    let after = etcd.members();
    assert!(
        members.iter().all(|(name, it)| after[name] == *it),
        "{SAFETY}the first three are who they were: {after:?}"
    );
}
