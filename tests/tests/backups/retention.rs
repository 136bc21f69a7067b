//! Old backups go, and only those that may.

use std::time::Duration;

use e2e::backup::{Order, backup_manifest, condition, restore_manifest};
use e2e::stores::{Bucket, Store, write_secret};
use e2e::{Namespace, eventually, is};
use serde_json::{Value, json};

use crate::small_cluster;

/// A public key, and a private one that does not belong to it.
const RECIPIENT: &str = "age1q62q64xjglukjwhkc4tutju3mylshkfvlkz9ktu96xd0fcqus93sarc9ha";
const OTHER_IDENTITY: &str = "AGE-SECRET-KEY-1AMSM8AN9C97CLD5XKM8NZJY9M57N4ZQJ9VAXVFALFSSS7PDR53CSUZ3C8J";

/// A schedule whose time does not come while a test runs.
pub fn schedule_manifest(name: &str, destination: Value) -> Value {
    json!({
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdBackupSchedule",
        "metadata": {"name": name},
        "spec": {
            "schedule": "0 0 29 2 *",
            "backupTemplate": {"spec": {"clusterName": "c", "destination": destination}},
        },
    })
}

/// A schedule with these settings whose backups go into a folder that others use as well.
fn schedule(namespace: &Namespace, name: &str, bucket: &Bucket, settings: Value) {
    let mut manifest = schedule_manifest(name, bucket.destination("shared/{{ .Name }}.db"));
    let settings = settings.as_object().expect("settings").clone();
    manifest["spec"].as_object_mut().expect("a spec").extend(settings);
    namespace.apply(&manifest.to_string()).unwrap();
    eventually(&format!("the schedule {name} is in force"), Duration::from_secs(30), || {
        let status = namespace.get(&format!("etcdbackupschedule {name}"))["status"].clone();
        if condition(&status, "Ready")["status"] == "True" { Ok(()) } else { Err(status.to_string()) }
    });
}

/// Says whether what a schedule has stored goes with its cluster, and waits until that was seen.
fn set_delete_with_cluster(namespace: &Namespace, schedule: &str, goes: bool) {
    let patch = json!({"spec": {"deleteWithCluster": goes}}).to_string();
    namespace.kubectl(&format!("patch etcdbackupschedule {schedule} --type=merge -p {patch}"));
    eventually("the schedule knows", Duration::from_secs(30), || {
        let object = namespace.get(&format!("etcdbackupschedule {schedule}"));
        is(&object["status"]["observedGeneration"], &object["metadata"]["generation"])
    });
}

/// Deletes the cluster and its volumes, and restores it under its name.
fn lose_and_restore(namespace: &Namespace, restore: &str, source: Value) {
    namespace.kubectl("delete etcdcluster c --timeout=60s");
    namespace.kubectl("delete pvc --selector etcd.improbable.io/cluster-name=c --timeout=60s");
    Order::place(namespace, &restore_manifest(restore, source, "c", 1)).complete();
}

/// A backup as a schedule makes it. Waits until it is taken.
fn backup(namespace: &Namespace, name: &str, schedule: &str, bucket: &Bucket) -> Value {
    of_schedule(namespace, schedule, backup_manifest(name, "c", bucket.destination("shared/{{ .Name }}.db"))).complete()
}

fn of_schedule<'a>(namespace: &'a Namespace, schedule: &str, mut manifest: Value) -> Order<'a> {
    let owner = namespace.get(&format!("etcdbackupschedule {schedule}"));
    manifest["metadata"]["labels"] = json!({"etcd.improbable.io/backup-schedule-name": schedule});
    manifest["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdBackupSchedule",
        "name": schedule,
        "uid": owner["metadata"]["uid"],
        "controller": true,
    }]);
    Order::place(namespace, &manifest)
}

fn in_folder(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("shared/{name}.db")).collect()
}

