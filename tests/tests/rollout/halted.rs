//! A change that does not do a member good stops there: the others serve, and the change can be taken back.

use std::time::Duration;

use e2e::etcd::Etcd;
use e2e::watch::Pods;
use e2e::{Namespace, SAFETY, eventually, is, stays};
use serde_json::{Value, json};

use crate::manifest_of;

/// Makes a change that lets a member fail, sees that it stops there, and takes it back.
fn halts_and_can_be_taken_back(etcd: &Etcd, patch: &Value, back: &Value, why: &str) {
    etcd.move_leader("c-0");
    let (members, before, pods) = (etcd.members(), etcd.uids_of("pods"), Pods::watch(etcd, 3));
    let others = || etcd.uids_of("pods").into_iter().filter(|(name, _)| name != "c-2").collect::<Vec<_>>();
    let others_before = others();
    etcd.patch(patch);
    eventually("the status says that the change has stopped, and why", Duration::from_secs(120), || {
        etcd.says("Progressing", "False", "RolloutHalted", &["0 of 3 members", "c-2", why])
    });
    println!("{}", etcd.condition("Progressing")["message"]);
    eventually("the status names who is missing, and why", Duration::from_secs(30), || {
        let degraded = etcd.condition("Degraded");
        let message = degraded["message"].as_str().unwrap_or_default();
        let told = degraded["status"] == "True" && message.contains("c-2") && message.contains(why);
        if told { Ok(()) } else { Err(degraded.to_string()) }
    });
    stays("the two others are left alone", Duration::from_secs(6), || is(others(), others_before.clone()));
    assert_eq!(etcd.condition("Available")["status"], "True");
    etcd.put("greeting", why);

    etcd.patch(back);
    etcd.wait_until_runs(3, "3.6.16");
    assert_eq!(etcd.members(), members, "{SAFETY}they are the same members");
    assert_eq!(others(), others_before, "{SAFETY}the two others were never touched");
    assert_ne!(etcd.uids_of("pods"), before);
    assert_eq!(pods.made(), ["c-2", "c-2"], "once for the change, and once to take it back");
    etcd.assert_has("greeting", why);
    etcd.assert_same_data(3);
}

#[test]
fn rollout_halts_at_a_failing_member_and_can_be_reverted() {
    let namespace = Namespace::create("roll-halted");
    let etcd = Etcd::create(&namespace, &manifest_of("3.6.16", 3));
    let version = |version: &str| json!({"spec": {"version": version}});
    // There is no such image.
    halts_and_can_be_taken_back(&etcd, &version("3.6.99"), &version("3.6.16"), "3.6.99");
    // etcd ends at once when it is given a flag that it does not know.
    let args = |args: Value| json!({"spec": {"etcd": {"extraArgs": args}}});
    let (wrong, right) = (args(json!({"no-such-flag": "x"})), args(Value::Null));
    halts_and_can_be_taken_back(&etcd, &wrong, &right, "CrashLoopBackOff");
}
