//! A member whose data is not that of the others.

use std::time::Duration;

use e2e::etcd::{Etcd, manifest};
use e2e::{Namespace, SAFETY, eventually, inject, is};
use serde_json::json;

#[test]
fn corrupt_member_is_reported_and_replaced() {
    let namespace = Namespace::create("heal-corrupt");
    let mut cluster = manifest("c", 3);
    cluster["spec"]["maintenance"] = json!({"corruptionCheck": {"interval": "10s"}});
    let etcd = Etcd::create(&namespace, &cluster);
    etcd.put("greeting", "unmistakable");
    etcd.assert_same_data(3);
    let members = etcd.members();

    inject::corrupt_volume_for_good((&namespace.name, "c-1", "unmistakable"), || {
        etcd.etcdctl(&["put", "something", "else"])?;
        // The operator may be quicker than this test.
        let is_gone = etcd.try_members()?.get("c-1") != Some(&members["c-1"]);
        if is_gone { Ok(()) } else { etcd.has_other_data("c-1") }
    });
    etcd.wait_until_replaced("c-1", members["c-1"].0);
    etcd.wait_until_whole(3);
    let story = namespace.kubectl("describe etcdcluster c");
    let told = story.lines().any(|line| line.contains("c-1") && (line.contains("differ") || line.contains("corrupt")));
    assert!(told, "nothing tells why c-1 was replaced:\n{story}");

    etcd.assert_same_data(3);
    for name in etcd.names(3) {
        // A member that has just joined may be a moment behind the others.
        eventually(&format!("{name} has the right value"), Duration::from_secs(20), || {
            is(etcd.value_on(&name, "greeting"), Ok("unmistakable".to_owned()))
        });
    }
    for name in ["c-0", "c-2"] {
        assert_eq!(etcd.members()[name], members[name], "{SAFETY}{name} was right and is the same member");
    }
}