fn assert_holds(bucket: &Bucket, names: &[&str]) {
    bucket.assert_holds(&in_folder(names).iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn schedule_keeps_its_newest_backups_and_leaves_those_of_others() {
    let namespace = Namespace::create("backups-retention");
    let bucket = Bucket::create(Store::S3, "retention", &namespace);
    let _etcd = small_cluster(&namespace);
    schedule(&namespace, "two", &bucket, json!({"retention": {"keepLast": 2}}));
    schedule(&namespace, "all", &bucket, json!({}));
    schedule(&namespace, "dry", &bucket, json!({"retention": {"keepLast": 1, "dryRun": true}}));
    let by_hand = backup_manifest("by-hand", "c", bucket.destination("shared/{{ .Name }}.db"));
    Order::place(&namespace, &by_hand).complete();
    backup(&namespace, "all-1", "all", &bucket);

    let result = |status: &Value| status["retention"].clone();
    let counts = |status: &Value| (result(status)["kept"].clone(), result(status)["deleted"].clone());
    let dry = [backup(&namespace, "dry-1", "dry", &bucket), backup(&namespace, "dry-2", "dry", &bucket)];
    assert_eq!(result(&dry[0])["wouldDelete"], Value::Null, "{}", dry[0]);
    assert_eq!(result(&dry[1])["wouldDelete"], json!([bucket.url("shared/dry-1.db")]), "{}", dry[1]);
    assert_eq!(result(&dry[1])["deleted"], 0, "{}", dry[1]);
    let taken = ["two-1", "two-2", "two-3"].map(|name| backup(&namespace, name, "two", &bucket));
    assert_eq!(taken.each_ref().map(counts), [(1, 0), (2, 0), (2, 1)].map(|(kept, gone)| (json!(kept), json!(gone))));
    let last = backup(&namespace, "two-4", "two", &bucket);
    assert_eq!(counts(&last), (json!(2), json!(1)), "{last}");
    assert_holds(&bucket, &["by-hand", "all-1", "dry-1", "dry-2", "two-3", "two-4"]);
}

#[test]
fn stored_backups_are_deleted_with_the_cluster_only_on_request() {
    let namespace = Namespace::create("backups-gone");
    let bucket = Bucket::create(Store::Azure, "gone", &namespace);
    let _etcd = small_cluster(&namespace);
    schedule(&namespace, "goes", &bucket, json!({"deleteWithCluster": true}));
    schedule(&namespace, "stays", &bucket, json!({}));
    for (name, schedule) in [("goes-1", "goes"), ("goes-2", "goes"), ("stays-1", "stays")] {
        backup(&namespace, name, schedule, &bucket);
    }
    let by_hand = backup_manifest("by-hand", "c", bucket.destination("shared/{{ .Name }}.db"));
    Order::place(&namespace, &by_hand).complete();
    assert_holds(&bucket, &["by-hand", "goes-1", "goes-2", "stays-1"]);

    namespace.kubectl("delete etcdcluster c --timeout=60s");
    eventually("the backups of the one schedule are deleted", Duration::from_secs(120), || {
        let status = namespace.get("etcdbackupschedule goes")["status"].clone();
        let told = condition(&status, "BackupsDeleted");
        if told["status"] == "True" { Ok(()) } else { Err(status.to_string()) }
    });
    assert_holds(&bucket, &["by-hand", "stays-1"]);
    let status = namespace.get("etcdbackupschedule stays")["status"].clone();
    assert_eq!(condition(&status, "BackupsDeleted"), Value::Null, "{status}");
}

#[test]
fn backups_survive_a_restore_under_the_old_name_of_a_schedule_that_deletes_with_its_cluster() {
    let namespace = Namespace::create("backups-old-name");
    let bucket = Bucket::create(Store::S3, "old-name", &namespace);
    let _etcd = small_cluster(&namespace);
    schedule(&namespace, "goes", &bucket, json!({"deleteWithCluster": true}));
    backup(&namespace, "goes-1", "goes", &bucket);
    // A schedule that would delete says so a minute before, and still has the UID of the cluster that is gone.
    let nothing_goes = || {
        eventually("the schedule knows the new cluster", Duration::from_secs(60), || {
            let status = namespace.get("etcdbackupschedule goes")["status"].clone();
            is(&status["clusterUID"], &namespace.get("etcdcluster c")["metadata"]["uid"])?;
            is(condition(&status, "BackupsDeleted"), Value::Null)
        });
        assert_holds(&bucket, &["goes-1"]);
    };

    // As the documentation says.
    set_delete_with_cluster(&namespace, "goes", false);
    lose_and_restore(&namespace, "first", json!({"backupName": "goes-1"}));
    set_delete_with_cluster(&namespace, "goes", true);
    nothing_goes();

    // And if somebody forgets about it.
    lose_and_restore(&namespace, "second", bucket.source("shared/goes-1.db"));
    nothing_goes();
}

#[test]
fn newest_proven_backup_is_kept_although_unproven_ones_came_after_it() {
    let namespace = Namespace::create("backups-proven");
    let bucket = Bucket::create(Store::S3, "proven", &namespace);
    let _etcd = small_cluster(&namespace);
    schedule(&namespace, "s", &bucket, json!({"retention": {"keepLast": 1}}));
    // Without the private key nothing can be proven.
    let to_prove = |name: &str, can_be: bool| {
        let mut manifest = backup_manifest(name, "c", bucket.destination("shared/{{ .Name }}.db"));
        manifest["spec"]["verify"] = json!("Restore");
        if !can_be {
            let key = json!({"name": "wrong-identity", "key": "identity"});
            manifest["spec"]["encryption"] = json!({"age": {"recipients": [RECIPIENT]}});
            manifest["spec"]["decryption"] = json!({"age": {"identitySecretKeyRef": key}});
        }
        let status = of_schedule(&namespace, "s", manifest).complete();
        assert_eq!(status["verified"], can_be, "{status}");
    };
    write_secret(&namespace, "wrong-identity", &json!({"identity": OTHER_IDENTITY}));

    to_prove("s-1", true);
    to_prove("s-2", true);
    assert_holds(&bucket, &["s-1", "s-2"]);
    // The EtcdBackups are not what it is known from.
    namespace.kubectl("delete etcdbackup s-1 s-2");
    to_prove("s-3", false);
    assert_holds(&bucket, &["s-2", "s-3"]);
    to_prove("s-4", false);
    // Retention does not know that their proofs have failed: for two hours they may be in the middle of it.
    assert_holds(&bucket, &["s-2", "s-3", "s-4"]);
    to_prove("s-5", true);
    assert_holds(&bucket, &["s-2", "s-3", "s-4", "s-5"]);
    backup(&namespace, "s-6", "s", &bucket);
    assert_holds(&bucket, &["s-3", "s-4", "s-5", "s-6"]);
}
