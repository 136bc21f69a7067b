//! Tests of the types of backups, schedules and restores.

use k8s_openapi::api::core::v1::EnvVar;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{property, schema_of};
use crate::{
    BackupPhase, Compression, ConcurrencyPolicy, Credentials, Decryption, Destination, EtcdBackup, EtcdBackupSchedule,
    EtcdBackupScheduleSpec, EtcdBackupScheduleStatus, EtcdBackupSpec, EtcdBackupStatus, EtcdPeer, EtcdRestore,
    EtcdRestoreStatus, RestoreFrom, RestorePhase, Retention, Verify,
};

const BACKUP: &str = include_str!("../../../../config/samples/etcd_v1alpha1_etcdbackup.yaml");
const FULL_BACKUP: &str = include_str!("../../../../config/samples/etcd_v1alpha1_etcdbackup_full.yaml");
const SCHEDULE: &str = include_str!("../../../../config/samples/etcd_v1alpha1_etcdbackupschedule.yaml");
const RESTORE: &str = include_str!("../../../../config/samples/etcd_v1alpha1_etcdrestore.yaml");
const GCS_RESTORE: &str = include_str!("../../../../config/samples/etcd_v1alpha1_etcdrestore_gcs.yaml");

fn sample<T: DeserializeOwned>(text: &str) -> T {
    serde_saphyr::from_str(text).unwrap()
}

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

#[test]
fn backup_has_defaults() {
    let spec = sample::<EtcdBackup>(BACKUP).spec;
    assert_eq!(spec.cluster_name.as_deref(), Some("my-cluster"));
    assert_eq!((spec.compression, spec.verify, spec.backoff_limit), (Compression::None, Verify::None, 4));
    assert_eq!(spec.active_deadline().as_secs(), 3600);
    assert!(spec.recipients().is_empty());
    assert_eq!(spec.destination.access.region(), Some("eu-west-1"));
    assert_eq!((spec.destination.access.endpoint(), spec.destination.access.force_path_style()), (None, false));
    assert_eq!(read::<EtcdBackupSpec>(json!({})), EtcdBackupSpec::default());
    let schema = schema_of("EtcdBackup");
    for (field, default) in [("compression", json!("None")), ("verify", json!("None")), ("backoffLimit", json!(4))] {
        assert_eq!(property(&schema, &["spec", field])["default"], default, "{field}");
    }
}

#[test]
fn backup_deadline_is_the_specified_one() {
    let deadline =
        |written: &str| read::<EtcdBackupSpec>(json!({"activeDeadline": written})).active_deadline().as_secs();
    assert_eq!(["10s", "30m", "1h30m"].map(deadline), [10, 1800, 5400]);
    // The API server refuses it. Should it arrive all the same, nothing runs for ever because of it.
    assert_eq!(deadline("soon"), 3600);
}

#[test]
fn full_backup_sample_shows_every_option() {
    let spec = sample::<EtcdBackup>(FULL_BACKUP).spec;
    assert_eq!(spec.recipients().len(), 1);
    assert_eq!(spec.pod_template().labels()["team"], "storage");
    assert_eq!(spec.pod_template().annotations().len(), 1);
    assert_eq!(spec.destination.access.endpoint(), Some("https://minio.example.com:9000"));
    assert!(spec.destination.access.force_path_style());
    let shown = serde_json::to_value(&spec).unwrap();
    let schema = schema_of("EtcdBackup");
    for (path, unseen) in [
        (vec![], vec!["source"]),
        (vec!["destination"], vec!["objectURL", "gcsBucket", "persistentVolumeClaim", "local", "azure", "googleCloud"]),
        (vec!["destination", "credentials"], vec!["azure", "googleCloud"]),
        (vec!["destination", "credentials", "s3"], vec![]),
        (vec!["destination", "s3"], vec![]),
        (vec!["podTemplate"], vec![]),
    ] {
        let full_path: Vec<&str> = ["spec"].into_iter().chain(path.clone()).collect();
        let shown = path.iter().fold(&shown, |value, name| &value[name]);
        for name in property(&schema, &full_path)["properties"].as_object().unwrap().keys() {
            assert_eq!(shown[name].is_null(), unseen.contains(&name.as_str()), "{path:?} {name}");
        }
    }
}

