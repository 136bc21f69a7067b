//! Backups while the operator is away, which nobody else may need meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use e2e::backup::{Order, condition};
use e2e::etcd::{Etcd, manifest};
use e2e::schedule::{Schedule, begun, every_minute, kept, minute, wait_for_minute};
use e2e::stores::{Bucket, Store};
use e2e::watch::Watch;
use e2e::{Namespace, eventually, is, operator};
use serde_json::json;

use crate::alone;

#[test]
fn schedule_takes_one_backup_for_all_missed_times() {
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

    let first = schedule.first_backup(&backups);
    assert!(first > created, "nothing is made up for that was before the schedule");
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
    assert!(told.contains(&format!("Started s-{made_up} for")) && told.contains("makes up for those missed"), "{told}");

    // The other schedule has begun one, which still hangs; what was due since waits for it.
    let hanging = Schedule { namespace: &namespace, name: "hangs" };
    hanging.soon("the next one waits", |status| condition(status, "Ready")["reason"] == "WaitingForRunningBackup");
    assert_eq!(begun(&backups, "hangs").len(), 1, "Forbid: {:?}", begun(&backups, "hangs"));

    schedule.patch(json!({"successfulBackupsHistoryLimit": 1, "suspend": true}));
    schedule.soon("it is suspended", |status| condition(status, "Ready")["reason"] == "Suspended");
    let all = begun(&backups, "s");
    let names: BTreeSet<u64> = all.iter().copied().collect();
    assert_eq!(names.len(), all.len(), "none is doubled: {all:?}");
    let missed: Vec<&u64> = names.range(last + 1..made_up).collect();
    assert!(missed.is_empty(), "one makes up for all: {missed:?}");
    // One more may have begun meanwhile.
    Order::found(&namespace, "EtcdBackup", &format!("s-{}", all.last().unwrap())).complete();
    eventually("the history is short", Duration::from_secs(30), || is(kept(&namespace, "s").len(), 1));
    assert_eq!(schedule.status()["backupsTaken"], all.len(), "{}", schedule.status());
    let stored: Vec<String> = all.iter().map(|minute| format!("s-{minute}.db")).collect();
    bucket.assert_holds(&stored.iter().map(String::as_str).collect::<Vec<_>>());
}
