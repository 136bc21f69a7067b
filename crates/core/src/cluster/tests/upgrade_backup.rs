//! Which backup lets an upgrade go ahead.

use etcd_operator_api::{EtcdBackup, EtcdBackupSchedule, EtcdCluster};
use serde_json::{Value, json};

use crate::cluster::observed::BackupFirst;
use crate::cluster::upgrade_backup::{CLUSTER_UID, Choice, choose, meaning, name_of, without_schedule};

const CLUSTER: &str = "0d5b3f1c-9f0e-4b8e-9b0e-2f6c1d7e8a90";
const SCHEDULE: &str = "5c1e8a07-e3a5-4c4e-8f60-1f3a3a9c21ce";

fn object(kind: &str, metadata: Value, spec: Value) -> Value {
    json!({"apiVersion": "etcd.improbable.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
}

fn cluster(uid: &str, generation: i64, upgrade: Value) -> EtcdCluster {
    let metadata = json!({"name": "c", "namespace": "db", "uid": uid, "generation": generation});
    let spec = json!({"replicas": 3, "version": "3.7.3", "storage": {}, "upgrade": upgrade});
    serde_json::from_value(object("EtcdCluster", metadata, spec)).expect("an EtcdCluster")
}

fn this_cluster() -> EtcdCluster {
    cluster(CLUSTER, 2, Value::Null)
}

fn schedule(name: &str, uid: &str, settings: Value) -> EtcdBackupSchedule {
    let destination = json!({"objectURL": "s3://b/o"});
    let mut spec = json!({
        "schedule": "@daily",
        "onUpgrade": true,
        "backupTemplate": {"spec": {"clusterName": "c", "destination": destination}},
    });
    spec.as_object_mut().expect("a spec").extend(settings.as_object().expect("settings").clone());
    let metadata = json!({"name": name, "namespace": "db", "uid": uid});
    serde_json::from_value(object("EtcdBackupSchedule", metadata, spec)).expect("an EtcdBackupSchedule")
}

fn this_schedule() -> EtcdBackupSchedule {
    schedule("nightly", SCHEDULE, json!({}))
}

/// An EtcdBackup that a schedule created for a cluster, given by their UIDs.
fn backup(cluster: &str, schedule: &str, verify: &str, status: Value) -> EtcdBackup {
    let owner = json!({"apiVersion": "v1", "kind": "EtcdBackupSchedule", "name": "nightly", "uid": schedule});
    let metadata = json!({"name": "b", "annotations": {CLUSTER_UID: cluster}, "ownerReferences": [owner]});
    let spec = json!({"clusterName": "c", "destination": {"objectURL": "s3://b/o"}, "verify": verify});
    let mut backup = object("EtcdBackup", metadata, spec);
    backup["status"] = status;
    serde_json::from_value(backup).expect("an EtcdBackup")
}

fn meaning_of(found: &EtcdBackup) -> BackupFirst {
    meaning(Some(found), &this_schedule(), &this_cluster())
}

#[test]
fn an_upgrade_goes_ahead_on_what_was_taken_and_proven_if_that_was_asked_for() {
    assert_eq!(meaning(None, &this_schedule(), &this_cluster()), BackupFirst::ToTake);
    let name = name_of(&this_schedule(), &this_cluster());
    let runs = || BackupFirst::Running(name.clone());
    let failed = |message: &str| BackupFirst::Failed { name: name.clone(), message: message.to_owned() };
    for (verify, status, expected) in [
        ("None", json!({}), runs()),
        ("None", json!({"phase": "Pending"}), runs()),
        ("None", json!({"phase": "Running", "message": "the store does not answer"}), runs()),
        ("None", json!({"phase": "Completed"}), BackupFirst::Taken),
        ("None", json!({"phase": "Failed", "message": "no such bucket"}), failed("no such bucket")),
        ("Restore", json!({"phase": "Verifying"}), runs()),
        ("Restore", json!({"phase": "Completed"}), runs()),
        ("Restore", json!({"phase": "Completed", "verified": true}), BackupFirst::Taken),
        (
            "Restore",
            json!({"phase": "Completed", "verified": false, "message": "another hash"}),
            failed("it is stored, but not proven: another hash"),
        ),
    ] {
        let found = backup(CLUSTER, SCHEDULE, verify, status.clone());
        assert_eq!(meaning_of(&found), expected, "{verify} {status}");
    }
}

#[test]
fn the_backup_of_an_earlier_cluster_or_of_another_schedule_does_not_count() {
    let taken = || json!({"phase": "Completed"});
    let mut of_another_name = backup(CLUSTER, SCHEDULE, "None", taken());
    of_another_name.spec.cluster_name = Some("d".to_owned());
    let mut by_hand = backup(CLUSTER, SCHEDULE, "None", taken());
    by_hand.metadata.annotations = None;
    for found in [
        backup("an-earlier-life", SCHEDULE, "None", taken()),
        backup(CLUSTER, "another-schedule", "None", taken()),
        of_another_name,
        by_hand,
    ] {
        let meaning = meaning_of(&found);
        let BackupFirst::Failed { message, .. } = &meaning else { panic!("{meaning:?}") };
        assert!(message.contains("not made for this upgrade"), "{message}");
    }
}

#[test]
fn names_differ_by_cluster_by_edit_and_by_schedule() {
    let long = |end: &str| format!("{}{end}", "n".repeat(51));
    let (one, other) = (schedule(&long("1"), "1", json!({})), schedule(&long("2"), "2", json!({})));
    let name = name_of(&one, &this_cluster());
    assert!(name.starts_with("nnn") && name.contains("-upgrade-2-"), "{name}");
    assert_eq!(name, name_of(&one, &this_cluster()), "it is always the same");
    let late = name_of(&one, &cluster(CLUSTER, 999_999_999, Value::Null));
    assert!(late.len() <= 63, "{late}");
    for different in [
        name_of(&other, &this_cluster()),
        name_of(&one, &cluster(CLUSTER, 3, Value::Null)),
        name_of(&one, &cluster("another-life", 2, Value::Null)),
    ] {
        assert_ne!(name, different);
    }
    let cut_at_a_dot = schedule(&format!("{}.{}", "n".repeat(35), "x".repeat(10)), "1", json!({}));
    assert!(name_of(&cut_at_a_dot, &this_cluster()).contains("n-upgrade-2-"));
}

#[test]
fn a_schedule_that_cannot_be_understood_is_not_chosen_and_holds_the_upgrade_if_there_is_no_other() {
    let invalid = |name: &str| schedule(name, name, json!({"timeZone": "Mars"}));
    let (broken, good) = (invalid("a"), schedule("b", "b", json!({})));
    let both = [broken.clone(), good.clone()];
    assert_eq!(choose(&both, &this_cluster()), Choice::Schedule(&good));
    let only_broken = [broken];
    let choice = choose(&only_broken, &this_cluster());
    let BackupFirst::InvalidSchedule { name, why } = without_schedule(&choice, &this_cluster()) else {
        panic!("{choice:?}")
    };
    assert!(name == "a" && why.contains("Mars"), "{name}: {why}");
}

#[test]
fn a_schedule_that_asks_for_it_is_chosen_before_others_and_none_that_is_suspended_or_of_another_cluster() {
    let quiet = schedule("a", "a", json!({"onUpgrade": false}));
    let asks = schedule("b", "b", json!({}));
    let suspended = schedule("0", "0", json!({"suspend": true}));
    let other = json!({"backupTemplate": {"spec": {"clusterName": "d", "destination": {"objectURL": "s3://b/o"}}}});
    let of_another = schedule("1", "1", other);
    let all = [suspended, of_another, quiet.clone(), asks.clone()];
    let demands = cluster(CLUSTER, 2, json!({"backupFirst": true}));
    assert_eq!(choose(&all, &this_cluster()), Choice::Schedule(&asks));
    assert_eq!(choose(&all, &demands), Choice::Schedule(&asks));
    assert_eq!(choose(&all[..3], &demands), Choice::Schedule(&quiet));
    let none = choose(&all[..3], &this_cluster());
    assert_eq!(none, Choice::None);
    assert_eq!(without_schedule(&none, &this_cluster()), BackupFirst::NotRequired);
    assert_eq!(without_schedule(&none, &demands), BackupFirst::NoSchedule);
}