#[test]
fn destination_is_a_url_or_a_volume() {
    let template = |fields: Value| read::<Destination>(fields).url_template();
    let written = "s3://bucket/{{ .Name }}.db";
    assert_eq!(template(json!({"objectURLTemplate": written})).as_deref(), Some(written));
    assert_eq!(template(json!({"objectURL": "az://bucket/a.db"})).as_deref(), Some("az://bucket/a.db"));
    let in_bucket = template(json!({"gcsBucket": {"bucketName": "b"}}));
    assert_eq!(in_bucket.as_deref(), Some("gs://b/{{ .Namespace }}/{{ .Name }}.db"));
    let volume = |fields: Value| {
        let destination: Destination = read(json!({"persistentVolumeClaim": fields}));
        assert_eq!(destination.url_template(), None);
        destination.persistent_volume_claim.unwrap().path().to_owned()
    };
    assert_eq!(volume(json!({"claimName": "c"})), "{{ .Namespace }}/{{ .Name }}.db");
    assert_eq!(volume(json!({"claimName": "c", "path": "a.db"})), "a.db");
}

#[test]
fn store_settings_are_serialized_next_to_the_url() {
    let written = json!({
        "objectURL": "s3://bucket/a.db",
        "credentials": {"serviceAccountName": "backups"},
        "s3": {"endpoint": "http://minio:9000", "forcePathStyle": true},
    });
    let destination: Destination = read(written.clone());
    assert_eq!(destination.credentials().unwrap().service_account_name.as_deref(), Some("backups"));
    assert_eq!(serde_json::to_value(&destination).unwrap(), written);
    let source: RestoreFrom = read(written.clone());
    assert_eq!(serde_json::to_value(&source).unwrap(), written);
    assert_eq!((source.access, source.object_url), (destination.access, destination.object_url));
}

#[test]
fn settings_of_every_provider_have_an_endpoint() {
    for provider in ["s3", "azure", "googleCloud"] {
        let destination: Destination = read(json!({provider: {"endpoint": "http://store"}}));
        assert_eq!(destination.access.endpoint(), Some("http://store"), "{provider}");
    }
}

#[test]
fn credentials_are_read_from_every_place() {
    let ours = json!({"serviceAccountName": "backups"});
    let expected: Credentials = read(ours.clone());
    let in_bucket: Destination = read(json!({"gcsBucket": {"bucketName": "b", "credentials": ours}}));
    assert_eq!(in_bucket.credentials(), Some(&expected));
    let bucket: RestoreFrom = read(json!({"bucket": {"bucketURL": "gs://b", "objectPath": "a", "credentials": ours}}));
    assert_eq!(bucket.credentials(), Some(&expected));
    let beside: RestoreFrom = read(json!({"objectURL": "gs://b/a", "credentials": ours}));
    assert_eq!(beside.credentials(), Some(&expected));
    assert_eq!(RestoreFrom::default().credentials(), None);
}

/// What the variables of a pod are taken from: name, Secret, key, and whether it may be missing.
fn from_secrets(variables: &[EnvVar]) -> Vec<(&str, &str, &str, bool)> {
    let secrets =
        variables.iter().map(|variable| variable.value_from.as_ref().unwrap().secret_key_ref.as_ref().unwrap());
    variables
        .iter()
        .zip(secrets)
        .map(|(variable, secret)| {
            (variable.name.as_str(), secret.name.as_str(), secret.key.as_str(), secret.optional.unwrap_or(false))
        })
        .collect()
}

