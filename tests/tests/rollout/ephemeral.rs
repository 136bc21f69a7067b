//! Members that keep their data in their pods would lose it in a restart, so new members take their places.

use std::time::Duration;

use e2e::etcd::{Etcd, manifest};
use e2e::writer::Writer;
use e2e::{Namespace, SAFETY, eventually};
use serde_json::{Value, json};

fn ephemeral_manifest(replicas: u32) -> Value {
    let mut cluster = manifest("c", replicas);
    cluster["spec"]["storage"] = json!({"ephemeral": {}});
    cluster
}

#[test]
fn ephemeral_members_are_replaced_by_new_ones_under_load() {
    let namespace = Namespace::create("roll-ephemeral");
    let mut cluster = ephemeral_manifest(3);
    cluster["spec"]["version"] = json!("3.6.12");
    let etcd = Etcd::create(&namespace, &cluster);
    let (members, id) = (etcd.members(), etcd.status()["clusterID"].clone());
    let writer = Writer::start(&namespace, "c");

    etcd.set_version("3.6.16");
    etcd.wait_until_runs(3, "3.6.16");
    let written = writer.finish();
    written.assert_kept(&etcd);
    etcd.assert_voters(3);
    etcd.assert_same_data(3);
    assert_eq!(etcd.status()["clusterID"], id, "{SAFETY}it is the same cluster");
    let after = etcd.members();
    let same: Vec<&String> = members.iter().filter(|(name, it)| after[*name].0 == it.0).map(|it| it.0).collect();
    assert!(same.is_empty(), "these members had to be replaced: {same:?}");
}

#[test]
fn change_of_an_ephemeral_singleton_is_refused_until_it_is_scaled_up() {
    let namespace = Namespace::create("roll-ephemeral-one");
    let etcd = Etcd::create(&namespace, &ephemeral_manifest(1));
    etcd.put("greeting", "hello");
    let before = etcd.uids_of("pods");
    etcd.ask_for_a_restart("please");
    eventually("the status says what to do", Duration::from_secs(30), || {
        etcd.says("Progressing", "False", "ChangeRefused", &["data would be lost", "Raise spec.replicas to 3 first"])
    });
    assert_eq!(etcd.uids_of("pods"), before, "{SAFETY}nothing moved");

    etcd.scale(3);
    eventually("the one that was there was replaced", Duration::from_secs(180), || {
        let now = etcd.uids_of("pods");
        if now.get("c-0") == before.get("c-0") {
            Err(etcd.condition("Progressing").to_string())
        } else {
            etcd.is_whole(3)
        }
    });
    etcd.assert_has("greeting", "hello");
    etcd.assert_same_data(3);
}
