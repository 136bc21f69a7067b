//! What can't be mended without a person's choice is left as it is.

use std::time::Duration;

use e2e::etcd::{Etcd, manifest};
use e2e::{Namespace, SAFETY, eventually, inject, is, stays};

#[test]
fn nothing_is_deleted_or_bootstrapped_when_a_majority_has_lost_its_data() {
    let namespace = Namespace::create("heal-quorum");
    let etcd = Etcd::create(&namespace, &manifest("c", 3));
    etcd.put("greeting", "hello");
    eventually("every member has the data", Duration::from_secs(20), || {
        is(etcd.value_on("c-2", "greeting"), Ok("hello".to_owned()))
    });
    let id = etcd.status()["clusterID"].clone();
    let objects = || (etcd.uids_of("pvc"), etcd.uids_of("etcdpeers"), etcd.uids_of("pods").get("c-2").cloned());
    let before = objects();

    for lost in ["c-0", "c-1"] {
        inject::wipe_volume(&namespace.name, lost);
    }
    namespace.kubectl("delete pod c-0 c-1 --now");
    eventually("the status says who has lost their data", Duration::from_secs(120), || {
        etcd.says("Available", "False", "QuorumLost", &["c-0", "c-1"])
    });
    let told = etcd.condition("Available")["message"].as_str().unwrap_or_default().to_owned();
    println!("{told}");
    let shown = namespace.kubectl("get etcdcluster c --no-headers");
    assert!(shown.split_whitespace().any(|word| word == "False"), "{shown}");

    stays("nothing is taken away, and nothing is made in its place", Duration::from_secs(20), || {
        is(objects(), before.clone())?;
        let going = "get pvc,etcdpeers -o jsonpath={.items[*].metadata.deletionTimestamp}";
        is(namespace.kubectl(going), String::new())?;
        etcd.says("Available", "False", "QuorumLost", &["c-0", "c-1"])?;
        is(namespace.kubectl("get events --field-selector reason=MemberRemoved -o name"), String::new())
    });
    assert_eq!(etcd.status()["clusterID"], id, "{SAFETY}it is the same cluster");
    assert_eq!(etcd.value_on("c-2", "greeting").as_deref(), Ok("hello"), "what is left still has the data");
}
