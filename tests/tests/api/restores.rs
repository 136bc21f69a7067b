//! What the API server takes and refuses about EtcdRestores, and about EtcdClusters that begin with a backup.

use e2e::Namespace;
use serde_json::{Value, json};

use crate::{cluster, columns, refuses, refuses_once, set, takes, unset, without as cluster_without};

/// A restore of a backup that is not there, so that nothing comes of it.
fn restore() -> Value {
    json!({
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdRestore",
        "metadata": {"name": "r"},
        "spec": {
            "source": {"backupName": "nobody-made-this"},
            "clusterTemplate": {"clusterName": "c", "spec": cluster_without("spec/version")["spec"]},
        },
    })
}

fn with(path: &str, value: Value) -> Value {
    set(restore(), path, value)
}

fn without(path: &str) -> Value {
    unset(restore(), path)
}

/// A restore of a backup that is somewhere.
pub fn from(source: Value) -> Value {
    with("spec/source", source)
}

fn bootstrapped(restore: Value) -> Value {
    set(cluster(), "spec/bootstrap/restore", restore)
}

#[test]
fn restore_needs_exactly_one_backup() {
    let namespace = Namespace::create("api-restore-source");
    let one = "spec.source must be one backup; set one of objectURL, bucket, persistentVolumeClaim and backupName";
    let (url, bucket) = ("s3://b/a.db", json!({"bucketURL": "s3://b", "objectPath": "a.db"}));
    let claim = json!({"claimName": "c", "path": "a.db"});
    let takes_its_own = "spec.source.backupName goes without credentials, s3, azure and googleCloud";
    refuses_once(
        &namespace,
        [
            (without("spec/source"), "spec.source is missing; say which backup to restore"),
            (from(json!({})), one),
            (from(json!({"sha256": "a".repeat(64)})), one),
            (from(json!({"objectURL": url, "bucket": bucket})), one),
            (from(json!({"objectURL": url, "backupName": "b"})), one),
            (from(json!({"persistentVolumeClaim": claim, "bucket": bucket})), one),
            (from(json!({"backupName": "b", "credentials": {"serviceAccountName": "s"}})), takes_its_own),
            (from(json!({"backupName": "b", "credentials": {"s3": {"secretName": "s"}}})), takes_its_own),
            (from(json!({"backupName": "b", "s3": {"region": "r"}})), takes_its_own),
            (from(json!({"backupName": "b", "azure": {}})), takes_its_own),
            (from(json!({"backupName": "b", "googleCloud": {}})), takes_its_own),
        ],
    );
    refuses(&namespace, [(from(json!({"backupName": ""})), "spec.source.backupName")]);
    let identity = json!({"age": {"identitySecretKeyRef": {"name": "s", "key": "k"}}});
    takes(
        &namespace,
        [
            from(json!({"objectURL": url})),
            from(json!({"bucket": bucket})),
            from(json!({"persistentVolumeClaim": claim})),
            from(json!({"backupName": "b", "decryption": identity, "sha256": "0".repeat(64)})),
        ],
    );
    let bucket = |url: &str| from(json!({"bucket": {"bucketURL": url, "objectPath": "a.db"}}));
    let malformed =
        "bucketURL must be the URL of a bucket and begin with s3://, gs:// or az://; write it like gs://bucket";
    refuses_once(&namespace, ["b", "http://b", "gs://", "file:///b", ""].map(|url| (bucket(url), malformed)));
    takes(&namespace, ["gs://b", "s3://b/", "az://b/dir", "s3://b?region=eu-west-1"].map(bucket));
    let hash = |sha256: &str| from(json!({"objectURL": url, "sha256": sha256}));
    let sentence = "sha256 must have 64 hexadecimal digits in lower case";
    refuses_once(&namespace, ["", "abc", &"A".repeat(64), &"g".repeat(64)].map(|sha256| (hash(sha256), sentence)));
}

#[test]
fn restore_needs_a_valid_cluster_template() {
    let namespace = Namespace::create("api-restore-cluster");
    let named = |name: &str| with("spec/clusterTemplate/clusterName", json!(name));
    let in_template = |path: &str, value: Value| with(&format!("spec/clusterTemplate/{path}"), value);
    let name = "spec.clusterTemplate.clusterName";
    refuses_once(
        &namespace,
        [
            (without("spec/clusterTemplate"), "spec.clusterTemplate is missing; say which cluster to make"),
            (without("spec/clusterTemplate/clusterName"), "spec.clusterTemplate.clusterName is missing"),
            (without("spec/clusterTemplate/spec"), "spec.clusterTemplate.spec is missing; describe the new cluster"),
            (named("1st"), &format!("{name} must consist of lower case letters")),
            (named(""), &format!("{name} must consist of lower case letters")),
            (named(&"a".repeat(51)), &format!("{name} must have at most 50 characters")),
            (named("c-client"), &format!("{name} must not end with -client")),
            (
                in_template("spec/bootstrap", json!({"restore": {"objectURL": "s3://b/a.db"}})),
                "spec.clusterTemplate.spec.bootstrap cannot be set, because the operator sets it",
            ),
            // The rules of an EtcdCluster hold here, too.
            (without("spec/clusterTemplate/spec/storage"), "spec.storage is missing"),
            (in_template("spec/replicas", json!(0)), "spec.replicas must be at least 1"),
            (in_template("spec/version", json!("banana")), "spec.version must be a semantic version"),
            (in_template("spec/version", json!("")), "spec.version must be a semantic version"),
            (in_template("spec/replica", json!(3)), "unknown field"),
            (in_template("metadata/labels", json!({"etcd.improbable.io/a": "b"})), "metadata.labels must not have"),
            (with("metadata/name", json!("a".repeat(64))), "metadata.name must have at most 63 characters"),
        ],
    );
    takes(
        &namespace,
        [
            restore(),
            in_template("spec/version", json!("3.6.16")),
            in_template("spec/etcd/snapshotCount", json!(5000)),
            in_template("spec/podTemplate/metadata/labels", json!({"team": "storage"})),
            in_template("metadata/labels", json!({"team": "storage"})),
        ],
    );
}

