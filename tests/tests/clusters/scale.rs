//! Members come and go, one at a time, and no data with them.

use std::time::Duration;

use e2e::etcd::{Etcd, manifest};
use e2e::writer::Writer;
use e2e::{Namespace, SAFETY, eventually, finish, operator};
use lab::{api, faults};

#[test]
fn cluster_scales_from_three_to_five_to_three_under_load() {
    let namespace = Namespace::create("scale-up-down");
    let etcd = Etcd::create(&namespace, &manifest("c", 3));
    let writer = Writer::start(&namespace, "c");
    etcd.scale(5);
    etcd.wait_for(5);
    etcd.assert_voters(5);
    assert_eq!(namespace.get("pdb c")["spec"]["minAvailable"], 3);
    etcd.scale(3);
    etcd.wait_for(3);
    let written = writer.finish();
    written.assert_kept(&etcd);
    etcd.assert_voters(3);
    etcd.assert_objects(3);
    let story = namespace.kubectl("describe etcdcluster c");
    for chapter in ["ClusterCreated", "MemberAdded", "MemberPromoted", "MemberRemoved", "PVCDeleted", "PeerRemoved"] {
        assert!(story.contains(chapter), "no {chapter} in\n{story}");
    }
}

#[test]
fn cluster_scales_from_one_to_three_to_one_and_to_four() {
    let namespace = Namespace::create("scale-one");
    let etcd = Etcd::create(&namespace, &manifest("c", 1));
    etcd.put("greeting", "hello");
    for size in [3, 1, 4] {
        // By apply this time, as a person with a file would.
        namespace.apply(&manifest("c", size).to_string()).unwrap();
        etcd.wait_for(size.into());
        etcd.assert_voters(size);
        etcd.assert_has("greeting", "hello");
    }
}

#[test]
fn scale_reversed_in_the_middle_reaches_the_last_size() {
    let namespace = Namespace::create("scale-mind");
    let etcd = Etcd::create(&namespace, &manifest("c", 3));
    etcd.put("greeting", "hello");
    etcd.scale(5);
    eventually("a learner is on its way", Duration::from_secs(60), || {
        let members = etcd.members();
        if members.len() > 3 { Ok(()) } else { Err(format!("{members:?}")) }
    });
    etcd.scale(3);
    etcd.wait_for(3);
    etcd.assert_voters(3);
    etcd.scale(1);
    etcd.scale(2);
    etcd.wait_for(2);
    etcd.assert_voters(2);
    etcd.assert_has("greeting", "hello");
}

#[test]
fn scale_down_that_would_endanger_the_quorum_waits_and_is_explained() {
    let namespace = Namespace::create("scale-risk");
    let etcd = Etcd::create(&namespace, &manifest("c", 3));
    let client = || async { api::client().await.unwrap() };
    finish(async { faults::pause_container(&client().await, "scale-risk", "c-0", "etcd").await }).unwrap();
    eventually("the hung member is known", Duration::from_secs(60), || {
        let degraded = etcd.condition("Degraded");
        let message = degraded["message"].as_str().unwrap_or_default();
        if degraded["status"] == "True" && message.contains("c-0") { Ok(()) } else { Err(degraded.to_string()) }
    });
    etcd.scale(2);
    eventually("the operator waits", Duration::from_secs(60), || {
        let progressing = etcd.condition("Progressing");
        if progressing["reason"] == "QuorumAtRisk" { Ok(()) } else { Err(progressing.to_string()) }
    });
    assert_eq!(etcd.names_of("etcdpeers").len(), 3, "{SAFETY}nothing was removed");
    finish(async { faults::resume_container(&client().await, "scale-risk", "c-0", "etcd").await }).unwrap();
    etcd.wait_for(2);
    etcd.assert_voters(2);
}

/// The operator dies again and again, at moments that fall where they fall, while a cluster grows and shrinks under load.
/// `SCALE_ROUNDS` says how often (1 unless set); the moments are others in each round.
#[test]
fn scaling_completes_although_the_operator_is_killed_many_times() {
    let namespace = Namespace::create("scale-killed");
    let etcd = Etcd::create(&namespace, &manifest("c", 3));
    let writer = Writer::start(&namespace, "c");
    let rounds = std::env::var("SCALE_ROUNDS").map_or(1, |text| text.parse().expect("SCALE_ROUNDS is a number"));
    for (round, size) in [5, 3].repeat(rounds).into_iter().enumerate() {
        etcd.scale(size);
        for kill in 0..3 {
            // Different moments each time, spread over the seconds that scaling takes.
            std::thread::sleep(Duration::from_millis(700 + 900 * kill + 250 * round as u64));
            operator::kill();
        }
        etcd.wait_for(size.into());
        etcd.assert_voters(size);
    }
    let written = writer.finish();
    written.assert_kept(&etcd);
    etcd.assert_objects(3);
}
