//! What the API server takes and refuses about EtcdBackups.

use e2e::Namespace;
use serde_json::{Value, json};

use crate::{columns, refuses, refuses_once, set, takes, unset};

/// A public key.
const RECIPIENT: &str = "age13hzmrjpldjs9tcn9xj2xj7nq9nakq2vvx3xek0v7nfplmm4xrffqrp0z4p";

/// A backup of a cluster that is not there, so that nothing comes of it.
fn backup() -> Value {
    json!({
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdBackup",
        "metadata": {"name": "b"},
        "spec": {"clusterName": "c", "destination": {"objectURL": "s3://b/a.db"}},
    })
}

fn with(path: &str, value: Value) -> Value {
    set(backup(), path, value)
}

/// A backup to somewhere.
pub fn to(destination: Value) -> Value {
    with("spec/destination", destination)
}

fn without(path: &str) -> Value {
    unset(backup(), path)
}

fn decryption() -> Value {
    json!({"age": {"identitySecretKeyRef": {"name": "s", "key": "k"}}})
}

#[test]
fn documented_backups_apply_as_written() {
    let namespace = Namespace::create("api-backups");
    let by_address = set(without("spec/clusterName"), "spec/source", json!({"clusterURL": "http://my-cluster:2379"}));
    let templated = "gs://bucket/{{ .Namespace }}/{{.Name}}-{{ .UID }}-{{ .CreationTimestamp }}.db";
    takes(&namespace, [set(by_address.clone(), "spec/destination", json!({"objectURLTemplate": templated}))]);
    let bucket = json!({
        "bucketName": "bucket",
        "credentials": {"googleCloud": {"secretKeyRef": {"name": "s", "key": "k", "optional": false}}},
    });
    takes(&namespace, [set(by_address, "spec/destination", json!({"gcsBucket": bucket}))]);
}

#[test]
fn backup_needs_exactly_one_cluster() {
    let namespace = Namespace::create("api-backup-source");
    let sentence = "spec must have either clusterName, the name of an EtcdCluster in the same namespace, or source";
    let address = |url: &str| set(without("spec/clusterName"), "spec/source/clusterURL", json!(url));
    let both = with("spec/source/clusterURL", json!("http://c:2379"));
    refuses_once(&namespace, [(without("spec/clusterName"), sentence), (both, sentence)]);
    let malformed = "clusterURL must be one address of an etcd cluster; write it like http://my-cluster-client:2379";
    let wrong = ["c:2379", "http://", "http://a:2379,http://b:2379", "http://c:2379/v3", "unix://c", ""];
    refuses_once(&namespace, wrong.map(|url| (address(url), malformed)));
    takes(&namespace, ["http://c-client:2379", "https://10.0.0.1:2379", "http://[fd00::1]:2379/"].map(address));
}

#[test]
fn backup_name_must_fit_a_label() {
    let namespace = Namespace::create("api-backup-names");
    let named = |length: usize| with("metadata/name", json!("a".repeat(length)));
    refuses_once(&namespace, [(named(64), "metadata.name must have at most 63 characters, because the pods")]);
    takes(&namespace, [named(63), with("metadata/name", json!("my-backup.2026-11-15"))]);
}

#[test]
fn backup_needs_exactly_one_destination() {
    let namespace = Namespace::create("api-destination");
    let (url, claim) = ("s3://b/a.db", json!({"claimName": "c"}));
    let one = "destination must be one place; set one of objectURLTemplate, objectURL, gcsBucket and";
    let gone = "destination.local is not supported, because a file in a pod is lost with it; use";
    let bucket = "bucketName must be the name of a bucket alone, without gs://";
    refuses_once(
        &namespace,
        [
            (without("spec/destination"), "spec.destination is missing"),
            (to(json!({})), one),
            (to(json!({"s3": {"region": "r"}})), one),
            (to(json!({"objectURL": url, "objectURLTemplate": url})), one),
            (to(json!({"objectURL": url, "persistentVolumeClaim": claim})), one),
            (to(json!({"gcsBucket": {"bucketName": "b"}, "persistentVolumeClaim": claim})), one),
            (to(json!({"local": {"path": "/backups/a.db"}})), gone),
            (to(json!({"local": {}})), gone),
            (to(json!({"local": {}, "objectURL": url})), gone),
            (to(json!({"gcsBucket": {"bucketName": "gs://b"}})), bucket),
            (to(json!({"gcsBucket": {"bucketName": "b/dir"}})), bucket),
            (to(json!({"gcsBucket": {"bucketName": ""}})), bucket),
            (to(json!({"objectUrl": url})), "unknown field"),
        ],
    );
    refuses(
        &namespace,
        [
            (to(json!({"gcsBucket": {}})), "spec.destination.gcsBucket.bucketName"),
            (to(json!({"persistentVolumeClaim": {}})), "spec.destination.persistentVolumeClaim.claimName"),
        ],
    );
    takes(
        &namespace,
        [
            to(json!({"objectURL": url})),
            to(json!({"objectURLTemplate": url})),
            to(json!({"gcsBucket": {"bucketName": "my_bucket.example.com"}})),
            to(json!({"persistentVolumeClaim": claim})),
        ],
    );
}

