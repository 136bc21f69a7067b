//! Backups whose pod comes to harm in the middle.

use std::time::Duration;

use e2e::backup::{Order, slow_backup_manifest};
use e2e::stores::{Bucket, Store};
use e2e::{Namespace, SAFETY, eventually, inject};
use serde_json::Value;

use crate::small_cluster;

fn wait_for_the_middle(order: &Order, bucket: &Bucket) -> String {
    let object = format!("{}.db", order.name);
    eventually(&format!("{object} is half there"), Duration::from_secs(60), || {
        let (unfinished, pod) = (bucket.unfinished(), order.pod()?);
        if unfinished.contains(&object) { Ok(pod) } else { Err(format!("{unfinished:?}")) }
    })
}

#[test]
fn backup_whose_pod_is_killed_or_deleted_is_retried() {
    let namespace = Namespace::create("backups-killed");
    let bucket = Bucket::create(Store::S3, "killed", &namespace);
    let etcd = small_cluster(&namespace);
    etcd.enlarge(64);
    let destination = bucket.destination("{{ .Name }}.db");
    let [killed, deleted] = ["killed", "deleted"]
        .map(|name| Order::place(&namespace, &slow_backup_manifest(name, "c", destination.clone())));

    let pod = wait_for_the_middle(&killed, &bucket);
    // Without a word of warning it can't say whose the parts are that it has just begun.
    eventually("it is written down whose they are", Duration::from_secs(60), || {
        let objects = bucket.objects();
        if objects.contains(&"killed.db.unfinished".to_owned()) { Ok(()) } else { Err(format!("{objects:?}")) }
    });
    inject::kill_container(&namespace.name, &pod, "agent").unwrap();
    let pod = wait_for_the_middle(&deleted, &bucket);
    namespace.kubectl(&format!("delete pod {pod} --wait=false"));
    let objects = bucket.objects();
    let whole = |name: &str| objects.iter().any(|it| it == name || *it == format!("{name}.manifest.json"));
    assert!(!whole("killed.db") && !whole("deleted.db"), "{SAFETY}nothing looks whole that is not: {objects:?}");

    for order in [&killed, &deleted] {
        let status = order.complete();
        assert_eq!(status["attempts"], 2, "{status}");
        assert_eq!(status["verified"], true, "{status}");
        assert_eq!(status["message"], Value::Null, "{status}");
    }
    bucket.assert_holds(&["deleted.db", "killed.db"]);
}
