//! EtcdBackupSchedules under test. They know no shorter time than a minute, so whoever tests one waits for the clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::backup::Order;
use crate::watch::Watch;
use crate::{Namespace, eventually, kubectl_with_input};

/// Minutes since 1970, as the names of scheduled backups have them.
pub fn minute() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs() / 60
}

/// Every EtcdBackup that a schedule has ever made, and the minute that it was made for, in this order. Each is listed once
/// for each time that it appeared.
pub fn begun(backups: &Watch, schedule: &str) -> Vec<u64> {
    let added = backups.seen().into_iter().filter(|change| change["type"] == "ADDED");
    let names = added.filter_map(|change| change["object"]["metadata"]["name"].as_str().map(str::to_owned));
    let prefix = format!("{schedule}-");
    names.filter_map(|name| name.strip_prefix(&prefix)?.parse().ok()).collect()
}

pub fn every_minute(name: &str, destination: Value) -> Value {
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

pub struct Schedule<'a> {
    pub namespace: &'a Namespace,
    pub name: &'a str,
}

impl Schedule<'_> {
    pub fn status(&self) -> Value {
        self.namespace.get(&format!("etcdbackupschedule {}", self.name))["status"].clone()
    }

    pub fn patch(&self, spec: Value) {
        let patch = json!({"spec": spec}).to_string();
        let args = ["--namespace", &self.namespace.name, "patch", "etcdbackupschedule", self.name];
        let args = [args.as_slice(), &["--type=merge", "-p", &patch]].concat();
        kubectl_with_input(&args, "").expect("the patch is accepted");
    }

    /// Waits until the first backup is taken, and tells the minute that it was made for.
    pub fn first_backup(&self, backups: &Watch) -> u64 {
        let first = eventually("the first backup begins", Duration::from_secs(75), || {
            begun(backups, self.name).first().copied().ok_or_else(|| self.status().to_string())
        });
        Order::found(self.namespace, "EtcdBackup", &format!("{}-{first}", self.name)).complete();
        self.soon("the success is told", |status| !status["lastSuccessfulTime"].is_null());
        first
    }

    /// An edit must have taken effect long before the next minute begins.
    pub fn soon(&self, what: &str, is_so: impl Fn(&Value) -> bool) {
        eventually(what, Duration::from_secs(10), || {
            let status = self.status();
            if is_so(&status) { Ok(()) } else { Err(status.to_string()) }
        });
    }
}

/// The names of the EtcdBackups of a schedule that are there now.
pub fn kept(namespace: &Namespace, schedule: &str) -> Vec<String> {
    let selector = format!("-l etcd.improbable.io/backup-schedule-name={schedule}");
    namespace.kubectl(&format!("get etcdbackups {selector} -o name")).lines().map(str::to_owned).collect()
}

pub fn wait_for_minute(wanted: u64) {
    let limit = Duration::from_secs(60 * wanted.saturating_sub(minute()).max(1) + 10);
    eventually("the clock goes on", limit, || if minute() >= wanted { Ok(()) } else { Err(minute().to_string()) });
}