#[test]
fn url_template_with_unknown_variable_is_refused() {
    let namespace = Namespace::create("api-variables");
    let template = |text: &str| to(json!({"objectURLTemplate": text}));
    let in_volume = |path: &str| to(json!({"persistentVolumeClaim": {"claimName": "c", "path": path}}));
    for wrong in ["{{ .Nam }}", "{{ Name }}", "{{ .Name", ".Name }}", "{.Name}", "{{ .Name | upper }}", "{{{ .Name }}}"]
    {
        let in_url = template(&format!("s3://b/{wrong}.db"));
        refuses_once(
            &namespace,
            [
                (in_url, "objectURLTemplate must have no braces but those of variables; the variables are {{ .Name }}"),
                (in_volume(wrong), "path must have no braces but those of variables; the variables are {{ .Name }}"),
            ],
        );
    }
    for right in ["{{ .Name }}", "{{.Namespace}}/{{  .UID}}", "{{ .CreationTimestamp }}-{{ .ClusterName }}"] {
        takes(&namespace, [template(&format!("s3://b/{right}.db")), in_volume(right)]);
    }
    refuses_once(
        &namespace,
        [
            (to(json!({"objectURL": "s3://b/{{ .Name }}.db"})), "write a URL with variables into objectURLTemplate"),
            (template("{{ .Name }}/a.db"), "objectURLTemplate must be the URL of an object and begin with s3://"),
            (
                template("http://b/{{ .Name }}.db"),
                "objectURLTemplate must be the URL of an object and begin with s3://",
            ),
        ],
    );

    // A cluster that is given by its address has no name.
    let by_address =
        |backup: Value| set(unset(backup, "spec/clusterName"), "spec/source/clusterURL", json!("http://c"));
    let sentence = "spec.destination must not have the variable {{ .ClusterName }} with spec.source.clusterURL";
    let named = [template("s3://b/{{ .ClusterName }}.db"), in_volume("{{.ClusterName}}.db")];
    refuses_once(&namespace, named.map(|backup| (by_address(backup), sentence)));
    takes(&namespace, [template("s3://b/{{ .Name }}.db"), in_volume("{{ .Name }}.db")].map(by_address));
}

#[test]
fn encryption_and_decryption_of_a_backup_are_validated() {
    let namespace = Namespace::create("api-encryption");
    let encrypted = |recipients: Value| with("spec/encryption/age/recipients", recipients);
    let sentence = "recipients must be public keys of age, which begin with age1";
    let wrong = [json!([""]), json!(["ssh-ed25519 AAAA"]), json!([RECIPIENT, "AGE-SECRET-KEY-1QQ"]), json!(["age1 "])];
    refuses_once(&namespace, wrong.map(|recipients| (encrypted(recipients), sentence)));
    refuses(&namespace, [json!([]), json!(vec![RECIPIENT; 17])].map(|list| (encrypted(list), "age.recipients")));
    takes(&namespace, [encrypted(json!([RECIPIENT])), encrypted(json!(vec![RECIPIENT; 16]))]);

    let verified = |verify: &str| set(encrypted(json!([RECIPIENT])), "spec/verify", json!(verify));
    refuses_once(
        &namespace,
        [(verified("Restore"), "spec.decryption is missing; an encrypted backup can be verified")],
    );
    takes(&namespace, [verified("None"), set(verified("Restore"), "spec/decryption", decryption())]);
    takes(&namespace, [with("spec/verify", json!("Restore"))]);
    refuses(&namespace, [(with("spec/verify", json!("Perhaps")), "\"None\", \"Restore\"")]);
    refuses(&namespace, [(with("spec/compression", json!("Gzip")), "\"None\", \"Zstd\"")]);
}

