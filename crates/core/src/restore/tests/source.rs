//! Restores that name an EtcdBackup.

use etcd_operator_api::{BackupPhase, EtcdBackup, RestoreFrom, RestorePhase};
use serde_json::{Value, json};

use super::support::*;
use crate::agent_job::Progress;
use crate::restore::observed::ObservedCluster;
use crate::restore::plan::{Plan, Step};

fn plan_of(source: Value, backup: Option<EtcdBackup>) -> Plan {
    let cluster = ObservedCluster::Nothing { backup: backup.map(Box::new) };
    plan_with(&restore_from(source), cluster, Progress::NotBegun)
}

fn in_store() -> Value {
    json!({
        "objectURLTemplate": "s3://backups/{{ .UID }}.db",
        "credentials": {"s3": {"secretName": "of-backup"}},
    })
}

fn from(plan: &Plan) -> &RestoreFrom {
    match &plan.step {
        Some(Step::CreateCheckJob(from)) => from,
        other => panic!("{other:?}"),
    }
}

#[test]
fn missing_backup_fails_the_restore() {
    let plan = plan_of(json!({"backupName": "b"}), None);
    assert_eq!((plan.step.clone(), end(&plan)), (None, (Some(RestorePhase::Failed), Some("NoSuchBackup"))));
}

#[test]
fn failed_backup_fails_the_restore() {
    let plan = plan_of(json!({"backupName": "b"}), Some(backup(Some(BackupPhase::Failed), in_store())));
    assert_eq!((plan.step.clone(), end(&plan)), (None, (Some(RestorePhase::Failed), Some("BackupFailed"))));
}

#[test]
fn unfinished_backup_is_waited_for() {
    for phase in [None, Some(BackupPhase::Pending), Some(BackupPhase::Running), Some(BackupPhase::Verifying)] {
        let plan = plan_of(json!({"backupName": "b"}), Some(backup(phase, in_store())));
        assert_eq!((plan.step, plan.status.phase), (None, Some(RestorePhase::Pending)));
        assert_eq!(plan.status.progress.as_deref(), Some("waits for the EtcdBackup \"b\" to complete"));
    }
}

#[test]
fn completed_backup_is_read_where_it_was_stored_and_as_it_was_written() {
    let plan = plan_of(json!({"backupName": "b"}), Some(backup(Some(BackupPhase::Completed), in_store())));
    let from = from(&plan);
    assert_eq!((from.url().as_deref(), from.sha256.as_deref()), (Some("s3://backups/7e1c.db"), Some("cc")));
    assert!(from.credentials().is_some() && from.decryption.is_some());
}

#[test]
fn completed_backup_on_a_volume_is_read_from_its_claim() {
    let destination = json!({"persistentVolumeClaim": {"claimName": "backups"}});
    let plan = plan_of(json!({"backupName": "b"}), Some(backup(Some(BackupPhase::Completed), destination)));
    let claim = from(&plan).persistent_volume_claim.clone().unwrap();
    assert_eq!((claim.claim_name.as_str(), claim.path.as_str()), ("backups", "db/b.db"));
    assert_eq!(plan.status.object_url.as_deref(), Some("pvc://backups/db/b.db"));
}

#[test]
fn settings_of_the_restore_take_precedence_over_those_of_the_backup() {
    let source = json!({
        "backupName": "b",
        "sha256": "dd",
        "credentials": {"s3": {"secretName": "of-restore"}},
        "decryption": {"age": {"identitySecretKeyRef": {"name": "of-restore", "key": "identity"}}},
    });
    let plan = plan_of(source, Some(backup(Some(BackupPhase::Completed), in_store())));
    let from = json!(from(&plan));
    assert_eq!(from["sha256"], "dd");
    assert_eq!(from["credentials"]["s3"]["secretName"], "of-restore");
    assert_eq!(from["decryption"]["age"]["identitySecretKeyRef"]["name"], "of-restore");
}

#[test]
fn backup_whose_location_is_unknown_fails_the_restore() {
    let destination = json!({"objectURLTemplate": "s3://backups/{{ .Nam }}.db"});
    let plan = plan_of(json!({"backupName": "b"}), Some(backup(Some(BackupPhase::Completed), destination)));
    assert_eq!((plan.step.clone(), end(&plan)), (None, (Some(RestorePhase::Failed), Some("InvalidRequest"))));
}
