//! Restores that can't be: nothing is made, and nothing that is there is touched.

use e2e::backup::{Order, backup_manifest, restore_manifest};
use e2e::etcd::Etcd;
use e2e::stores::{Bucket, Store, write_secret};
use e2e::{Namespace, SAFETY};
use serde_json::{Value, json};

use crate::encoded::{OTHER_IDENTITY, RECIPIENT, opened_with};
use crate::{Known, made, small_cluster};

/// The EtcdClusters that there are.
fn clusters(namespace: &Namespace) -> Vec<String> {
    namespace
        .kubectl("get etcdclusters -o custom-columns=:metadata.name --no-headers")
        .lines()
        .map(str::to_owned)
        .collect()
}

/// A backup, an encrypted one, and one of which a byte is wrong.
fn back_up(namespace: &Namespace, bucket: &Bucket) {
    let order = |name: &str| backup_manifest(name, "c", bucket.destination("{{ .Name }}.db"));
    let mut encrypted = order("encrypted");
    encrypted["spec"]["encryption"] = json!({"age": {"recipients": [RECIPIENT]}});
    let manifests = [order("good"), order("corrupt"), encrypted];
    let orders = manifests.map(|manifest| Order::place(namespace, &manifest));
    orders.iter().for_each(|order| drop(order.complete()));
    bucket.corrupt_byte("corrupt.db", bucket.read("corrupt.db").len() as u64 / 2);
}

#[test]
fn restore_that_cannot_succeed_fails_with_its_cause_and_creates_nothing() {
    let namespace = Namespace::create("backups-refused");
    let bucket = Bucket::create(Store::S3, "refused", &namespace);
    write_secret(&namespace, "wrong-identity", &json!({"identity.txt": OTHER_IDENTITY}));
    let etcd = small_cluster(&namespace);
    etcd.fill(100);
    let known = Known::of(&etcd);
    back_up(&namespace, &bucket);

    let to_new = |name: &str, source: Value| restore_manifest(name, source, &format!("r-{name}"), 1);
    let mut wrong_key = bucket.source("encrypted.db");
    wrong_key["decryption"] = opened_with("wrong-identity");
    let mut wrong_version = to_new("version", bucket.source("good.db"));
    wrong_version["spec"]["clusterTemplate"]["spec"]["version"] = json!("3.7.3");
    let mut wrong_hash = bucket.source("good.db");
    wrong_hash["sha256"] = json!("0".repeat(64));
    let cases = [
        (to_new("corrupt", bucket.source("corrupt.db")), "HashMismatch", vec!["corrupt.db"]),
        (to_new("hash", wrong_hash), "HashMismatch", vec!["good.db"]),
        (to_new("key", wrong_key), "WrongKey", vec!["encrypted.db"]),
        (to_new("without-key", bucket.source("encrypted.db")), "WrongKey", vec!["encrypted.db"]),
        (to_new("nothing", bucket.source("nothing.db")), "NoSuchObject", vec!["nothing.db"]),
        (to_new("no-backup", json!({"backupName": "nobody"})), "NoSuchBackup", vec!["nobody"]),
        (wrong_version, "WrongVersion", vec!["3.6.16", "3.7.3"]),
        (restore_manifest("exists", bucket.source("good.db"), "c", 1), "ClusterExists", vec!["\"c\""]),
    ];
    let objects = || (etcd.uids_of("pods"), etcd.uids_of("pvc"), etcd.object()["metadata"]["generation"].clone());
    let before = objects();
    let orders: Vec<Order> = cases.iter().map(|(manifest, ..)| Order::place(&namespace, manifest)).collect();
    for (order, (_, reason, mentions)) in orders.iter().zip(&cases) {
        order.fail(reason, mentions);
    }
    assert_eq!(clusters(&namespace), ["c"], "{SAFETY}no cluster was made");
    assert_eq!(objects(), before, "{SAFETY}nothing of the one that is there was touched");
    assert_eq!(Known::of(&etcd).contents, known.contents, "{SAFETY}the data is as it was");
    over_volumes_that_were_left_behind(&etcd, &bucket);

    Order::place(&namespace, &restore_manifest("good", bucket.source("good.db"), "r", 1)).complete();
    known.assert_restored_to(&made(&namespace, "r"), 1);
}

fn over_volumes_that_were_left_behind(etcd: &Etcd, bucket: &Bucket) {
    let (namespace, claims) = (etcd.namespace, etcd.uids_of("pvc"));
    namespace.kubectl("delete etcdcluster c --timeout=60s");
    assert_eq!(etcd.uids_of("pvc"), claims, "{SAFETY}a deleted cluster leaves its data");
    Order::place(namespace, &restore_manifest("volumes", bucket.source("good.db"), "c", 1))
        .fail("VolumesExist", &["c-0"]);
    assert_eq!(etcd.uids_of("pvc"), claims, "{SAFETY}they have the same claims");
    assert_eq!(clusters(namespace), Vec::<String>::new(), "{SAFETY}no cluster was made");
}
