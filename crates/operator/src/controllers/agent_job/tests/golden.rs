//! The Jobs that are created, whole, as files: a change of what runs in a cluster shows in a review. After a change that
//! is meant, `UPDATE_GOLDEN=1 cargo test -p etcd-operator golden` writes the files again.

use std::path::Path;

use etcd_operator_api::{EtcdBackup, EtcdBackupSchedule, EtcdRestore, Image, PullPolicy, RestoreFrom};
use etcd_operator_protocol::manifest::Origin;
use etcd_operator_protocol::task::{Backup, Location, Prune, Retention};
use kube::Resource;
use serde_json::{Value, json};

use crate::controllers::agent_job::AgentJob;
use crate::controllers::backup::verify;
use crate::controllers::{backup, backup_schedule, restore};
use crate::objects::containers::Settings;

fn settings() -> Settings {
    Settings {
        agent_image: "registry/operator:1".to_owned(),
        etcd_repository: "registry/etcd".to_owned(),
        pull_policy: Some(PullPolicy::IfNotPresent),
    }
}

/// The settings of an operator that was started without any.
fn bare_settings() -> Settings {
    Settings { pull_policy: None, ..settings() }
}

/// Everything that users may say about the pods.
fn pod_template() -> Value {
    json!({
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
        "resources": {"limits": {"memory": "128Mi"}},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]},
        ]}}},
        "tolerations": [{"key": "backups", "operator": "Exists"}],
        "nodeSelector": {"disk": "fast"},
        "priorityClassName": "low",
        "imagePullSecrets": [{"name": "registry"}],
    })
}

fn in_a_store() -> Value {
    json!({
        "clusterName": "my-etcd",
        "destination": {
            "objectURLTemplate": "s3://bucket/{{ .Name }}.db",
            "credentials": {"s3": {"secretName": "keys"}, "serviceAccountName": "writer"},
        },
        "compression": "Zstd",
        "encryption": {"age": {"recipients": ["age1recipient"]}},
        "decryption": {"age": {"identitySecretKeyRef": {"name": "age", "key": "identity"}}},
        "verify": "Restore",
        "backoffLimit": 2,
        "activeDeadline": "30m",
        "podTemplate": pod_template(),
    })
}

fn in_a_volume() -> Value {
    json!({
        "source": {"clusterURL": "http://other:2379"},
        "destination": {"persistentVolumeClaim": {"claimName": "backups"}},
    })
}