#[test]
fn credentials_become_environment_variables() {
    let variables = |credentials: Value| read::<Credentials>(credentials).variables();
    assert_eq!(variables(json!({"serviceAccountName": "backups"})), []);
    assert_eq!(
        from_secrets(&variables(json!({"s3": {"secretName": "s", "sessionTokenKey": "token"}}))),
        [
            ("AWS_ACCESS_KEY_ID", "s", "AWS_ACCESS_KEY_ID", false),
            ("AWS_SECRET_ACCESS_KEY", "s", "AWS_SECRET_ACCESS_KEY", false),
            ("AWS_SESSION_TOKEN", "s", "token", true),
        ]
    );
    assert_eq!(
        from_secrets(&variables(json!({"azure": {"secretName": "s", "accountKeyKey": "key"}}))),
        [
            ("AZURE_STORAGE_ACCOUNT_NAME", "s", "AZURE_STORAGE_ACCOUNT_NAME", true),
            ("AZURE_STORAGE_ACCOUNT_KEY", "s", "key", true),
            ("AZURE_STORAGE_SAS_TOKEN", "s", "AZURE_STORAGE_SAS_TOKEN", true),
        ]
    );
    let key = json!({"name": "s", "key": "gcp.json", "optional": false});
    assert_eq!(
        from_secrets(&variables(json!({"googleCloud": {"secretKeyRef": key}}))),
        [("GOOGLE_SERVICE_ACCOUNT_KEY", "s", "gcp.json", false)]
    );
    let decryption: Decryption = read(json!({"age": {"identitySecretKeyRef": {"name": "s", "key": "k"}}}));
    assert_eq!(from_secrets(&[decryption.variable("IDENTITY")]), [("IDENTITY", "s", "k", false)]);
}

#[test]
fn schedule_has_defaults() {
    let spec: EtcdBackupScheduleSpec = read(json!({"schedule": "@daily", "backupTemplate": {}}));
    assert_eq!((spec.time_zone.as_str(), spec.concurrency_policy), ("UTC", ConcurrencyPolicy::Forbid));
    assert_eq!((spec.successful_backups_history_limit, spec.failed_backups_history_limit), (3, 3));
    assert!(!spec.suspend && !spec.on_upgrade && !spec.delete_with_cluster);
    let schema = schema_of("EtcdBackupSchedule");
    for (field, default) in [
        ("timeZone", json!("UTC")),
        ("concurrencyPolicy", json!("Forbid")),
        ("suspend", json!(false)),
        ("successfulBackupsHistoryLimit", json!(3)),
        ("failedBackupsHistoryLimit", json!(3)),
    ] {
        assert_eq!(property(&schema, &["spec", field])["default"], default, "{field}");
    }
}

#[test]
fn schedule_sample_is_parsed() {
    let spec = sample::<EtcdBackupSchedule>(SCHEDULE).spec;
    assert_eq!((spec.schedule.as_str(), spec.time_zone.as_str()), ("0 * * * *", "Europe/London"));
    assert_eq!((spec.starting_deadline_seconds, spec.verify_every, spec.on_upgrade), (Some(600), Some(24), true));
    let retention = spec.retention.clone().unwrap();
    assert_eq!((retention.keep_days, retention.keep_daily, retention.keep_monthly), (Some(2), Some(14), Some(12)));
    assert!(!retention.dry_run);
    assert_eq!(spec.backup_metadata().labels["team"], "storage");
    let backup = spec.backup_spec();
    assert_eq!((backup.cluster_name.as_deref(), backup.compression), (Some("my-cluster"), Compression::Zstd));
}

#[test]
fn backup_template_is_parsed_in_both_forms() {
    let spec =
        |template: Value| -> EtcdBackupScheduleSpec { read(json!({"schedule": "@daily", "backupTemplate": template})) };
    let fields = json!({"source": {"clusterURL": "http://c:2379"}, "destination": {"objectURL": "s3://b/a"}});
    let (now, earlier) = (spec(json!({"spec": fields})), spec(fields.clone()));
    assert_eq!(now.backup_spec(), earlier.backup_spec());
    assert_eq!(now.backup_spec(), read(fields));
    let named = spec(json!({"clusterName": "c", "destination": {}}));
    assert_eq!(named.backup_spec(), EtcdBackupSpec { cluster_name: Some("c".into()), ..Default::default() });
}

