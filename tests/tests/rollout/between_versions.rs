//! A cluster goes from one version of etcd to another, up and down.

use std::time::{Duration, Instant};

use e2e::etcd::Etcd;
use e2e::watch::{Pods, Watch};
use e2e::writer::{Writer, Written};
use e2e::{Namespace, SAFETY};

use crate::manifest_of;

/// Nothing that was acknowledged is lost, everybody has it, and clients hardly noticed.
fn assert_unharmed(written: &Written, etcd: &Etcd) {
    written.assert_kept(etcd);
    etcd.assert_same_data(3);
    assert!(written.longest_pause < Duration::from_secs(10), "nothing was written for {:?}", written.longest_pause);
}

#[test]
fn cluster_goes_from_3_5_to_3_6_to_3_7_and_back_to_3_6_under_load() {
    let namespace = Namespace::create("roll-minors");
    let etcd = Etcd::create(&namespace, &manifest_of("3.5.35", 3));
    etcd.wait_until_runs(3, "3.5.35");
    let (members, id, claims) = (etcd.members(), etcd.status()["clusterID"].clone(), etcd.uids_of("pvc"));
    let writer = Writer::start(&namespace, "c");
    let (pods, clusters) = (Pods::watch(&etcd, 3), Watch::start(&namespace, "etcdclusters"));

    for version in ["3.6.16", "3.7.3", "3.6.16"] {
        let began = Instant::now();
        etcd.set_version(version);
        etcd.wait_until_runs(3, version);
        println!("all members run {version} after {:?}", began.elapsed());
        assert_eq!(etcd.members(), members, "{SAFETY}with {version} they are the same members");
    }
    assert_unharmed(&writer.finish(), &etcd);
    assert_eq!(etcd.status()["clusterID"], id, "{SAFETY}it is the same cluster");
    assert_eq!(etcd.uids_of("pvc"), claims, "{SAFETY}they have the same claims");
    etcd.assert_voters(3);
    etcd.assert_objects(3);
    assert_eq!(pods.made().len(), 9, "three times each of the three: {:?}", pods.made());
    assert!(pods.most_away().len() <= 1, "{SAFETY}these were away at the same time: {:?}", pods.most_away());

    let told = |reason: &str| etcd.events(reason).into_iter().map(|(_, message)| message).collect::<Vec<_>>();
    // 3.7 can't read what 3.5 left in the logs: 3.6 forgets it when it prepares for a way back that is not taken.
    for (target, why) in [("3.5.0", "before 3.7"), ("3.6.0", "for the way back")] {
        let count = told("DowngradeEnabled").iter().filter(|message| message.contains(target)).count();
        assert_eq!(count, 1, "etcd is told to prepare for {target} {why}: {:?}", told("DowngradeEnabled"));
    }
    assert!(!told("DowngradeCancelled").is_empty(), "the way back to 3.5 was not taken");
    for step in ["spec.version 3.5.35 → 3.6.16", "spec.version 3.6.16 → 3.7.3", "spec.version 3.7.3 → 3.6.16"] {
        let count = told("RecreatingMember").iter().filter(|message| message.contains(step)).count();
        assert_eq!(count, 3, "each member is told of with {step}: {:?}", told("RecreatingMember"));
    }
    let conditions =
        clusters.seen().iter().map(|seen| seen["object"]["status"]["conditions"].to_string()).collect::<Vec<_>>();
    let was_said = |said: &str| conditions.iter().any(|it| it.contains(said));
    for said in ["PreparingUpgrade", "1 of 3 members up to date", "2 of 3 members up to date"] {
        assert!(was_said(said), "the status never said: {said}");
    }
    // etcd may be done with it before the operator looks again, and then there was nothing to wait for.
    assert!(was_said("PreparingDowngrade") || was_said("EnablingDowngrade"), "the status never said what it prepares");
}

#[test]
fn patch_upgrade_restarts_one_member_at_a_time_and_the_leader_last_under_load() {
    let namespace = Namespace::create("roll-patch");
    let etcd = Etcd::create(&namespace, &manifest_of("3.6.12", 3));
    let (members, claims, peers) = (etcd.members(), etcd.uids_of("pvc"), etcd.uids_of("etcdpeers"));
    // It would be the first if it did not lead.
    etcd.move_leader("c-2");
    let (writer, pods) = (Writer::start(&namespace, "c"), Pods::watch(&etcd, 3));

    etcd.set_version("3.6.16");
    etcd.wait_until_runs(3, "3.6.16");
    assert_unharmed(&writer.finish(), &etcd);
    assert_eq!(pods.made(), ["c-1", "c-0", "c-2"]);
    assert!(pods.most_away().len() <= 1, "{SAFETY}these were away at the same time: {:?}", pods.most_away());
    assert_eq!(etcd.members(), members, "{SAFETY}they are the same members");
    assert_eq!(etcd.uids_of("pvc"), claims, "{SAFETY}on the same volumes");
    let same: Vec<_> = etcd.uids_of("etcdpeers").into_iter().filter(|(name, uid)| peers[name] == *uid).collect();
    assert!(same.is_empty(), "these EtcdPeers were not made anew: {same:?}");

    assert_eq!(etcd.events("VersionAccepted").len(), 1, "{:?}", etcd.events("VersionAccepted"));
    for reason in ["DrainingMember", "RecreatingMember"] {
        let told: Vec<String> = etcd.events(reason).into_iter().map(|(about, _)| about).collect();
        assert!(etcd.names(3).iter().all(|name| told.contains(name)), "{reason} is not told of all: {told:?}");
    }
    assert_eq!(etcd.events("Draining"), [], "DrainingMember says it already");
    let moved: Vec<String> = etcd.events("LeaderMoved").into_iter().map(|(about, _)| about).collect();
    assert_eq!(moved, ["c-2"], "the leader handed over before it was restarted");
}
