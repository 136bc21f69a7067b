//! Our kinds of objects as the real API server serves them: what it accepts, what it refuses and with which words, and
//! how the objects look to `kubectl`. What the operator makes of a spec that was accepted belongs in the other
//! chapters.

mod backups;
mod changes;
mod maintenance;
mod options;
mod refusals;
mod restores;
mod schedules;
mod stores;

use std::time::Duration;

use e2e::{MUST_BE_REFUSED, Namespace, SAFETY, checkout, eventually, kubectl};
use serde_json::{Value, json};

/// A cluster with everything that must be there. No storage class can make its volumes, so its members never start.
fn cluster() -> Value {
    json!({
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdCluster",
        "metadata": {"name": "c"},
        "spec": {
            "replicas": 3,
            "version": "3.6.16",
            "storage": {"volumeClaimTemplate": {
                "storageClassName": "nobody-has-this",
                "resources": {"requests": {"storage": "50Mi"}},
            }},
        },
    })
}

/// A manifest with one thing changed, given by its path.
fn set(mut manifest: Value, path: &str, value: Value) -> Value {
    let (parent, field) = path.rsplit_once('/').unwrap();
    let mut place = &mut manifest;
    for name in parent.split('/') {
        if place.get(name).is_none() {
            place[name] = json!({});
        }
        place = &mut place[name];
    }
    place[field] = value;
    manifest
}

fn unset(mut manifest: Value, path: &str) -> Value {
    let (parent, field) = path.rsplit_once('/').unwrap();
    manifest.pointer_mut(&format!("/{parent}")).unwrap().as_object_mut().unwrap().remove(field).unwrap();
    manifest
}

/// The cluster with one thing changed, given by its path.
fn with(path: &str, value: Value) -> Value {
    set(cluster(), path, value)
}

fn without(path: &str) -> Value {
    unset(cluster(), path)
}

/// Each manifest must be refused, with a complaint that contains its sentence.
fn refuses<'a>(namespace: &Namespace, manifests: impl IntoIterator<Item = (Value, &'a str)>) {
    for (manifest, sentence) in manifests {
        let complaint =
            namespace.try_apply(&manifest.to_string()).expect_err(&format!("{SAFETY}{manifest} was accepted"));
        assert!(complaint.contains(sentence), "wanted: {sentence}\ngot: {complaint}");
    }
}

/// The same, and the complaint must be the only one.
fn refuses_once<'a>(namespace: &Namespace, manifests: impl IntoIterator<Item = (Value, &'a str)>) {
    for (manifest, sentence) in manifests {
        let complaint =
            namespace.try_apply(&manifest.to_string()).expect_err(&format!("{SAFETY}{manifest} was accepted"));
        assert!(complaint.contains(sentence), "wanted: {sentence}\ngot: {complaint}");
        assert!(!complaint.contains("\n* "), "kubectl lists several complaints: {complaint}");
    }
}

/// The words at the top of the table that `kubectl` prints.
fn columns(namespace: &Namespace, line: &str) -> Vec<String> {
    let table = namespace.kubectl(line);
    table.lines().next().unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn takes(namespace: &Namespace, manifests: impl IntoIterator<Item = Value>) {
    for manifest in manifests {
        namespace.try_apply(&manifest.to_string()).unwrap_or_else(|complaint| panic!("{manifest}: {complaint}"));
    }
}

#[test]
fn every_sample_applies() {
    let namespace = Namespace::create("api-samples");
    let mut samples = 0;
    for file in std::fs::read_dir(checkout().join("config/samples")).unwrap() {
        let path = file.unwrap().path();
        let sample = std::fs::read_to_string(&path).unwrap();
        namespace.try_apply(&sample).unwrap_or_else(|complaint| panic!("{}: {complaint}", path.display()));
        samples += 1;
    }
    assert!(samples >= 8, "{samples} samples");
}

#[test]
fn documented_manifests_apply_as_written() {
    let namespace = Namespace::create("api-documented");
    // The operations guide shows the affinity directly in the spec, and Prometheus' annotations.
    let term = json!({
        "labelSelector": {"matchExpressions": [
            {"key": "etcd.improbable.io/cluster-name", "operator": "In", "values": ["my-cluster"]},
        ]},
        "topologyKey": "kubernetes.io/hostname",
    });
    let preferred = json!([{"weight": 100, "podAffinityTerm": term}]);
    let affinity = json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}});
    let annotations = json!({"prometheus.io/path": "/metrics", "prometheus.io/scrape": "true"});
    let accepted = [
        with("spec/affinity", affinity.clone()),
        with("spec/podTemplate/affinity", affinity),
        with("spec/podTemplate/metadata/annotations", annotations),
        with("spec/podTemplate/resources", json!({"limits": {"cpu": 2, "memory": "1Gi"}, "requests": {"cpu": "0.5"}})),
        with("spec/version", json!("3.2.28")),
        with("spec/version", json!("3.7.0-rc.1")),
        with("spec/replicas", json!(1)),
        without("spec/replicas"),
    ];
    takes(&namespace, accepted);
}