#[test]
fn days_of_month_apply_to_this_month_by_default() {
    assert_eq!(read::<Retention>(json!({"daysOfMonth": {"days": [1]}})).days_of_month.unwrap().months, 0);
}

#[test]
fn restore_without_version_is_parsed() {
    let restore: EtcdRestore = sample(RESTORE);
    let template = restore.spec.cluster_template;
    assert_eq!((template.cluster_name.as_str(), template.spec.version.as_str()), ("my-restored-cluster", ""));
    assert_eq!(restore.spec.source.backup_name, None);
    let url = restore.spec.source.from.url();
    assert_eq!(url.as_deref(), Some("s3://my-bucket/my-namespace/my-cluster/my-backup.db"));
    // Nobody is told that the version is nothing.
    assert_eq!(serde_json::to_value(template.spec).unwrap().get("version"), None);
}

#[test]
fn documented_restore_is_parsed() {
    let restore: EtcdRestore = sample(GCS_RESTORE);
    let from = &restore.spec.source.from;
    assert_eq!(from.url().as_deref(), Some("gs://etcd-backup-test/foo.db"));
    assert_eq!(
        from_secrets(&from.credentials().unwrap().variables()),
        [("GOOGLE_SERVICE_ACCOUNT_KEY", "backup-gcs-cred", "gcp.json", false)]
    );
    let written: Value = serde_saphyr::from_str(GCS_RESTORE).unwrap();
    assert_eq!(serde_json::to_value(&restore.spec.source).unwrap(), written["spec"]["source"]);
}

#[test]
fn url_consists_of_bucket_and_object() {
    let url = |bucket: &str, object: &str| {
        read::<RestoreFrom>(json!({"bucket": {"bucketURL": bucket, "objectPath": object}})).url().unwrap()
    };
    assert_eq!(url("gs://b", "a.db"), "gs://b/a.db");
    assert_eq!(url("gs://b/", "/dir/a.db"), "gs://b/dir/a.db");
    assert_eq!(url("s3://b/dir", "a.db"), "s3://b/dir/a.db");
    assert_eq!(url("s3://b?region=eu-west-1&disableSSL=true", "a.db"), "s3://b/a.db?region=eu-west-1&disableSSL=true");
}

#[test]
fn restore_with_backup_name_is_parsed() {
    let mut written: Value = serde_saphyr::from_str(RESTORE).unwrap();
    written["spec"]["source"] = json!({"backupName": "b", "sha256": "0"});
    let restore: EtcdRestore = read(written.clone());
    assert_eq!((restore.spec.source.backup_name.as_deref(), restore.spec.source.from.url()), (Some("b"), None));
    assert_eq!(serde_json::to_value(&restore.spec.source).unwrap(), written["spec"]["source"]);
}

