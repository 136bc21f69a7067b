//! Backups while the operator or the store is away, which nobody else may need meanwhile.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use e2e::backup::{Order, condition, slow_backup_manifest};
use e2e::etcd::{Etcd, manifest};
use e2e::stores::{Bucket, Store};
use e2e::watch::Watch;
use e2e::{Namespace, eventually, finish, is, operator, stays};
use serde_json::{Value, json};

use crate::alone;

/// Minutes since 1970, as the names of scheduled backups have them.
fn minute() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs() / 60
}

/// Every EtcdBackup that a schedule has ever made, and the minute that it was made for, in this order. Each is listed once
/// for each time that it appeared.
fn begun(backups: &Watch, schedule: &str) -> Vec<u64> {
    let added = backups.seen().into_iter().filter(|change| change["type"] == "ADDED");
    let names = added.filter_map(|change| change["object"]["metadata"]["name"].as_str().map(str::to_owned));
    let prefix = format!("{schedule}-");
    names.filter_map(|name| name.strip_prefix(&prefix)?.parse().ok()).collect()
}

fn every_minute(name: &str, destination: Value) -> Value {
    json!({
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdBackupSchedule",
        "metadata": {"name": name},
        "spec": {
            "schedule": "* * * * *",
            "successfulBackupsHistoryLimit": 2,
            "backupTemplate": {"spec": {"clusterName": "c", "destination": destination}},
        },
    })
}

struct Schedule<'a> {
    namespace: &'a Namespace,
    name: &'a str,
}

impl Schedule<'_> {
    fn status(&self) -> Value {
        self.namespace.get(&format!("etcdbackupschedule {}", self.name))["status"].clone()
    }

    fn patch(&self, spec: Value) {
        let patch = json!({"spec": spec}).to_string();
        let args = ["--namespace", &self.namespace.name, "patch", "etcdbackupschedule", self.name];
        let args = [args.as_slice(), &["--type=merge", "-p", &patch]].concat();
        e2e::kubectl_with_input(&args, "").expect("the patch is accepted");
    }

    /// An edit must have taken effect long before the next minute begins.
    fn soon(&self, what: &str, is_so: impl Fn(&Value) -> bool) {
        eventually(what, Duration::from_secs(5), || {
            let status = self.status();
            if is_so(&status) { Ok(()) } else { Err(status.to_string()) }
        });
    }
}

/// The names of the EtcdBackups of a schedule that are there now.
fn kept(namespace: &Namespace, schedule: &str) -> Vec<String> {
    let selector = format!("-l etcd.improbable.io/backup-schedule-name={schedule}");
    namespace.kubectl(&format!("get etcdbackups {selector} -o name")).lines().map(str::to_owned).collect()
}

fn wait_for_minute(wanted: u64) {
    let limit = Duration::from_secs(60 * wanted.saturating_sub(minute()).max(1) + 10);
    eventually("the clock goes on", limit, || if minute() >= wanted { Ok(()) } else { Err(minute().to_string()) });
}