#[test]
fn cluster_has_defaults_columns_scale_and_selector() {
    let namespace = Namespace::create("api-columns");
    namespace.apply(&without("spec/replicas").to_string()).unwrap();
    assert_eq!(namespace.get("etcdcluster c")["spec"]["replicas"], 3, "three is the default");

    eventually("the operator reports", Duration::from_secs(20), || {
        let wide = namespace.kubectl("get etcdclusters -o wide");
        if wide.contains("Bootstrapping") { Ok(()) } else { Err(format!("no reason with -o wide: {wide}")) }
    });
    assert_eq!(namespace.get("etcdcluster c")["status"]["observedGeneration"], 1);
    let table = namespace.kubectl("get etcdclusters");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "READY", "DESIRED", "VERSION", "AVAILABLE", "AGE"]);
    assert_eq!(rows[1][..5], ["c", "0", "3", "3.6.16", "False"]);
    let wide = namespace.kubectl("get etcdclusters -o wide");
    let header: Vec<&str> = wide.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header[4..], ["AVAILABLE", "REASON", "UPDATED", "CLUSTER-VERSION", "AGE"]);
    assert!(namespace.kubectl("get etcd").contains("etcdcluster.etcd.improbable.io/c"), "the category lists clusters");

    namespace.kubectl("scale etcdcluster c --replicas=5");
    assert_eq!(namespace.get("etcdcluster c")["spec"]["replicas"], 5);
    let path = "/apis/etcd.improbable.io/v1alpha1/namespaces/api-columns/etcdclusters/c/scale";
    let scale: Value = serde_json::from_str(&kubectl(&format!("get --raw {path}"))).unwrap();
    assert_eq!(scale["status"]["selector"], "app.kubernetes.io/name=etcd,etcd.improbable.io/cluster-name=c");
    let too_low =
        e2e::try_kubectl("--namespace api-columns scale etcdcluster c --replicas=0").expect_err(MUST_BE_REFUSED);
    assert!(too_low.contains("spec.replicas must be at least 1"), "{too_low}");
}

#[test]
fn kubectl_explains_every_field_of_ours() {
    let storage = kubectl("explain etcdcluster.spec.storage");
    assert!(storage.contains("volumeClaimTemplate"), "{storage}");
    for field in [
        "etcdcluster",
        "etcdcluster.spec",
        "etcdcluster.spec.replicas",
        "etcdcluster.spec.version",
        "etcdcluster.spec.storage",
        "etcdcluster.spec.storage.volumeClaimTemplate",
        "etcdcluster.spec.podTemplate",
        "etcdcluster.spec.podTemplate.metadata",
        "etcdcluster.spec.podTemplate.metadata.annotations",
        "etcdcluster.spec.podTemplate.resources",
        "etcdcluster.spec.podTemplate.affinity",
        "etcdcluster.spec.podTemplate.metadata.labels",
        "etcdcluster.spec.podTemplate.tolerations",
        "etcdcluster.spec.podTemplate.nodeSelector",
        "etcdcluster.spec.podTemplate.topologySpreadConstraints",
        "etcdcluster.spec.podTemplate.priorityClassName",
        "etcdcluster.spec.podTemplate.imagePullSecrets",
        "etcdcluster.spec.affinity",
        "etcdcluster.spec.storage.ephemeral.medium",
        "etcdcluster.spec.storage.ephemeral.sizeLimit",
        "etcdcluster.spec.storage.migrate",
        "etcdcluster.spec.deletionPolicy",
        "etcdcluster.spec.upgrade",
        "etcdcluster.spec.upgrade.backupFirst",
        "etcdcluster.spec.image.repository",
        "etcdcluster.spec.image.pullPolicy",
        "etcdcluster.spec.etcd.quotaBackendBytes",
        "etcdcluster.spec.etcd.autoCompaction.retention",
        "etcdcluster.spec.etcd.extraArgs",
        "etcdcluster.status.bootstrap.token",
        "etcdcluster.status.clusterID",
        "etcdcluster.status.leader",
        "etcdcluster.status.members.id",
        "etcdcluster.status.updatedReplicas",
        "etcdcluster.status.targetVersion",
        "etcdcluster.status.members.dbSize",
        "etcdcluster.status.members.volumeSize",
        "etcdcluster.status.conditions",
        "etcdpeer.spec.clusterName",
        "etcdpeer.spec.bootstrap",
        "etcdpeer.spec.bootstrap.static.initialCluster.host",
        "etcdpeer.status.serverVersion",
        "etcdpeer.status.memberID",
        "etcdpeer.status.started",
        "etcdcluster.spec.bootstrap",
        "etcdcluster.spec.bootstrap.restore.objectURL",
        "etcdpeer.spec.bootstrap.restore",
        "etcdbackup",
        "etcdbackup.spec.source.clusterURL",
        "etcdbackup.spec.destination.objectURLTemplate",
        "etcdbackup.spec.destination.credentials.s3.accessKeyIDKey",
        "etcdbackup.spec.destination.persistentVolumeClaim.path",
        "etcdbackup.spec.encryption.age.recipients",
        "etcdbackup.spec.podTemplate.resources",
        "etcdbackup.status.phase",
        "etcdbackup.status.retention.wouldDelete",
        "etcdbackupschedule",
        "etcdbackupschedule.spec.schedule",
        "etcdbackupschedule.spec.backupTemplate.spec.destination",
        "etcdbackupschedule.spec.retention.daysOfMonth.days",
        "etcdbackupschedule.status.nextScheduleTime",
        "etcdrestore",
        "etcdrestore.spec.source.bucket.objectPath",
        "etcdrestore.spec.source.decryption.age.identitySecretKeyRef",
        "etcdrestore.spec.clusterTemplate.spec.version",
        "etcdrestore.status.restoredRevision",
    ] {
        let text = kubectl(&format!("explain {field}"));
        assert!(!text.contains("<empty>"), "{field} has no description:\n{text}");
    }
}
