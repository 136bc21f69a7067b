//! Schedules and backups to decide about.

use etcd_operator_api::{EtcdBackupSchedule, EtcdBackupScheduleStatus};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use crate::schedule::plan::{Deletion, Observed, ObservedCluster, Plan, plan};
use crate::schedule::scheduled_backup::{End, Run, ScheduledBackup, name_of};

pub const CLUSTER: &str = "7a1f";

/// A time in November 2026, for example `16T03:00`.
pub fn at(day_and_time: &str) -> Timestamp {
    time(&format!("2026-11-{day_and_time}:00Z"))
}

pub fn time(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub fn minutes(count: i64) -> SignedDuration {
    SignedDuration::from_mins(count)
}

/// A schedule that takes a backup every night at three, created on 10 November at noon.
pub fn nightly() -> EtcdBackupSchedule {
    let mut schedule: EtcdBackupSchedule = serde_json::from_value(json!({
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdBackupSchedule",
        "metadata": {"name": "nightly", "namespace": "db", "uid": "5c1e", "generation": 1},
        "spec": {
            "schedule": "0 3 * * *",
            "backupTemplate": {"spec": {
                "clusterName": "my-etcd",
                "destination": {"objectURLTemplate": "s3://backups/{{.UID}}"},
            }},
        },
    }))
    .unwrap_or_else(|error| panic!("{error}"));
    schedule.metadata.creation_timestamp = Some(Time(at("10T12:00")));
    schedule
}

/// The backup of a time. It is running.
pub fn backup(time: Timestamp, number: i64) -> ScheduledBackup {
    ScheduledBackup { name: name_of("nightly", time), run: Some(Run { at: time, number }), end: None, deleting: false }
}

/// One that ended after five minutes.
pub fn ended(time: Timestamp, number: i64, succeeded: bool) -> ScheduledBackup {
    ScheduledBackup { end: Some(End { at: time + minutes(5), succeeded }), ..backup(time, number) }
}

/// The plan for a schedule whose cluster exists.
pub fn plan_at(schedule: &EtcdBackupSchedule, taken: &[ScheduledBackup], now: Timestamp) -> Plan {
    let cluster = ObservedCluster::Present { uid: CLUSTER.to_owned() };
    plan(&Observed { schedule, taken, cluster, deletion: Deletion::NotBegun, now })
}

/// The same schedule after it was reconciled.
pub fn looked_at(schedule: &EtcdBackupSchedule, taken: &[ScheduledBackup], now: Timestamp) -> EtcdBackupSchedule {
    with_status(schedule, plan_at(schedule, taken, now).status)
}

pub fn with_status(schedule: &EtcdBackupSchedule, status: EtcdBackupScheduleStatus) -> EtcdBackupSchedule {
    EtcdBackupSchedule { status: Some(status), ..schedule.clone() }
}

/// The status and the reason of a condition.
pub fn condition<'a>(status: &'a EtcdBackupScheduleStatus, type_: &str) -> Option<(&'a str, &'a str)> {
    let found = status.conditions.iter().find(|it| it.type_ == type_);
    found.map(|it| (it.status.as_str(), it.reason.as_str()))
}
