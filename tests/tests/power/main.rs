//! Whole nodes fail, and the operator with them. These faults affect every cluster of the lab, so they run one at a
//! time; what affects one cluster only belongs in `heal`.

mod backups;
mod rollouts;

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use e2e::etcd::{Etcd, manifest, manifest_with_quick_replacement};
use e2e::health::HEALING;
use e2e::outage::{OutOfService, Outage, wait_for_node};
use e2e::writer::Writer;
use e2e::{Namespace, SAFETY, eventually, get, inject, is, operator, stays, try_kubectl};
use lab::node::Node;
use serde_json::{Value, json};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // The test before may have taken it away.
    eventually("an operator leads", Duration::from_secs(60), operator::leader);
    alone
}

fn node_of(etcd: &Etcd, member: &str) -> Node {
    Node::named(&etcd.nodes()[member]).unwrap()
}

/// The node on which the operator leads, so that another has to take over first, and the member that is there.
fn node_of_the_operator(etcd: &Etcd) -> (Node, String) {
    let leader = operator::leader().unwrap();
    let leads = |pod: &Value| operator::name(pod) == leader;
    let pod = operator::running_pods().into_iter().find(leads).unwrap();
    let node = pod["spec"]["nodeName"].as_str().unwrap().to_owned();
    let member = etcd.nodes().into_iter().find(|(_, at)| *at == node).expect("a member is on every node").0;
    (Node::named(&node).unwrap(), member)
}

/// What the operator says of the trouble, in all its conditions.
fn told(etcd: &Etcd) -> String {
    ["Available", "Progressing", "Degraded"].map(|kind| format!("{}\n", etcd.condition(kind))).concat()
}

#[test]
fn member_on_a_node_without_power_is_replaced_elsewhere_and_never_comes_back() {
    let _alone = alone();
    let namespace = Namespace::create("power-off");
    let etcd = Etcd::create(&namespace, &manifest_with_quick_replacement("c", 3));
    assert_eq!(etcd.nodes().into_values().collect::<BTreeSet<_>>().len(), 3, "each member has a node of its own");
    let (node, member) = node_of_the_operator(&etcd);
    let (before, old_pod) = (etcd.members(), etcd.uids_of("pods")[&member].clone());
    let old_volume = namespace.kubectl(&format!("get pvc {member} -o jsonpath={{.spec.volumeName}}"));
    let writer = Writer::start(&namespace, "c");

    let outage = Outage::power_off(node);
    eventually("the status names the member that is lost", Duration::from_secs(60), || {
        etcd.says("Degraded", "True", "MembersUnhealthy", &[&member])
    });
    println!("{}", told(&etcd));
    etcd.wait_until_replaced(&member, before[&member].0);
    etcd.wait_until_whole(3);
    assert_ne!(etcd.nodes()[&member], node.name(), "{member} is on another node");
    let (after, pods) = (etcd.members(), etcd.uids_of("pods"));
    for (name, id) in before.iter().filter(|(name, _)| **name != member) {
        assert_eq!(after[name], *id, "{SAFETY}{name} was well and is the same member");
    }

    outage.end();
    stays("nobody joins or leaves when the node is back", Duration::from_secs(20), || {
        is(etcd.uids_of("pods"), pods.clone())?;
        // That etcd does not answer says nothing about its members.
        etcd.try_members().map_or(Ok(()), |members| is(members, after.clone()))
    });
    eventually("the node does not run the old pod", Duration::from_secs(30), || {
        let path = format!("get --raw /api/v1/nodes/{}/proxy/pods", node.name());
        let running = try_kubectl(&path)?;
        if running.contains(&old_pod) { Err(running) } else { Ok(()) }
    });
    eventually("the old volume is gone", Duration::from_secs(60), || {
        match try_kubectl(&format!("get pv {old_volume}")) {
            Err(complaint) if complaint.contains("NotFound") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    etcd.wait_until_whole(3);
    etcd.assert_objects(3);
    etcd.assert_same_data(3);
    let written = writer.finish();
    written.assert_kept(&etcd);
    assert!(written.longest_pause < Duration::from_secs(20), "nothing was written for {:?}", written.longest_pause);
}

#[test]
fn unschedulable_replacement_is_reported_and_the_member_comes_back_with_its_node() {
    let _alone = alone();
    let namespace = Namespace::create("power-apart");
    let mut cluster = manifest_with_quick_replacement("c", 3);
    let term = json!({
        "labelSelector": {"matchLabels": {"etcd.improbable.io/cluster-name": "c"}},
        "topologyKey": "kubernetes.io/hostname",
    });
    cluster["spec"]["podTemplate"] =
        json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}});
    let etcd = Etcd::create(&namespace, &cluster);
    etcd.put("greeting", "hello");

    let outage = Outage::power_off(node_of(&etcd, "c-1"));
    eventually("the status says why no member takes its place", HEALING, || {
        let told = told(&etcd);
        if told.contains("c-1") && told.contains("pod not scheduled") { Ok(()) } else { Err(told) }
    });
    println!("{}", told(&etcd));
    assert_eq!(etcd.condition("Available")["status"], "True");
    etcd.assert_has("greeting", "hello");

    outage.end();
    etcd.wait_until_whole(3);
    etcd.assert_objects(3);
    etcd.assert_same_data(3);
}

