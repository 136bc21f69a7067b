//! Backups to decide about.

use etcd_operator_api::{BackupPhase, EtcdBackup, EtcdBackupStatus, Reason, Severity};
use etcd_operator_protocol::manifest::Manifest;
use etcd_operator_protocol::report::{Done, Pruned};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::agent_job::{ObservedJob, Progress};
use crate::backup::observed::{Observed, ObservedCluster};
use crate::backup::plan::{Plan, plan};

pub const UID: &str = "job-uid";

/// A time on the day of the backup, which was created at noon.
pub fn at(time: &str) -> Timestamp {
    format!("2026-11-16T{time}:00Z").parse().unwrap_or_else(|error| panic!("{time}: {error}"))
}

/// The backup of an EtcdCluster to a bucket.
pub fn backup() -> EtcdBackup {
    with_spec(json!({
        "clusterName": "my-etcd",
        "destination": {"objectURLTemplate": "s3://backups/{{ .Name }}.db"},
    }))
}

/// The same, to be verified.
pub fn to_verify() -> EtcdBackup {
    with_spec(json!({
        "clusterName": "my-etcd",
        "destination": {"objectURLTemplate": "s3://backups/{{ .Name }}.db"},
        "verify": "Restore",
    }))
}

pub fn with_spec(spec: Value) -> EtcdBackup {
    let backup = json!({
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdBackup",
        "metadata": {
            "name": "b", "namespace": "db", "uid": "7e1c", "generation": 1, "creationTimestamp": "2026-11-16T12:00:00Z",
        },
        "spec": spec,
    });
    serde_json::from_value(backup).unwrap_or_else(|error| panic!("{error}"))
}

pub fn with_status(backup: &EtcdBackup, status: EtcdBackupStatus) -> EtcdBackup {
    EtcdBackup { status: Some(status), ..backup.clone() }
}

/// The same backup, in a phase.
pub fn in_phase(backup: &EtcdBackup, phase: BackupPhase) -> EtcdBackup {
    let etcd_version = Some("3.6.16".to_owned());
    with_status(backup, EtcdBackupStatus { phase: Some(phase), etcd_version, ..EtcdBackupStatus::default() })
}

pub fn present() -> ObservedCluster {
    let endpoints = vec!["http://my-etcd-0.my-etcd.db.svc.cluster.local:2379".to_owned()];
    ObservedCluster::Present { endpoints, image: None }
}

pub fn observed(backup: &EtcdBackup, progress: Progress) -> Observed<'_> {
    let uid = (progress != Progress::NotBegun).then(|| UID.to_owned());
    Observed { backup, job: ObservedJob { progress, uid }, cluster: present(), schedule: None, now: at("12:10") }
}

pub fn plan_with(backup: &EtcdBackup, progress: Progress) -> Plan {
    plan(&observed(backup, progress))
}

pub fn done(manifest: Option<Manifest>, pruned: Option<Pruned>) -> Progress {
    Progress::Done { attempts: 2, done: Box::new(Done { manifest, pruned, ..Done::default() }) }
}

pub fn failed(reason: &str) -> Progress {
    Progress::Failed { attempts: 5, reason: Reason::verbatim(reason), message: "it went wrong".to_owned() }
}

pub fn manifest(with_quorum: bool) -> Manifest {
    let manifest = json!({
        "backup": "db/b", "clusterId": "cdf8", "revision": 5, "keys": 3, "etcdVersion": "3.6.16", "member": "m-0",
        "withQuorum": with_quorum, "takenAt": "2026-11-16T12:05:00Z", "snapshotSize": 20, "snapshotSha256": "aa",
        "objectSize": 10, "objectSha256": "bb",
    });
    serde_json::from_value(manifest).unwrap_or_else(|error| panic!("{error}"))
}

/// The status and the reason of a condition.
pub fn condition<'a>(plan: &'a Plan, type_: &str) -> Option<(&'a str, &'a str)> {
    let found = plan.status.conditions.iter().find(|it| it.type_ == type_);
    found.map(|it| (it.status.as_str(), it.reason.as_str()))
}

/// The type and the reason of each event.
pub fn events(plan: &Plan) -> Vec<(Severity, &str)> {
    plan.notices.iter().map(|notice| (notice.severity, notice.reason.as_str())).collect()
}
