//! An EtcdCluster that says itself which backup it begins with, whatever happens to its first pod meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use e2e::backup::{Order, backup_manifest};
use e2e::etcd::manifest;
use e2e::stores::{Bucket, Store};
use e2e::{Namespace, eventually, is, try_kubectl};
use serde_json::{Value, json};

use crate::{Known, made, small_cluster};

/// How far a pod has come: which of its containers ran or run.
fn steps_of(pod: &Value) -> BTreeSet<String> {
    let containers = ["initContainerStatuses", "containerStatuses"].map(|kind| pod["status"][kind].clone());
    let containers = containers.iter().flat_map(|all| all.as_array().cloned().unwrap_or_default()).collect::<Vec<_>>();
    let begun = containers.iter().filter(|container| container["state"]["waiting"].is_null());
    begun.filter_map(|container| container["name"].as_str()).map(str::to_owned).collect()
}

#[test]
fn cluster_is_restored_although_its_first_pod_is_deleted_at_every_step() {
    let namespace = Namespace::create("backups-bootstrap");
    let bucket = Bucket::create(Store::Gcs, "bootstrap", &namespace);
    let etcd = small_cluster(&namespace);
    etcd.fill(1000);
    etcd.enlarge(48);
    let known = Known::of(&etcd);
    Order::place(&namespace, &backup_manifest("b", "c", bucket.destination("b.db"))).complete();

    let mut cluster = manifest("r", 3);
    // So slow that each step can be met.
    cluster["spec"]["podTemplate"] = json!({"resources": {"requests": {"cpu": "20m"}, "limits": {"cpu": "200m"}}});
    cluster["spec"]["bootstrap"] = json!({"restore": bucket.source("b.db")});
    cluster["spec"]["storage"]["volumeClaimTemplate"]["resources"]["requests"]["storage"] = json!("200Mi");
    namespace.apply(&cluster.to_string()).unwrap();
    let mut deleted_at = BTreeSet::new();
    eventually("the first member runs", Duration::from_secs(180), || {
        let pod = namespace.find("pod r-0").ok_or("there is no pod")?;
        let steps = steps_of(&pod);
        if steps.contains("etcd") {
            return Ok(());
        }
        if pod["metadata"]["deletionTimestamp"].is_null() && deleted_at.insert(steps.clone()) {
            let _ = try_kubectl("--namespace backups-bootstrap delete pod r-0 --now --wait=false");
        }
        Err(format!("{steps:?}, deleted at {deleted_at:?}"))
    });
    println!("deleted at {deleted_at:?}");
    let met = |name: &str| deleted_at.iter().any(|steps| steps.contains(name));
    is([met("fetch"), met("restore")], [true; 2]).expect("it was deleted in the middle");

    let restored = made(&namespace, "r");
    restored.wait_for(3);
    known.assert_restored_to(&restored, 3);
    // It is a backup of the beginning: a pod that is recreated goes on with what there is now.
    restored.put("greeting", "hello");
    let run = restored.run_of("r-0");
    namespace.kubectl("delete pod r-0 --now");
    restored.wait_until_restarted("r-0", &run);
    assert_eq!(restored.value_on("r-0", "greeting").as_deref(), Ok("hello"));
}
