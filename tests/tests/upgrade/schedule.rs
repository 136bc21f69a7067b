//! Backups that were taken under the earlier operator, and a schedule that goes on under the new one.

use std::collections::BTreeMap;
use std::time::Duration;

use e2e::backup::{Order, backup_manifest, condition};
use e2e::schedule::{Schedule, every_minute, minute};
use e2e::stores::{Bucket, Store};
use e2e::{Namespace, SAFETY, eventually, is};
use serde_json::{Value, json};

const SCHEDULE: &str = "s";
/// Longer than until the next minute, when something is due.
const A_MINUTE: Duration = Duration::from_secs(75);

pub struct Backups<'a> {
    schedule: Schedule<'a>,
    bucket: Bucket,
}

/// What was there before the operator was upgraded.
pub struct Known {
    completed: BTreeMap<String, Value>,
    schedule: Value,
}

impl<'a> Backups<'a> {
    /// Asks for a backup now, and for one every minute.
    pub fn order(namespace: &'a Namespace, cluster: &str) -> Self {
        let bucket = Bucket::create(Store::S3, "operator-upgrade", namespace);
        let destination = || bucket.destination("{{ .Name }}.db");
        namespace.apply(&backup_manifest("by-hand", cluster, destination()).to_string()).unwrap();
        let mut schedule = every_minute(SCHEDULE, destination());
        schedule["spec"]["backupTemplate"]["spec"]["clusterName"] = json!(cluster);
        // All of them are looked at in the end.
        schedule["spec"]["successfulBackupsHistoryLimit"] = json!(10);
        namespace.apply(&schedule.to_string()).unwrap();
        Backups { schedule: Schedule { namespace, name: SCHEDULE }, bucket }
    }

    /// Waits until there is one of each kind, and notes what is there.
    pub fn wait_for_first(&self) -> Known {
        self.order_named("by-hand").complete();
        self.wait_for_next(0);
        let completed = self.statuses().into_iter().filter(|(_, status)| status["phase"] == "Completed");
        Known { completed: completed.collect(), schedule: self.schedule.status() }
    }

    /// What was known stays so, and the schedule counts on and takes its next backup.
    pub fn assert_go_on(&self, known: &Known) {
        self.wait_for_next(minute());
        let (statuses, schedule) = (self.statuses(), self.schedule.status());
        for (name, status) in &known.completed {
            assert_eq!(statuses.get(name), Some(status), "{SAFETY}{name} is as it was");
        }
        for field in ["schedule", "observedGeneration", "consecutiveFailures"] {
            assert_eq!(schedule[field], known.schedule[field], "{field}: {schedule}");
        }
        // Under its name of today, and no more under the earlier one.
        assert_eq!(schedule["activeSince"], known.schedule["countedFrom"], "{schedule}");
        assert_eq!((schedule.get("countedFrom"), schedule.get("judged")), (None, None), "{schedule}");
        for kind in ["Ready", "Overdue"] {
            let standing = |status: &Value| {
                let condition = condition(status, kind);
                [condition["status"].clone(), condition["lastTransitionTime"].clone()]
            };
            assert_eq!(standing(&schedule), standing(&known.schedule), "{kind}: {schedule}");
        }
        self.end();
    }

    /// Waits for a backup that was due after this minute, and until the schedule tells of it.
    fn wait_for_next(&self, after: u64) {
        let next = eventually(&format!("a backup for a minute after {after}"), A_MINUTE, || {
            self.minutes().into_iter().find(|it| *it > after).ok_or_else(|| self.schedule.status().to_string())
        });
        let backup = self.order_named(&format!("{SCHEDULE}-{next}"));
        let completed = backup.complete()["completionTime"].clone();
        let text = |time: &Value| time.as_str().unwrap_or_default().to_owned();
        self.schedule.soon("the success is told", |status| text(&status["lastSuccessfulTime"]) >= text(&completed));
    }

    /// Lets the schedule begin no more, so that its backups can be counted.
    fn end(&self) {
        self.schedule.patch(json!({"suspend": true}));
        self.schedule.soon("it is suspended", |status| condition(status, "Ready")["status"] == "False");
        let minutes = self.minutes();
        for minute in &minutes {
            self.order_named(&format!("{SCHEDULE}-{minute}")).complete();
        }
        eventually("all are counted", Duration::from_secs(10), || {
            is(self.schedule.status()["backupsTaken"].as_u64(), Some(minutes.len() as u64))
        });
        let stored: Vec<String> = self.statuses().into_keys().map(|name| format!("{name}.db")).collect();
        self.bucket.assert_holds(&stored.iter().map(String::as_str).collect::<Vec<_>>());
    }

    fn order_named(&self, name: &str) -> Order<'a> {
        Order::found(self.schedule.namespace, "EtcdBackup", name)
    }

    /// The EtcdBackups: name → status. They are listed and not watched, because a watch ends when a CRD is changed.
    fn statuses(&self) -> BTreeMap<String, Value> {
        let backups = self.schedule.namespace.get("etcdbackups");
        let entry = |backup: &Value| Some((backup["metadata"]["name"].as_str()?.to_owned(), backup["status"].clone()));
        backups["items"].as_array().into_iter().flatten().filter_map(entry).collect()
    }

    /// The minutes for which the schedule has begun a backup.
    fn minutes(&self) -> Vec<u64> {
        let prefix = format!("{SCHEDULE}-");
        self.statuses().keys().filter_map(|name| name.strip_prefix(&prefix)?.parse().ok()).collect()
    }
}