#[test]
fn restore_template_has_every_field_of_a_cluster() {
    let (restore, cluster) = (schema_of("EtcdRestore"), schema_of("EtcdCluster"));
    let names = |schema: &Value| schema["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let template = property(&restore, &["spec", "clusterTemplate", "spec"]);
    assert_eq!(names(template), names(property(&cluster, &["spec"])));
    // What cannot be changed at all needs no rules about changes, and such a rule of its own.
    assert!(property(&cluster, &["spec"]).to_string().contains("oldSelf"));
    assert!(!template.to_string().contains("oldSelf"));
    assert!(restore["x-kubernetes-validations"].to_string().contains("oldSelf"));
}

#[test]
fn schedule_is_mutable() {
    let schema = schema_of("EtcdBackupSchedule");
    assert!(!schema.to_string().contains("oldSelf"));
    assert!(schema_of("EtcdBackup")["x-kubernetes-validations"].to_string().contains("oldSelf"));
}

#[test]
fn peer_with_restore_bootstrap_survives_a_round_trip() {
    let peer = json!({
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdPeer",
        "metadata": {"name": "my-cluster-0"},
        "spec": {
            "clusterName": "my-cluster",
            "version": "3.6.16",
            "storage": {"ephemeral": {"medium": "Disk"}},
            "bootstrap": {
                "initialClusterState": "New",
                "restore": {"objectURL": "s3://b/a.db", "sha256": "0", "s3": {"region": "r"}},
            },
        },
    });
    let restored: EtcdPeer = read(peer.clone());
    assert_eq!(serde_json::to_value(restored).unwrap(), peer);
}

#[test]
fn statuses_survive_a_round_trip() {
    let time = "2026-11-15T22:42:05Z";
    let written = json!({
        "phase": "Completed",
        "startTime": time,
        "completionTime": time,
        "objectURL": "s3://b/a.db",
        "revision": 7,
        "keys": 5,
        "etcdVersion": "3.6.16",
        "clusterID": "cdf818194e3a8c32",
        "member": "c-0",
        "withQuorum": true,
        "snapshotSize": 20512,
        "objectSize": 4096,
        "sha256": "0",
        "attempts": 1,
        "reason": "Completed",
        "message": "done",
        "retention": {"kept": 3, "deleted": 0, "wouldDelete": ["s3://b/old.db"]},
        "verified": true,
        "observedGeneration": 1,
    });
    let status: EtcdBackupStatus = read(written.clone());
    assert!(status.has_ended());
    assert_eq!(serde_json::to_value(status).unwrap(), written);
    for (phase, ended) in [
        (BackupPhase::Pending, false),
        (BackupPhase::Running, false),
        (BackupPhase::Verifying, false),
        (BackupPhase::Completed, true),
        (BackupPhase::Failed, true),
    ] {
        assert_eq!(EtcdBackupStatus { phase: Some(phase), ..Default::default() }.has_ended(), ended, "{phase:?}");
    }
    assert!(!EtcdBackupStatus::default().has_ended());

    let written = json!({
        "phase": "ScalingUp",
        "progress": "1 of 3 members are ready",
        "objectURL": "s3://b/a.db",
        "restoredRevision": 7,
        "clusterName": "c",
        "clusterID": "1",
    });
    let status: EtcdRestoreStatus = read(written.clone());
    assert!(!status.has_ended());
    assert_eq!(serde_json::to_value(status).unwrap(), written);
    assert!(EtcdRestoreStatus { phase: Some(RestorePhase::Failed), ..Default::default() }.has_ended());
}

#[test]
fn reasons_of_other_versions_and_of_kubernetes_are_read_and_written_unchanged() {
    for word in ["AccessDenied", "OOMKilled", "WordOfALaterVersion"] {
        let written = json!({"phase": "Failed", "reason": word});
        assert_eq!(serde_json::to_value(read::<EtcdBackupStatus>(written.clone())).unwrap(), written);
        assert_eq!(serde_json::to_value(read::<EtcdRestoreStatus>(written.clone())).unwrap(), written);
    }
}

#[test]
fn phases_and_fields_of_earlier_operators_are_parsed() {
    let phase = |phase: &str| read::<EtcdRestoreStatus>(json!({"phase": phase})).phase.unwrap();
    assert_eq!(["Checking", "Growing"].map(phase), [RestorePhase::Validating, RestorePhase::ScalingUp]);
    let earlier = json!({"countedFrom": "2026-11-15T22:42:05Z", "judged": 7});
    let status = read::<EtcdBackupScheduleStatus>(earlier).with_current_names();
    let written = serde_json::to_value(status).unwrap();
    assert_eq!((&written["activeSince"], &written["lastCountedBackup"]), (&json!("2026-11-15T22:42:05Z"), &json!(7)));
    assert_eq!((written.get("countedFrom"), written.get("judged")), (None, None));
}
