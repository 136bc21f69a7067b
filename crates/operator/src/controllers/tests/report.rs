//! Writing the status of each kind, and the events that follow.

use etcd_operator_api::{
    BackupEventReason, BackupPhase, EtcdBackup, EtcdBackupSchedule, EtcdBackupStatus, EtcdRestore, JobFailureReason,
};
use etcd_operator_core::notice::Notice;
use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::api_server::Answer::{Object, Refusal};
use super::api_server::{Answer, ApiServer};
use super::context;
use crate::controllers::context::Context;
use crate::controllers::report::report;

const PATCH_BACKUP: &str = "PATCH /apis/etcd.improbable.io/v1alpha1/namespaces/n/etcdbackups/x/status";
const PATCH_SCHEDULE: &str = "PATCH /apis/etcd.improbable.io/v1alpha1/namespaces/n/etcdbackupschedules/x/status";
const PATCH_RESTORE: &str = "PATCH /apis/etcd.improbable.io/v1alpha1/namespaces/n/etcdrestores/x/status";

fn serve<const N: usize>(script: [(&'static str, Answer); N]) -> (Context, ApiServer) {
    let (client, api) = ApiServer::start(script.into());
    (context(client), api)
}

fn object<K: Resource<DynamicType = ()> + DeserializeOwned>(spec: &Value) -> K {
    let metadata = json!({"name": "x", "namespace": "n", "uid": "u", "resourceVersion": "7"});
    let object = json!({"apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": metadata, "spec": spec});
    serde_json::from_value(object).unwrap()
}

fn backup() -> EtcdBackup {
    object(&json!({"clusterName": "c", "destination": {"objectURLTemplate": "s3://b/{{.UID}}"}}))
}

fn failed() -> EtcdBackupStatus {
    let reason = Some(JobFailureReason::AccessDenied.into());
    EtcdBackupStatus { phase: Some(BackupPhase::Failed), reason, ..EtcdBackupStatus::default() }
}

fn notices() -> [Notice; 1] {
    [Notice::of(BackupEventReason::BackupFailed, "the store says no")]
}

#[tokio::test]
async fn status_is_applied_to_the_object_as_it_was_read_and_told_as_an_event() {
    let (context, api) = serve([(PATCH_BACKUP, Object(json!(backup())))]);
    report(&backup(), &failed(), &notices(), &context).await.unwrap();
    let sent = &api.sent()[0];
    assert_eq!(sent.content_type, "application/apply-patch+yaml");
    assert!(sent.query.contains("fieldManager=etcd-operator") && sent.query.contains("force=true"), "{}", sent.query);
    let expected = json!({
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdBackup",
        "metadata": {"resourceVersion": "7"},
        "status": {"phase": "Failed", "reason": "AccessDenied"},
    });
    assert_eq!(sent.body, expected);
    assert_eq!(api.events(), [("BackupFailed".to_owned(), "the store says no".to_owned())]);
}

#[tokio::test]
async fn status_of_an_object_that_changed_or_is_gone_is_told_by_the_next_reconcile() {
    for code in [404, 409] {
        let (context, api) = serve([(PATCH_BACKUP, Refusal(code, "changed"))]);
        report(&backup(), &failed(), &notices(), &context).await.unwrap();
        api.sent();
        assert_eq!(api.events(), [], "{code}");
    }
}

#[tokio::test]
async fn status_that_did_not_change_is_neither_written_nor_told() {
    let (context, api) = serve([]);
    let backup = EtcdBackup { status: Some(failed()), ..backup() };
    report(&backup, &failed(), &notices(), &context).await.unwrap();
    assert_eq!((api.sent().len(), api.events()), (0, Vec::new()));
}

#[tokio::test]
async fn refused_status_names_the_object_and_is_not_told() {
    let (context, api) = serve([(PATCH_BACKUP, Refusal(400, "unknown field \"status.x\""))]);
    let error = report(&backup(), &failed(), &notices(), &context).await.unwrap_err();
    assert_eq!(error.to_string(), "writing the status of the EtcdBackup n/x: unknown field \"status.x\"");
    assert_eq!(api.events(), []);
}

/// The mocked API server takes no patch without strict validation.
#[tokio::test]
async fn schedules_and_restores_are_written_in_the_same_way() {
    let schedule: EtcdBackupSchedule = object(&json!({"schedule": "@daily", "backupTemplate": {}}));
    let template =
        json!({"clusterName": "c", "spec": {"replicas": 1, "version": "3.6.16", "storage": {"ephemeral": {}}}});
    let restore: EtcdRestore = object(&json!({"source": {"backupName": "b"}, "clusterTemplate": template}));
    let (context, api) = serve([(PATCH_SCHEDULE, Object(json!(schedule))), (PATCH_RESTORE, Object(json!(restore)))]);
    report(&schedule, &Default::default(), &[], &context).await.unwrap();
    report(&restore, &Default::default(), &[], &context).await.unwrap();
    let kinds: Vec<Value> = api.sent().iter().map(|sent| sent.body["kind"].clone()).collect();
    assert_eq!(kinds, ["EtcdBackupSchedule", "EtcdRestore"]);
}
