//! Changes that etcd can't follow are refused with a sentence, and nothing moves.

use std::time::Duration;

use e2e::etcd::Etcd;
use e2e::{Namespace, SAFETY, eventually, is, stays};
use serde_json::{Value, json};

use crate::manifest_of;

/// Asks for what is refused with these words, and takes it back.
fn is_refused(etcd: &Etcd, patch: &Value, back: &Value, words: &[&str]) {
    let objects = || (etcd.uids_of("etcdpeers"), etcd.uids_of("pods"), etcd.uids_of("pvc"));
    let (before, target) = (objects(), etcd.status()["targetVersion"].clone());
    etcd.patch(patch);
    eventually("the status says why it is refused", Duration::from_secs(30), || {
        etcd.says("Progressing", "False", "ChangeRefused", words)
    });
    println!("{}", etcd.condition("Progressing")["message"]);
    stays("nothing moves", Duration::from_secs(5), || {
        is(objects(), before.clone())?;
        etcd.says("Progressing", "False", "ChangeRefused", words)
    });
    assert_eq!(etcd.status()["targetVersion"], target, "nobody is brought to what is refused");
    assert_eq!(etcd.condition("Available")["status"], "True");
    etcd.patch(back);
    eventually("the cluster is as asked for", Duration::from_secs(30), || {
        etcd.says("Progressing", "False", "UpToDate", &[])
    });
    assert_eq!(objects(), before, "{SAFETY}taking it back moves nothing either");
}

#[test]
fn upgrade_that_skips_a_minor_is_refused() {
    let namespace = Namespace::create("roll-skip");
    let etcd = Etcd::create(&namespace, &manifest_of("3.5.35", 3));
    let version = |version: &str| json!({"spec": {"version": version}});
    let words = ["can't be upgraded from 3.5 to 3.7 in one step", "set spec.version to a version of 3.6 first"];
    is_refused(&etcd, &version("3.7.3"), &version("3.5.35"), &words);
    is_refused(&etcd, &version("3.4.0"), &version("3.5.35"), &["can't be downgraded"]);
    etcd.wait_until_runs(3, "3.5.35");
}

#[test]
fn flags_unknown_to_the_next_version_are_named() {
    let namespace = Namespace::create("roll-flags");
    let mut cluster = manifest_of("3.6.16", 1);
    cluster["spec"]["etcd"] =
        json!({"extraArgs": {"experimental-compaction-batch-limit": "1000", "max-txn-ops": "200"}});
    let etcd = Etcd::create(&namespace, &cluster);
    let version = |version: &str| json!({"spec": {"version": version}});
    let words = ["does not know these flags in spec.etcd.extraArgs: experimental-compaction-batch-limit;"];
    is_refused(&etcd, &version("3.7.3"), &version("3.6.16"), &words);

    // With what replaced it, the same upgrade is possible.
    let args = json!({"experimental-compaction-batch-limit": null, "compaction-batch-limit": "1000"});
    etcd.patch(&json!({"spec": {"version": "3.7.3", "etcd": {"extraArgs": args}}}));
    etcd.wait_until_runs(1, "3.7.3");
}
