//! Restores to decide about.

use etcd_operator_api::RestorePhase;
use etcd_operator_api::{
    BackupPhase, EtcdBackup, EtcdBackupStatus, EtcdCluster, EtcdRestore, EtcdRestoreStatus, Reason, Severity,
};
use etcd_operator_protocol::manifest::Manifest;
use etcd_operator_protocol::report::Done;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::agent_job::{ObservedJob, Progress};
use crate::restore::observed::{Observed, ObservedCluster};
use crate::restore::plan::{Plan, Step, plan};

pub const UID: &str = "job-uid";

pub fn at(time: &str) -> Timestamp {
    format!("2026-11-16T{time}:00Z").parse().unwrap_or_else(|error| panic!("{time}: {error}"))
}

pub fn manifest(version: &str) -> Manifest {
    let manifest = json!({
        "backup": "n/b", "clusterId": "1", "revision": 5, "keys": 1, "etcdVersion": version, "member": "m",
        "withQuorum": true, "takenAt": "2026-01-01T00:00:00Z", "snapshotSize": 1, "snapshotSha256": "aa",
        "objectSize": 1, "objectSha256": "aa",
    });
    serde_json::from_value(manifest).unwrap_or_else(|error| panic!("{error}"))
}

fn object<K: k8s_openapi::serde::de::DeserializeOwned>(kind: &str, metadata: Value, spec: Value) -> K {
    let object = json!({"apiVersion": "etcd.improbable.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec});
    serde_json::from_value(object).unwrap_or_else(|error| panic!("{error}"))
}

pub fn restore_from(source: Value) -> EtcdRestore {
    let metadata = json!({"name": "back", "namespace": "db", "uid": "5c1e", "generation": 1});
    let template = json!({
        "clusterName": "my-etcd",
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
        "spec": {"version": "", "replicas": 3, "storage": {"ephemeral": {}}},
    });
    object("EtcdRestore", metadata, json!({"source": source, "clusterTemplate": template}))
}

/// A restore of a backup in a bucket to a cluster of three members.
pub fn restore() -> EtcdRestore {
    restore_from(json!({"objectURL": "s3://backups/b.db"}))
}

pub fn in_phase(phase: RestorePhase) -> EtcdRestore {
    EtcdRestore { status: Some(EtcdRestoreStatus { phase: Some(phase), ..Default::default() }), ..restore() }
}

/// The backup `b` in a phase.
pub fn backup(phase: Option<BackupPhase>, destination: Value) -> EtcdBackup {
    let spec = json!({
        "clusterName": "my-etcd",
        "destination": destination,
        "decryption": {"age": {"identitySecretKeyRef": {"name": "age", "key": "identity"}}},
    });
    let mut backup: EtcdBackup = object("EtcdBackup", json!({"name": "b", "namespace": "db", "uid": "7e1c"}), spec);
    let sha256 = Some("cc".to_owned());
    backup.status = Some(EtcdBackupStatus { phase, sha256, ..EtcdBackupStatus::default() });
    backup
}

/// The cluster that was created for [`restore`].
pub fn cluster(status: Value) -> EtcdCluster {
    let annotations = json!({"etcd.improbable.io/restore-uid": "5c1e"});
    let metadata = json!({"name": "my-etcd", "namespace": "db", "annotations": annotations});
    let spec = json!({"version": "3.6.16", "replicas": 3, "storage": {"ephemeral": {}}});
    let mut cluster: EtcdCluster = object("EtcdCluster", metadata, spec);
    cluster.status = Some(serde_json::from_value(status).unwrap_or_else(|error| panic!("{error}")));
    cluster
}

pub fn nothing() -> ObservedCluster {
    ObservedCluster::Nothing { backup: None }
}

pub fn observed(restore: &EtcdRestore, cluster: ObservedCluster, progress: Progress) -> Observed<'_> {
    let uid = (progress != Progress::NotBegun).then(|| UID.to_owned());
    Observed { restore, cluster, check: ObservedJob { progress, uid }, now: at("12:10") }
}

pub fn plan_with(restore: &EtcdRestore, cluster: ObservedCluster, progress: Progress) -> Plan {
    plan(&observed(restore, cluster, progress))
}

pub fn done() -> Progress {
    done_with(Done { manifest: Some(manifest("3.6.16")), ..Done::default() })
}

pub fn done_with(done: Done) -> Progress {
    Progress::Done { attempts: 1, done: Box::new(done) }
}

pub fn created(plan: &Plan) -> &EtcdCluster {
    match &plan.step {
        Some(Step::CreateCluster(cluster)) => cluster,
        other => panic!("{other:?}"),
    }
}

/// The phase, and why it failed.
pub fn end(plan: &Plan) -> (Option<RestorePhase>, Option<&str>) {
    (plan.status.phase, plan.status.reason.as_ref().map(Reason::as_str))
}

/// The type and the reason of each event.
pub fn events(plan: &Plan) -> Vec<(Severity, &str)> {
    plan.notices.iter().map(|notice| (notice.severity, notice.reason.as_str())).collect()
}

/// The status and the reason of a condition.
pub fn condition<'a>(plan: &'a Plan, type_: &str) -> Option<(&'a str, &'a str)> {
    let found = plan.status.conditions.iter().find(|it| it.type_ == type_);
    found.map(|it| (it.status.as_str(), it.reason.as_str()))
}
