//! A member that is alive and answers nothing.

use std::time::{Duration, Instant};

use e2e::etcd::{Etcd, manifest_with_quick_replacement};
use e2e::writer::Writer;
use e2e::{Namespace, SAFETY, eventually, inject};

#[test]
fn hung_member_is_reported_at_once_and_its_pod_restarted_while_the_others_serve() {
    let namespace = Namespace::create("heal-hang");
    let etcd = Etcd::create(&namespace, &manifest_with_quick_replacement("c", 3));
    let (members, run, pods) = (etcd.members(), etcd.run_of("c-1"), etcd.uids_of("pods"));
    let writer = Writer::start(&namespace, "c");

    inject::pause_container(&namespace.name, "c-1", "etcd").unwrap();
    let hung = Instant::now();
    eventually("the status names the hung member", Duration::from_secs(20), || {
        etcd.says("Degraded", "True", "MembersUnhealthy", &["c-1"])
    });
    println!("a hung member is named after {:?}", hung.elapsed());
    let reported = etcd.status()["members"].as_array().cloned().unwrap_or_default();
    let reported = reported.into_iter().find(|member| member["name"] == "c-1").unwrap_or_default();
    assert!(reported["unhealthySince"].is_string(), "the status says since when: {reported}");

    etcd.wait_until_restarted("c-1", &run);
    println!("it has started again and answers after {:?}", hung.elapsed());
    etcd.wait_until_whole(3);
    let written = writer.finish();
    written.assert_kept(&etcd);
    assert!(written.longest_pause < Duration::from_secs(15), "nothing was written for {:?}", written.longest_pause);
    assert_eq!(etcd.members(), members, "{SAFETY}it is the same member");
    let restarted: Vec<String> =
        etcd.uids_of("pods").into_iter().filter(|(name, uid)| pods[name] != *uid).map(|(name, _)| name).collect();
    assert_eq!(restarted, ["c-1"], "{SAFETY}its pod was made anew, and no other");
}
