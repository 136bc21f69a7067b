//! The backup that is taken before an upgrade.

use std::time::Duration;

use e2e::backup::Order;
use e2e::stores::{Bucket, Store};
use e2e::watch::Pods;
use e2e::{Namespace, eventually, is, stays};
use serde_json::{Value, json};

use crate::cluster_of;
use crate::retention::schedule_manifest;

/// The names of the EtcdBackups of a schedule.
fn backups_of(namespace: &Namespace, schedule: &str) -> Vec<String> {
    let backups = namespace.get(&format!("etcdbackups -l etcd.improbable.io/backup-schedule-name={schedule}"));
    let name = |backup: &Value| backup["metadata"]["name"].as_str().expect("a name").to_owned();
    backups["items"].as_array().into_iter().flatten().map(name).collect()
}

#[test]
fn upgrade_waits_for_its_backup_and_does_not_start_without_it() {
    let namespace = Namespace::create("backups-upgrade");
    let bucket = Bucket::create(Store::S3, "upgrade", &namespace);
    let etcd = cluster_of(&namespace, "3.6.16", 3);
    etcd.fill(100);
    etcd.move_leader("c-0");
    let revision = etcd.revision().unwrap();
    let mut broken = bucket.destination("{{ .Name }}.db");
    broken["objectURLTemplate"] = json!("s3://no-such-bucket/{{ .Name }}.db");
    let mut schedule = schedule_manifest("s", broken);
    schedule["spec"]["onUpgrade"] = json!(true);
    namespace.apply(&schedule.to_string()).unwrap();
    let (pods, before) = (Pods::watch(&etcd, 3), etcd.uids_of("pods"));

    etcd.set_version("3.7.3");
    eventually("the status says why the upgrade does not begin", Duration::from_secs(60), || {
        etcd.says("Progressing", "False", "UpgradeBackupFailed", &["no-such-bucket", "spec.upgrade.backupFirst"])
    });
    println!("{}", etcd.condition("Progressing")["message"]);
    stays("nothing moves", Duration::from_secs(6), || {
        is(etcd.uids_of("pods"), before.clone())?;
        is(etcd.status()["targetVersion"].as_str(), Some("3.6.16"))
    });
    assert_eq!(etcd.condition("Available")["status"], "True");
    bucket.assert_holds(&[]);
    let failed = backups_of(&namespace, "s");
    assert_eq!(failed.len(), 1, "{failed:?}");

    // As the message says: where backups go is put right, and the one that failed is deleted.
    schedule["spec"]["backupTemplate"]["spec"]["destination"] = bucket.destination("{{ .Name }}.db");
    namespace.apply(&schedule.to_string()).unwrap();
    namespace.kubectl(&format!("delete etcdbackup {}", failed[0]));
    etcd.wait_until_runs(3, "3.7.3");
    let taken = backups_of(&namespace, "s");
    assert_eq!(taken.len(), 1, "{taken:?}");
    let status = Order::found(&namespace, "EtcdBackup", &taken[0]).complete();
    assert_eq!((&status["etcdVersion"], &status["revision"]), (&json!("3.6.16"), &json!(revision)), "{status}");
    bucket.assert_holds(&[&format!("{}.db", taken[0])]);
    assert_eq!(pods.made(), ["c-2", "c-1", "c-0"].map(str::to_owned), "each was restarted once");
    let completed = status["completionTime"].as_str().unwrap().to_owned();
    let first = namespace.get("pod c-2")["metadata"]["creationTimestamp"].as_str().unwrap().to_owned();
    assert!(completed <= first, "it was taken by {completed}, before the first member changed at {first}");
}

#[test]
fn upgrade_does_not_use_the_backup_of_an_earlier_cluster_of_the_same_name() {
    let namespace = Namespace::create("backups-upgrade-again");
    let bucket = Bucket::create(Store::S3, "upgrade-again", &namespace);
    let mut schedule = schedule_manifest("s", bucket.destination("{{ .Name }}.db"));
    schedule["spec"]["onUpgrade"] = json!(true);
    schedule["spec"]["timeZone"] = json!("Mars");
    namespace.apply(&schedule.to_string()).unwrap();
    let etcd = cluster_of(&namespace, "3.6.16", 1);
    etcd.wait_until_whole(1);
    etcd.set_version("3.7.3");
    eventually("the status says why the upgrade does not begin", Duration::from_secs(60), || {
        etcd.says("Progressing", "False", "UpgradeBackupFailed", &["Mars", "spec.upgrade.backupFirst"])
    });
    assert_eq!(backups_of(&namespace, "s"), Vec::<String>::new());
    schedule["spec"]["timeZone"] = json!("UTC");
    namespace.apply(&schedule.to_string()).unwrap();
    etcd.wait_until_runs(1, "3.7.3");
    let first = backups_of(&namespace, "s");
    assert_eq!(first.len(), 1, "{first:?}");

    namespace.kubectl("delete etcdcluster c --timeout=60s");
    namespace.kubectl("delete pvc --selector etcd.improbable.io/cluster-name=c --timeout=60s");
    let etcd = cluster_of(&namespace, "3.6.16", 1);
    etcd.wait_until_whole(1);
    etcd.set_version("3.7.3");
    etcd.wait_until_runs(1, "3.7.3");
    let both = backups_of(&namespace, "s");
    assert_eq!(both.len(), 2, "{both:?}");
    for backup in &both {
        Order::found(&namespace, "EtcdBackup", backup).complete();
    }
}
