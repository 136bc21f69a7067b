//! A user who changes the spec again while the last change is on its way.

use e2e::etcd::Etcd;
use e2e::watch::Pods;
use e2e::writer::Writer;
use e2e::{Namespace, SAFETY};

use crate::manifest_of;

#[test]
fn edit_during_a_rollout_replaces_the_rest_of_it() {
    let namespace = Namespace::create("roll-mind");
    let etcd = Etcd::create(&namespace, &manifest_of("3.6.12", 3));
    etcd.move_leader("c-0");
    let members = etcd.members();
    let (writer, pods) = (Writer::start(&namespace, "c"), Pods::watch(&etcd, 3));

    etcd.set_version("3.6.16");
    etcd.wait_until_told("RecreatingMember", "c-2");
    etcd.set_version("3.7.3");
    etcd.wait_until_runs(3, "3.7.3");
    let written = writer.finish();
    written.assert_kept(&etcd);
    etcd.assert_same_data(3);
    assert_eq!(etcd.members(), members, "{SAFETY}they are the same members");

    let made = pods.made();
    let times = |name: &str| made.iter().filter(|it| *it == name).count();
    assert_eq!(["c-0", "c-1"].map(times), [1, 1], "only c-2 ever ran 3.6.16: {made:?}");
    // If the edit comes before its pod does, it never ran 3.6.16 either.
    assert!((1..=2).contains(&times("c-2")), "once for each edit at most: {made:?}");
    assert!(pods.most_away().len() <= 1, "{SAFETY}these were away at the same time: {:?}", pods.most_away());
    let versions: Vec<String> = etcd.events("VersionAccepted").into_iter().map(|(_, message)| message).collect();
    assert!(["3.6.16", "3.7.3"].iter().all(|it| versions.iter().any(|told| told.contains(it))), "{versions:?}");
}
