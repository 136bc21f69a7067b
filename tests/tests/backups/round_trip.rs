//! A cluster is backed up to every kind of location, and what is restored from there is the same.

use e2e::backup::{Order, backup_manifest, condition, restore_manifest};
use e2e::etcd::Etcd;
use e2e::hash::Hash;
use e2e::stores::{Bucket, Store};
use e2e::{Namespace, SAFETY};
use serde_json::{Value, json};

use crate::{Known, cluster_of, made};

const KEYS: u32 = 10_000;

/// Where a backup goes and where it is found again, each told in another of the ways in which that can be done.
struct Location {
    name: &'static str,
    destination: Value,
    source: Value,
    bucket: Option<Bucket>,
}

fn object(namespace: &Namespace, name: &str) -> String {
    format!("{}/{name}.db", namespace.name)
}

fn in_s3(namespace: &Namespace) -> Location {
    let bucket = Bucket::create(Store::S3, &namespace.name, namespace);
    let destination = bucket.destination("{{ .Namespace }}/{{ .Name }}.db");
    Location { name: "s3", destination, source: bucket.source(&object(namespace, "s3")), bucket: Some(bucket) }
}

/// The same, with the bucket in the name of the server, as Amazon has it.
fn in_s3_by_name(namespace: &Namespace) -> Location {
    let mut location = in_s3(namespace);
    for access in [&mut location.destination, &mut location.source] {
        access["s3"] = json!({"endpoint": "http://s3.lab.internal:9000", "region": "us-east-1"});
    }
    location
}

fn in_gcs(namespace: &Namespace) -> Location {
    let bucket = Bucket::create(Store::Gcs, &namespace.name, namespace);
    let credentials = json!({"googleCloud": {"secretKeyRef": {"name": "gcs", "key": "gcp.json"}}});
    let destination = json!({"gcsBucket": {"bucketName": bucket.name, "credentials": credentials}});
    let source = json!({"bucket": {
        "bucketURL": format!("gs://{}", bucket.name),
        "objectPath": object(namespace, "gcs"),
        "credentials": credentials,
    }});
    Location { name: "gcs", destination, source, bucket: Some(bucket) }
}

fn in_azure(namespace: &Namespace) -> Location {
    let bucket = Bucket::create(Store::Azure, &namespace.name, namespace);
    let destination = bucket.destination("{{ .Namespace }}/{{ .Name }}.db");
    Location { name: "azure", destination, source: json!({"backupName": "azure"}), bucket: Some(bucket) }
}

fn in_volume(namespace: &Namespace) -> Location {
    let claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "backups"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100Mi"}}},
    });
    namespace.apply(&claim.to_string()).unwrap();
    let destination = json!({"persistentVolumeClaim": {"claimName": "backups"}});
    let path = object(namespace, "volume");
    let source = json!({"persistentVolumeClaim": {"claimName": "backups", "path": path}});
    Location { name: "volume", destination, source, bucket: None }
}

/// A cluster whose keys have a history.
fn filled_cluster<'a>(namespace: &'a Namespace, version: &str) -> Etcd<'a> {
    let etcd = cluster_of(namespace, version, 3);
    etcd.fill(KEYS + 50);
    etcd.rewrite(KEYS + 50, 100, 50);
    etcd.assert_same_data(3);
    etcd
}

fn assert_backed_up(etcd: &Etcd, known: &Known, version: &str, location: &Location, backup: &Order) {
    let status = backup.complete();
    let url = status["objectURL"].as_str().unwrap_or_default();
    assert!(url.ends_with(&object(etcd.namespace, location.name)), "{status}");
    for (field, expected) in [
        ("revision", json!(known.revision)),
        ("keys", json!(KEYS)),
        ("etcdVersion", json!(version)),
        ("clusterID", known.cluster_id.clone()),
        ("withQuorum", json!(true)),
        ("attempts", json!(1)),
        ("verified", json!(true)),
        ("objectSize", status["snapshotSize"].clone()),
    ] {
        assert_eq!(status[field], expected, "{field} in {status}");
    }
    assert_eq!(condition(&status, "Complete")["status"], "True", "{status}");
    assert_eq!(condition(&status, "Verified")["status"], "True", "{status}");
    assert_eq!(condition(&status, "QuorumLost"), Value::Null, "{status}");
    if let Some(bucket) = &location.bucket {
        let object = object(etcd.namespace, location.name);
        bucket.assert_holds(&[&object]);
        let manifest = bucket.manifest_of(&object);
        assert_eq!((&manifest["revision"], &manifest["keys"]), (&status["revision"], &status["keys"]));
        let hash = &manifest["kvHash"];
        let recorded = (hash["hash"].as_u64().unwrap(), hash["compactRevision"].as_i64().unwrap());
        let hashes = etcd.hashes().unwrap();
        // etcd says -1 if nothing was ever compacted.
        let same = |hash: &Hash| (hash.0, hash.1.max(0)) == (recorded.0, recorded.1.max(0));
        assert!(hashes.values().all(same), "{hashes:?} in etcd, {recorded:?} in the manifest");
    }
}

fn round_trip(namespace: &Namespace, version: &str, locations: &[Location]) {
    let etcd = filled_cluster(namespace, version);
    let known = Known::of(&etcd);
    assert_eq!(known.contents.len(), KEYS as usize);
    let backups: Vec<Order> = locations
        .iter()
        .map(|location| {
            let mut manifest = backup_manifest(location.name, "c", location.destination.clone());
            manifest["spec"]["verify"] = json!("Restore");
            Order::place(namespace, &manifest)
        })
        .collect();
    for (location, backup) in locations.iter().zip(&backups) {
        assert_backed_up(&etcd, &known, version, location, backup);
    }
    // Where a backup comes from matters to the first member only, so only the last of the new clusters grows.
    let sizes = || std::iter::repeat_n(1, locations.len() - 1).chain([3]);
    let restores: Vec<Order> = locations
        .iter()
        .zip(sizes())
        .map(|(location, size)| {
            let cluster = format!("from-{}", location.name);
            Order::place(namespace, &restore_manifest(location.name, location.source.clone(), &cluster, size))
        })
        .collect();
    for ((location, restore), size) in locations.iter().zip(&restores).zip(sizes()) {
        let (status, restored) = (restore.complete(), made(namespace, &format!("from-{}", location.name)));
        assert_eq!(status["etcdVersion"], version, "{status}");
        assert_eq!(status["restoredRevision"], known.revision, "{status}");
        assert_eq!(restored.object()["spec"]["version"], version);
        known.assert_restored_to(&restored, size);
        assert_eq!(status["clusterID"], restored.status()["clusterID"]);
    }
    assert_eq!(Known::of(&etcd).contents, known.contents, "{SAFETY}the cluster that was backed up is as it was");
}

#[test]
fn backup_of_3_5_is_restored_from_s3_and_a_volume() {
    let namespace = Namespace::create("backups-3-5");
    round_trip(&namespace, "3.5.35", &[in_s3(&namespace), in_volume(&namespace)]);
}

#[test]
fn backup_of_3_6_is_restored_from_every_kind_of_store() {
    let namespace = Namespace::create("backups-3-6");
    let locations = [in_s3(&namespace), in_gcs(&namespace), in_azure(&namespace), in_volume(&namespace)];
    round_trip(&namespace, "3.6.16", &locations);
}

#[test]
fn backup_of_3_7_is_restored_from_s3_and_azure() {
    let namespace = Namespace::create("backups-3-7");
    round_trip(&namespace, "3.7.3", &[in_s3_by_name(&namespace), in_azure(&namespace)]);
}