#[test]
fn backup_retries_and_deadline_must_be_in_range() {
    let namespace = Namespace::create("api-tries");
    let (tries, deadline) =
        (|value: Value| with("spec/backoffLimit", value), |value| with("spec/activeDeadline", value));
    let sentence = "spec.backoffLimit must be between 0, to try once and never again, and 10";
    refuses_once(&namespace, [-1, 11].map(|limit| (tries(json!(limit)), sentence)));
    takes(&namespace, [0, 4, 10].map(|limit| tries(json!(limit))));
    let sentence = "spec.activeDeadline must be a duration of at least 10s; write it like 30m or 2h";
    let wrong = [json!("9s"), json!(3600), json!(0), json!("0"), json!("soon"), json!(""), json!("1d")];
    refuses_once(&namespace, wrong.map(|value| (deadline(value), sentence)));
    takes(&namespace, ["10s", "30m", "1h30m"].map(|value| deadline(json!(value))));
}

#[test]
fn backup_pod_template_is_validated_like_that_of_members() {
    let namespace = Namespace::create("api-backup-pods");
    let reserved = json!({"etcd.improbable.io/anything": "x"});
    refuses_once(
        &namespace,
        [
            (
                with("spec/podTemplate/metadata/labels", reserved.clone()),
                "spec.podTemplate.metadata.labels must not have",
            ),
            (
                with("spec/podTemplate/metadata/annotations", reserved),
                "spec.podTemplate.metadata.annotations must not have names that begin with",
            ),
            (
                with("spec/podTemplate/resources/limits", json!({"memory": "much"})),
                "spec.podTemplate.resources.limits must be amounts",
            ),
            (
                with("spec/podTemplate/resources/requests", json!({"memory": "much"})),
                "spec.podTemplate.resources.requests must be amounts",
            ),
        ],
    );
    let all = json!({
        "metadata": {"labels": {"team": "storage"}, "annotations": {"a": "b"}},
        "resources": {"limits": {"memory": "128Mi"}},
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
        "priorityClassName": "low",
        "imagePullSecrets": [{"name": "s"}],
    });
    takes(&namespace, [with("spec/podTemplate", all)]);
}

#[test]
fn backup_is_immutable() {
    let namespace = Namespace::create("api-backup-changes");
    let full = set(with("spec/podTemplate/nodeSelector", json!({"disk": "fast"})), "spec/compression", json!("Zstd"));
    namespace.apply(&full.to_string()).unwrap();
    let sentence = "spec of an EtcdBackup cannot be changed; make a new EtcdBackup instead, under another name";
    let changes = [
        ("spec/clusterName", json!("d")),
        ("spec/destination/objectURL", json!("s3://b/b.db")),
        ("spec/destination/credentials", json!({"serviceAccountName": "s"})),
        ("spec/compression", json!("None")),
        ("spec/encryption/age/recipients", json!([RECIPIENT])),
        ("spec/verify", json!("Restore")),
        ("spec/decryption", decryption()),
        ("spec/backoffLimit", json!(0)),
        ("spec/activeDeadline", json!("10m")),
        ("spec/podTemplate/nodeSelector/disk", json!("slow")),
        ("spec/podTemplate/priorityClassName", json!("low")),
    ];
    refuses_once(&namespace, changes.map(|(path, value)| (set(full.clone(), path, value), sentence)));
    refuses_once(&namespace, [(unset(full.clone(), "spec/podTemplate"), sentence)]);
    // What is the default may be written or not, and what is no part of the spec may be changed.
    takes(&namespace, [set(full.clone(), "spec/backoffLimit", json!(4))]);
    takes(&namespace, [set(full, "metadata/labels", json!({"team": "storage"}))]);
}

#[test]
fn kubectl_shows_backups() {
    let namespace = Namespace::create("api-backup-columns");
    namespace.apply(&backup().to_string()).unwrap();
    let narrow = ["NAME", "PHASE", "CLUSTER", "REVISION", "SIZE", "AGE"];
    let wide = ["NAME", "PHASE", "CLUSTER", "REVISION", "SIZE", "URL", "VERIFIED", "MESSAGE", "AGE"];
    assert_eq!(columns(&namespace, "get eb"), narrow);
    assert_eq!(columns(&namespace, "get etcdbackups -o wide"), wide);
    assert!(namespace.kubectl("get etcd").contains("etcdbackup.etcd.improbable.io/b"), "the category lists backups");
    let stored = namespace.get("etcdbackup b")["spec"].clone();
    let defaults = json!({"compression": "None", "verify": "None", "backoffLimit": 4});
    for (field, value) in defaults.as_object().unwrap() {
        assert_eq!(stored[field], *value, "{field}");
    }
}