#[test]
fn a_schedule_makes_up_once_for_what_it_missed_and_edits_take_effect_at_once() {
    let _alone = alone();
    let namespace = Namespace::create("power-schedule");
    let bucket = Bucket::create(Store::S3, "schedule", &namespace);
    let _etcd = Etcd::create(&namespace, &manifest("c", 1));
    let backups = Watch::start(&namespace, "etcdbackups");
    let created = minute();
    namespace.apply(&every_minute("s", bucket.destination("{{ .Name }}.db")).to_string()).unwrap();
    // Whoever knocks there waits for more than a minute.
    let mut nobody_there = bucket.destination("{{ .Name }}.db");
    nobody_there["s3"]["endpoint"] = json!("http://192.0.2.1:9000");
    namespace.apply(&every_minute("hangs", nobody_there).to_string()).unwrap();
    let schedule = Schedule { namespace: &namespace, name: "s" };

    let first = eventually("the first backup begins", Duration::from_secs(75), || {
        begun(&backups, "s").first().copied().ok_or_else(|| schedule.status().to_string())
    });
    assert!(first > created, "nothing is made up for that was before the schedule");
    Order::found(&namespace, "EtcdBackup", &format!("s-{first}")).complete();
    schedule.soon("the success is told", |status| !status["lastSuccessfulTime"].is_null());
    assert_eq!(begun(&backups, "s"), [first]);

    let absence = operator::Absence::begin();
    let last = *begun(&backups, "s").last().unwrap();
    wait_for_minute(last + 2);
    assert_eq!(begun(&backups, "s").last(), Some(&last), "without an operator there are no backups");
    drop(absence);
    let made_up = eventually("a backup makes up for those that were missed", Duration::from_secs(60), || {
        begun(&backups, "s").last().copied().filter(|it| *it > last).ok_or_else(|| schedule.status().to_string())
    });
    assert!(made_up >= last + 2, "at least two were missed between {last} and {made_up}");
    Order::found(&namespace, "EtcdBackup", &format!("s-{made_up}")).complete();
    let told = namespace.get("events --field-selector reason=BackupScheduled,involvedObject.name=s").to_string();
    assert!(
        told.contains(&format!("Began s-{made_up} for")) && told.contains("makes up for all that were missed"),
        "{told}"
    );

    // The other schedule has begun one, which still hangs; what was due since waits for it.
    let hanging = Schedule { namespace: &namespace, name: "hangs" };
    hanging.soon("the next one waits", |status| condition(status, "Ready")["reason"] == "WaitsForLast");
    assert_eq!(begun(&backups, "hangs").len(), 1, "Forbid: {:?}", begun(&backups, "hangs"));

    schedule.patch(json!({"schedule": "0 0 29 2 *"}));
    schedule.soon("another time is next", |status| {
        let next = status["nextScheduleTime"].as_str().unwrap_or_default();
        status["schedule"] == "0 0 29 2 * UTC" && next.ends_with("-02-29T00:00:00Z")
    });
    schedule.patch(json!({"schedule": "* * * * *", "successfulBackupsHistoryLimit": 1, "suspend": true}));
    schedule.soon("it is suspended", |status| {
        status["nextScheduleTime"].is_null() && condition(status, "Ready")["reason"] == "Suspended"
    });
    let all = begun(&backups, "s");
    let names: BTreeSet<u64> = all.iter().copied().collect();
    assert_eq!(names.len(), all.len(), "none is doubled: {all:?}");
    let missed: Vec<&u64> = names.range(last + 1..made_up).collect();
    assert!(missed.is_empty(), "one makes up for all: {missed:?}");
    eventually("the history is short", Duration::from_secs(30), || is(kept(&namespace, "s").len(), 1));
    assert_eq!(schedule.status()["backupsTaken"], all.len(), "{}", schedule.status());

    wait_for_minute(minute() + 1);
    stays("nothing begins while it is suspended", Duration::from_secs(5), || is(begun(&backups, "s"), all.clone()));
    schedule.patch(json!({"suspend": false}));
    schedule.soon("it goes on", |status| !status["nextScheduleTime"].is_null());
    assert_eq!(begun(&backups, "s"), all, "what was due meanwhile is not made up for");
    let stored: Vec<String> = all.iter().map(|minute| format!("s-{minute}.db")).collect();
    bucket.assert_holds(&stored.iter().map(String::as_str).collect::<Vec<_>>());
}

/// The S3 store is dead for as long as this lives.
struct Dead;

impl Dead {
    fn strike() -> Self {
        Store::S3.kill().expect("the store is killed");
        Dead
    }
}

impl Drop for Dead {
    fn drop(&mut self) {
        if let Err(error) = finish(Store::S3.start()) {
            eprintln!("the S3 store could not be started again: {error:#}");
        }
    }
}

#[test]
fn a_backup_whose_store_is_killed_in_the_middle_completes_when_the_store_is_back() {
    let _alone = alone();
    let namespace = Namespace::create("power-store");
    let bucket = Bucket::create(Store::S3, "dies", &namespace);
    let etcd = Etcd::create(&namespace, &manifest("c", 1));
    etcd.enlarge(64);
    let backup = Order::place(&namespace, &slow_backup_manifest("b", "c", bucket.destination("b.db")));
    eventually("the backup is half there", Duration::from_secs(60), || {
        let unfinished = bucket.unfinished();
        if unfinished.contains(&"b.db".to_owned()) { Ok(()) } else { Err(format!("{unfinished:?}")) }
    });
    let dead = Dead::strike();
    assert_eq!(bucket.unfinished(), ["b.db"], "it was killed in the middle");
    stays("the backup is neither given up nor taken for whole", Duration::from_secs(10), || {
        is(backup.status()["phase"].as_str(), Some("Running"))
    });
    drop(dead);
    let status = backup.complete();
    assert_eq!(status["verified"], true, "{status}");
    bucket.assert_holds(&["b.db"]);
}
