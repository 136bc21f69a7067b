//! A node is lost, or the operator is, while a change rolls through a cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use e2e::etcd::{Etcd, manifest};
use e2e::health::HEALING;
use e2e::outage::{Outage, wait_for_node};
use e2e::watch::{Pods, Watch};
use e2e::writer::Writer;
use e2e::{Namespace, SAFETY, eventually, is, operator, stays};
use serde_json::{Value, json};

use crate::{alone, node_of, told};

fn old_cluster(namespace: &Namespace) -> Etcd<'_> {
    let mut cluster = manifest("c", 3);
    cluster["spec"]["version"] = json!("3.6.12");
    Etcd::create(namespace, &cluster)
}

#[test]
fn upgrade_waits_for_a_member_on_a_lost_node_and_continues_when_it_is_back() {
    let _alone = alone();
    let namespace = Namespace::create("power-upgrade");
    let etcd = old_cluster(&namespace);
    etcd.move_leader("c-0");
    let (members, node) = (etcd.members(), node_of(&etcd, "c-1"));
    let (writer, pods) = (Writer::start(&namespace, "c"), Pods::watch(&etcd, 3));

    etcd.set_version("3.6.16");
    etcd.wait_until_told("RecreatingMember", "c-2");
    let outage = Outage::power_off(node);
    wait_for_node(node, false);
    let is_waiting = || {
        etcd.answers("c-2")?;
        let told = told(&etcd);
        if told.contains("c-1") && told.contains("1 of 3 members") { Ok(()) } else { Err(told) }
    };
    eventually("c-2 is back, and the status says for whom the others wait", HEALING, is_waiting);
    println!("{}", told(&etcd));
    stays("nobody else is taken down", Duration::from_secs(20), || is(pods.made(), vec!["c-2".to_owned()]));
    etcd.put("greeting", "hello");

    outage.end();
    etcd.wait_until_runs(3, "3.6.16");
    let written = writer.finish();
    written.assert_kept(&etcd);
    etcd.assert_same_data(3);
    assert_eq!(etcd.members(), members, "{SAFETY}they are the same members");
    assert_eq!(pods.made().into_iter().collect::<BTreeSet<_>>(), etcd.names(3).into_iter().collect());
    assert_eq!(pods.made().len(), 3, "each was restarted once: {:?}", pods.made());
}

/// The steps of a roll, as events tell of them after so many others: what was done, and to whom.
fn steps(events: &Watch, others: usize) -> BTreeSet<(String, String)> {
    let reasons = ["VersionAccepted", "DrainingMember", "RecreatingMember", "PeerCreated", "PodCreated", "LeaderMoved"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let seen = events.seen();
    let told = seen
        .iter()
        .skip(others)
        .map(|seen| (text(&seen["object"]["reason"]), text(&seen["object"]["related"]["name"])));
    told.filter(|(reason, _)| reasons.contains(&reason.as_str())).collect()
}

#[test]
fn upgrade_completes_although_the_operator_is_killed_at_every_step() {
    let _alone = alone();
    let namespace = Namespace::create("power-killed");
    let etcd = old_cluster(&namespace);
    etcd.move_leader("c-2");
    let members = etcd.members();
    let (writer, pods) = (Writer::start(&namespace, "c"), Pods::watch(&etcd, 3));
    let events = Watch::start(&namespace, "events");
    let others = namespace.get("events")["items"].as_array().map(Vec::len).unwrap_or_default();
    eventually("what happened before is seen", Duration::from_secs(10), || is(events.seen().len() >= others, true));

    etcd.set_version("3.6.16");
    let (mut known, mut kills) = (BTreeSet::new(), 0);
    eventually("all members are new", Duration::from_secs(300), || {
        let now = steps(&events, others);
        if now != known {
            println!("killed after {:?}", now.difference(&known).collect::<Vec<_>>());
            operator::kill();
            (known, kills) = (now, kills + 1);
        }
        let versions = namespace.kubectl("get etcdpeers -o jsonpath={.items[*].status.serverVersion}");
        is(versions.as_str(), "3.6.16 3.6.16 3.6.16")
    });
    etcd.wait_until_runs(3, "3.6.16");
    let written = writer.finish();
    println!("{kills} kills");
    assert!(kills >= 6, "two for each member at the least: {known:?}");
    written.assert_kept(&etcd);
    etcd.assert_same_data(3);
    etcd.assert_objects(3);
    assert_eq!(etcd.members(), members, "{SAFETY}they are the same members");
    let mut made = pods.made();
    made.sort();
    assert_eq!(made, etcd.names(3), "each was restarted once");
    assert!(pods.most_away().len() <= 1, "{SAFETY}these were away at the same time: {:?}", pods.most_away());
}