/// Somebody who knows that the node is off says so in the way of Kubernetes, and the volume is one that can move.
#[test]
fn member_on_network_storage_moves_with_its_data_from_an_out_of_service_node() {
    let _alone = alone();
    let namespace = Namespace::create("power-moves");
    let mut cluster = manifest("c", 3);
    cluster["spec"]["storage"]["volumeClaimTemplate"]["storageClassName"] = json!("network");
    let etcd = Etcd::create(&namespace, &cluster);
    etcd.put("greeting", "hello");
    let (members, claims, run) = (etcd.members(), etcd.uids_of("pvc"), etcd.run_of("c-1"));
    let node = node_of(&etcd, "c-1");

    let outage = Outage::power_off(node);
    wait_for_node(node, false);
    let out_of_service = OutOfService::declare(node);
    etcd.wait_until_restarted("c-1", &run);
    assert_ne!(etcd.nodes()["c-1"], node.name(), "c-1 is on another node");
    etcd.wait_until_whole(3);
    assert_eq!(etcd.members(), members, "{SAFETY}with its data it is the same member");

    outage.end();
    drop(out_of_service);
    etcd.wait_until_whole(3);
    assert_eq!(etcd.members(), members, "{SAFETY}they are the same members");
    assert_eq!(etcd.uids_of("pvc"), claims, "{SAFETY}they have the same claims");
    assert_eq!(etcd.value_on("c-1", "greeting").as_deref(), Ok("hello"));
    etcd.assert_same_data(3);
}

#[test]
fn cluster_is_the_same_after_a_power_loss_of_all_nodes() {
    let _alone = alone();
    let namespace = Namespace::create("power-all");
    let etcd = Etcd::create(&namespace, &manifest("c", 3));
    etcd.put("greeting", "hello");
    let (members, id, claims) = (etcd.members(), etcd.status()["clusterID"].clone(), etcd.uids_of("pvc"));
    let runs: Vec<_> = etcd.names(3).into_iter().map(|name| (etcd.run_of(&name), name)).collect();

    let outages: Vec<Outage> = Node::all().map(Outage::power_off).collect();
    // Long enough for Kubernetes to notice.
    Node::all().for_each(|node| wait_for_node(node, false));
    for outage in outages {
        outage.end();
    }
    for (run, name) in &runs {
        etcd.wait_until_restarted(name, run);
    }
    etcd.wait_until_whole(3);
    assert_eq!(etcd.members(), members, "{SAFETY}they are the same members");
    assert_eq!(etcd.status()["clusterID"], id, "{SAFETY}it is the same cluster");
    assert_eq!(etcd.uids_of("pvc"), claims, "{SAFETY}they have the same claims");
    etcd.assert_has("greeting", "hello");
    etcd.assert_same_data(3);
}

#[test]
fn faults_during_an_operator_outage_are_repaired_afterwards() {
    let _alone = alone();
    let namespace = Namespace::create("power-operator");
    let etcd = Etcd::create(&namespace, &manifest("c", 3));
    etcd.put("greeting", "hello");
    let (members, id) = (etcd.members(), etcd.status()["clusterID"].clone());

    let absence = operator::Absence::begin();
    namespace.kubectl("delete pod c-0 c-1 c-2 --now");
    namespace.kubectl("delete service c-client");
    inject::wipe_volume(&namespace.name, "c-1");
    assert!(get("--namespace power-operator pods")["items"].as_array().is_some_and(Vec::is_empty), "nobody is there");
    drop(absence);

    etcd.wait_until_replaced("c-1", members["c-1"].0);
    etcd.wait_until_whole(3);
    for name in ["c-0", "c-2"] {
        assert_eq!(etcd.members()[name], members[name], "{SAFETY}{name} is the same member");
    }
    assert_eq!(etcd.status()["clusterID"], id, "{SAFETY}it is the same cluster");
    etcd.assert_has("greeting", "hello");
    assert_eq!(etcd.names_of("services"), ["c", "c-client"]);
    etcd.assert_objects(3);
    etcd.assert_same_data(3);
}
