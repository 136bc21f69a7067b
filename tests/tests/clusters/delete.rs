//! Deleting a cluster keeps its data, unless the user wants it gone; and what was kept comes back.

use std::time::Duration;

use e2e::etcd::{Etcd, manifest};
use e2e::{Namespace, SAFETY, eventually, is};
use serde_json::json;

fn delete(etcd: &Etcd) {
    etcd.namespace.kubectl(&format!("delete etcdcluster {}", etcd.name));
    eventually("everything but the claims is gone", Duration::from_secs(60), || {
        let left: Vec<String> =
            ["etcdpeers", "pods", "services", "pdb"].into_iter().flat_map(|kind| etcd.names_of(kind)).collect();
        is(left, Vec::new())
    });
}

#[test]
fn recreated_cluster_has_the_same_data_members_and_id() {
    let namespace = Namespace::create("delete-keep");
    let etcd = Etcd::create(&namespace, &manifest("c", 3));
    etcd.put("greeting", "hello");
    let (members, id) = (etcd.members(), etcd.status()["clusterID"].clone());
    delete(&etcd);
    assert_eq!(etcd.names_of("pvc"), ["c-0", "c-1", "c-2"], "{SAFETY}they have the same claims");

    let again = Etcd::create(&namespace, &manifest("c", 3));
    assert_eq!(again.status()["clusterID"], id, "{SAFETY}it is the same cluster");
    assert_eq!(again.members(), members, "{SAFETY}they are the same members");
    again.assert_has("greeting", "hello");
    delete(&again);

    // With another size it is the same cluster first, and then it grows.
    let larger = Etcd::create(&namespace, &manifest("c", 5));
    assert_eq!(larger.status()["clusterID"], id, "{SAFETY}it is the same cluster");
    larger.assert_voters(5);
    delete(&larger);
    let smaller = Etcd::create(&namespace, &manifest("c", 1));
    assert_eq!(smaller.status()["clusterID"], id, "{SAFETY}it is the same cluster");
    smaller.assert_voters(1);
    smaller.assert_has("greeting", "hello");
    assert_eq!(smaller.names_of("pvc"), ["c-0"]);
}

#[test]
fn missing_volumes_never_bootstrap_a_second_cluster() {
    let namespace = Namespace::create("delete-missing");
    let etcd = Etcd::create(&namespace, &manifest("c", 3));
    etcd.put("greeting", "hello");
    let (members, id) = (etcd.members(), etcd.status()["clusterID"].clone());
    delete(&etcd);

    namespace.kubectl("delete pvc c-1");
    namespace.apply(&manifest("c", 3).to_string()).unwrap();
    etcd.wait_for(3);
    assert_eq!(etcd.status()["clusterID"], id, "{SAFETY}it is the same cluster");
    etcd.assert_has("greeting", "hello");
    let healed = etcd.members();
    let ids = |name: &str| (healed[name], members[name]);
    assert_eq!(ids("c-0").0, ids("c-0").1, "{SAFETY}c-0 had its data and is who it was");
    assert_eq!(ids("c-2").0, ids("c-2").1, "{SAFETY}so is c-2");
    assert_ne!(ids("c-1").0, ids("c-1").1, "the one that had none is a new member");
    delete(&etcd);

    namespace.kubectl("delete pvc c-0 c-1");
    namespace.apply(&manifest("c", 3).to_string()).unwrap();
    eventually("one of three is no quorum", Duration::from_secs(60), || {
        let available = etcd.condition("Available");
        if available["status"] == "False" && available["reason"] == "NoQuorum" {
            Ok(())
        } else {
            Err(available.to_string())
        }
    });
    assert_eq!(etcd.status()["clusterID"], id, "{SAFETY}it is the same cluster");
    assert_eq!(etcd.names_of("pvc"), ["c-2"], "{SAFETY}nothing was made in place of what is gone");
}

#[test]
fn volumes_are_deleted_with_the_cluster_on_request() {
    let namespace = Namespace::create("delete-volumes");
    let etcd = Etcd::create(&namespace, &manifest("c", 1));
    let mut gone = manifest("c", 1);
    gone["spec"]["deletionPolicy"] = json!("DeleteVolumes");
    namespace.apply(&gone.to_string()).unwrap();
    eventually("the claim follows the cluster", Duration::from_secs(30), || {
        is(
            namespace.get("pvc c-0")["metadata"]["ownerReferences"][0]["kind"].as_str().map(str::to_owned),
            Some("EtcdCluster".to_owned()),
        )
    });
    delete(&etcd);
    eventually("the claims are gone", Duration::from_secs(60), || is(etcd.names_of("pvc"), Vec::new()));
}

/// What the user wants gone goes, even if a cluster of the same name is created before it is.
#[test]
fn terminating_volumes_are_not_adopted() {
    let namespace = Namespace::create("delete-at-once");
    let mut cluster = manifest("c", 3);
    cluster["spec"]["deletionPolicy"] = json!("DeleteVolumes");
    let etcd = Etcd::create(&namespace, &cluster);
    etcd.put("greeting", "hello");
    let id = etcd.status()["clusterID"].clone();
    namespace.kubectl("delete etcdcluster c --wait=false");
    let again = Etcd::create(&namespace, &cluster);
    assert_ne!(again.status()["clusterID"], id, "it is another cluster");
    assert_eq!(again.value("greeting"), None, "and has none of the data");
    again.assert_voters(3);
}