fn object<K: serde::de::DeserializeOwned>(kind: &str, name: &str, spec: &Value) -> K {
    let metadata = json!({"name": name, "namespace": "db", "uid": "5c1e8a07-e3a5-4c4e-8f60-1f3a3a9c21ce"});
    let object = json!({
        "apiVersion": "etcd.improbable.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

fn in_store(url: &str) -> Location {
    Location {
        url: url.to_owned(),
        endpoint: Some("http://minio:9000".to_owned()),
        region: Some("eu".to_owned()),
        force_path_style: Some(true),
    }
}

fn on_volume(path: &str) -> Location {
    Location { url: format!("file:///backups/{path}"), ..Location::default() }
}

fn assert_is_golden<K: Resource<DynamicType = ()>>(name: &str, made: &AgentJob, object: &K) {
    let made = format!("{}\n", serde_json::to_string_pretty(&made.job(object)).unwrap());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/controllers/agent_job/golden");
    let path = folder.join(format!("{name}.json"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(made, golden, "{} differs; UPDATE_GOLDEN=1 writes it again", path.display());
}

fn task(to: Location) -> Backup {
    Backup {
        to,
        endpoints: vec!["http://my-etcd-0.my-etcd.db.svc.cluster.local:2379".to_owned()],
        compress: true,
        recipients: vec!["age1recipient".to_owned()],
        hash_keys: true,
        origin: Origin {
            backup: "db/nightly-1".to_owned(),
            uid: "5c1e".to_owned(),
            cluster: Some("db/my-etcd".to_owned()),
            schedule: Some("db/nightly/0d5b".to_owned()),
        },
        retention: Some(Retention { keep_last: 3, time_zone: "UTC".to_owned(), ..Retention::default() }),
        all_below: Some(in_store("s3://bucket/")),
    }
}

#[test]
fn job_of_a_backup_is_golden() {
    let backup: EtcdBackup = object("EtcdBackup", "nightly.1", &in_a_store());
    let job = backup::job::agent_job_of(&backup, task(in_store("s3://bucket/nightly-1.db")), &settings());
    assert_is_golden("backup_to_a_store", &job, &backup);
    let backup: EtcdBackup = object("EtcdBackup", "once", &in_a_volume());
    let job = backup::job::agent_job_of(&backup, task(on_volume("db/once.db")), &bare_settings());
    assert_is_golden("backup_to_a_volume", &job, &backup);
}

#[test]
fn job_of_a_verification_is_golden() {
    let backup: EtcdBackup = object("EtcdBackup", "nightly.1", &in_a_store());
    let image = Image { repository: Some("mirror/etcd".to_owned()), pull_policy: None };
    let location = in_store("s3://bucket/nightly-1.db");
    let job = verify::agent_job_of(&backup, &location, "3.6.16+a", Some(&image), &settings());
    assert_is_golden("verify_in_a_store", &job, &backup);
    let backup: EtcdBackup = object("EtcdBackup", "once", &in_a_volume());
    let job = verify::agent_job_of(&backup, &on_volume("db/once.db"), "3.5.21", None, &bare_settings());
    assert_is_golden("verify_on_a_volume", &job, &backup);
}

#[test]
fn job_of_a_check_is_golden() {
    let cluster = json!({
        "version": "3.6.16",
        "storage": {"ephemeral": {}},
        "podTemplate": {
            "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
            "resources": {"limits": {"memory": "8Gi"}},
            "tolerations": [{"key": "etcd", "operator": "Exists"}],
            "nodeSelector": {"disk": "fast"},
            "priorityClassName": "high",
            "imagePullSecrets": [{"name": "registry"}],
        },
    });
    let spec = |cluster: &Value| {
        let source = json!({"objectURL": "s3://bucket/a.db"});
        json!({"source": source, "clusterTemplate": {"clusterName": "my-etcd", "spec": cluster}})
    };
    let restore: EtcdRestore = object("EtcdRestore", "back", &spec(&cluster));
    let from = json!({
        "objectURL": "s3://bucket/a.db",
        "sha256": "ab".repeat(32),
        "decryption": {"age": {"identitySecretKeyRef": {"name": "age", "key": "identity"}}},
        "credentials": {"s3": {"secretName": "keys"}, "serviceAccountName": "reader"},
    });
    let from: RestoreFrom = serde_json::from_value(from).unwrap();
    assert_is_golden("check_in_a_store", &restore::job::agent_job_of(&restore, &from, &settings()), &restore);
    let restore: EtcdRestore =
        object("EtcdRestore", "back", &spec(&json!({"version": "", "storage": {"ephemeral": {}}})));
    let from = json!({"persistentVolumeClaim": {"claimName": "backups", "path": "db/once.db"}});
    let from: RestoreFrom = serde_json::from_value(from).unwrap();
    assert_is_golden("check_on_a_volume", &restore::job::agent_job_of(&restore, &from, &bare_settings()), &restore);
}

#[test]
fn job_of_a_deletion_is_golden() {
    let spec = |backup: &Value| json!({"schedule": "@daily", "backupTemplate": {"spec": backup}});
    let task = |below: Location| Prune { below, schedule: "db/nightly/0d5b".to_owned(), retention: None };
    let schedule: EtcdBackupSchedule = object("EtcdBackupSchedule", "nightly", &spec(&in_a_store()));
    let cluster = "0d5b3f1c-9f0e-4b8e-9b0e-2f6c1d7e8a90";
    let job = backup_schedule::prune::agent_job_of(&schedule, cluster, task(in_store("s3://bucket/")), &settings());
    assert_is_golden("prune_in_a_store", &job, &schedule);
    let schedule: EtcdBackupSchedule = object("EtcdBackupSchedule", "nightly", &spec(&in_a_volume()));
    let job = backup_schedule::prune::agent_job_of(&schedule, cluster, task(on_volume("db/")), &bare_settings());
    assert_is_golden("prune_on_a_volume", &job, &schedule);
}