#[test]
fn restore_is_immutable() {
    let namespace = Namespace::create("api-restore-changes");
    namespace.apply(&restore().to_string()).unwrap();
    let sentence = "spec of an EtcdRestore cannot be changed; make a new EtcdRestore instead";
    let in_template = "spec/clusterTemplate/spec";
    let changes = [
        ("spec/source/backupName".to_owned(), json!("another")),
        ("spec/clusterTemplate/clusterName".to_owned(), json!("d")),
        (format!("{in_template}/replicas"), json!(5)),
        (format!("{in_template}/version"), json!("3.6.16")),
        (format!("{in_template}/podTemplate/nodeSelector"), json!({"disk": "fast"})),
        (format!("{in_template}/storage/volumeClaimTemplate/storageClassName"), json!("another")),
        (format!("{in_template}/storage"), json!({"ephemeral": {}, "volumeClaimTemplate": null})),
    ];
    refuses_once(&namespace, changes.map(|(path, value)| (with(&path, value), sentence)));
    takes(&namespace, [restore(), with("metadata/labels", json!({"team": "storage"}))]);
}

#[test]
fn bootstrap_restore_is_validated() {
    let namespace = Namespace::create("api-bootstrap");
    let url = "s3://b/a.db";
    let one = "spec.bootstrap.restore must be one backup; set one of objectURL, bucket and persistentVolumeClaim";
    let access = "credentials and settings must be of the provider that the URL is of";
    refuses_once(
        &namespace,
        [
            (bootstrapped(json!({})), one),
            (bootstrapped(json!({"objectURL": url, "bucket": {"bucketURL": "s3://b", "objectPath": "a"}})), one),
            (bootstrapped(json!({"backupName": "b"})), "unknown field"),
            (bootstrapped(json!({"objectURL": "http://b/a.db"})), "begin with s3://, gs:// or az://"),
            (bootstrapped(json!({"objectURL": url, "azure": {}})), access),
        ],
    );
    takes(&namespace, [bootstrapped(json!({"objectURL": url})), set(cluster(), "spec/bootstrap", json!({}))]);
}

#[test]
fn bootstrap_restore_can_be_removed_but_not_changed() {
    let namespace = Namespace::create("api-bootstrap-changes");
    let sentence =
        "spec.bootstrap.restore can be removed but neither added nor changed after the cluster has been created";
    let began_with = |url: &str| bootstrapped(json!({"objectURL": url}));
    // Nobody's members start: there is no such storage class, and the cluster is paused.
    let paused = |cluster: Value| set(cluster, "spec/paused", json!(true));
    namespace.apply(&paused(began_with("s3://b/a.db")).to_string()).unwrap();
    refuses_once(
        &namespace,
        [
            (paused(began_with("s3://b/b.db")), sentence),
            (paused(bootstrapped(json!({"objectURL": "s3://b/a.db", "s3": {"region": "r"}}))), sentence),
        ],
    );
    takes(&namespace, [paused(began_with("s3://b/a.db")), set(began_with("s3://b/a.db"), "spec/replicas", json!(5))]);
    namespace.apply(&paused(cluster()).to_string()).unwrap();
    assert_eq!(namespace.get("etcdcluster c")["spec"].get("bootstrap"), None);
    refuses_once(&namespace, [(paused(began_with("s3://b/a.db")), sentence)]);
    takes(&namespace, [paused(set(cluster(), "spec/bootstrap", json!({})))]);
}

#[test]
fn kubectl_shows_restores() {
    let namespace = Namespace::create("api-restore-columns");
    namespace.apply(&restore().to_string()).unwrap();
    assert_eq!(columns(&namespace, "get er"), ["NAME", "PHASE", "CLUSTER", "REVISION", "AGE"]);
    let wide = ["NAME", "PHASE", "CLUSTER", "REVISION", "PROGRESS", "MESSAGE", "AGE"];
    assert_eq!(columns(&namespace, "get etcdrestores -o wide"), wide);
    assert!(namespace.kubectl("get etcd").contains("etcdrestore.etcd.improbable.io/r"), "the category lists restores");
}
