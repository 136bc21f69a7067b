//! What the API server refuses, apart from options of etcd.

use e2e::{MUST_BE_REFUSED, Namespace};
use serde_json::{Value, json};

use crate::{refuses, takes, with, without};

#[test]
fn invalid_cluster_is_refused_with_a_message_that_names_the_field() {
    let namespace = Namespace::create("api-refusals");
    let affinity = json!({"podAntiAffinity": {}});
    let mut both_affinities = with("spec/affinity", affinity.clone());
    both_affinities["spec"]["podTemplate"] = json!({"affinity": affinity});
    let reserved = json!({"etcd.improbable.io/anything": "x"});
    let refused = [
        (with("spec/version", json!("banana")), "spec.version must be a semantic version"),
        (with("spec/version", json!("v3.6.16")), "spec.version must be a semantic version without a leading v"),
        (with("spec/version", json!("2.3.8")), "spec.version must be a version of etcd 3"),
        (without("spec/version"), "spec.version is missing"),
        (with("spec/replicas", json!(0)), "spec.replicas must be at least 1"),
        (with("spec/replicas", json!(-1)), "spec.replicas must be at least 1"),
        (without("spec/storage"), "spec.storage is missing"),
        (with("spec/storage", json!({})), "spec.storage.volumeClaimTemplate is missing"),
        (with("spec/storage/volumeClaimTemplate", json!({})), "resources.requests.storage is missing"),
        (
            with("spec/storage/volumeClaimTemplate/resources/requests/storage", json!("big")),
            "resources.requests.storage must be a size",
        ),
        (
            with("spec/podTemplate/metadata/annotations", reserved),
            "spec.podTemplate.metadata.annotations must not have names that begin with etcd.improbable.io/",
        ),
        (
            with("spec/podTemplate/resources/limits", json!({"cpu": "many"})),
            "spec.podTemplate.resources.limits must be amounts",
        ),
        (both_affinities, "spec.affinity and spec.podTemplate.affinity mean the same"),
        (with("metadata/name", json!("1st")), "metadata.name must consist of"),
        (with("spec/replicas", json!(100)), "spec.replicas must be at most 99"),
        (with("metadata/name", json!("c-client")), "metadata.name must not end with -client"),
        (with("spec/storage/volumeClaimTemplate/volumeMode", json!("Block")), "volumeMode must be Filesystem"),
        (with("spec/storage/volumeClaimTemplate/volumeName", json!("v")), "volumeName cannot be set"),
        (with("metadata/name", json!("a".repeat(51))), "metadata.name must have at most 50 characters"),
        (with("spec/replica", json!(3)), "unknown field"),
    ];
    refuses(&namespace, refused);
}

#[test]
fn one_mistake_gives_one_message() {
    let namespace = Namespace::create("api-one-sentence");
    for manifest in [
        with("spec/version", json!("banana")),
        without("spec/storage"),
        with("spec/storage", json!({})),
        with("spec/image/repository", json!("etcd:latest")),
        with("spec/etcd/heartbeatInterval", json!(20000)),
        with("spec/etcd/autoCompaction", json!({"mode": "Revision", "retention": "1h"})),
        with("spec/etcd/extraArgs", json!({"--name": "x"})),
        with("spec/recovery/memberReplacement/after", json!("soon")),
        with("spec/recovery/memberReplacement/after", json!(30)),
        with("spec/maintenance/corruptionCheck/interval", json!("9s")),
        with("spec/maintenance/corruptionCheck/interval", json!("often")),
    ] {
        let complaint = namespace.try_apply(&manifest.to_string()).expect_err(MUST_BE_REFUSED);
        assert!(!complaint.contains("\n* "), "kubectl lists several complaints: {complaint}");
    }
}

#[test]
fn cluster_needs_exactly_one_storage_kind() {
    let namespace = Namespace::create("api-storage");
    let ephemeral = |fields: Value| with("spec/storage", json!({"ephemeral": fields}));
    refuses(
        &namespace,
        [
            (without("spec/storage"), "or set spec.storage.ephemeral for a test"),
            (with("spec/storage", json!({})), "or set spec.storage.ephemeral for a test"),
            (
                with("spec/storage/ephemeral", json!({})),
                "spec.storage.volumeClaimTemplate and spec.storage.ephemeral cannot both be set",
            ),
            (ephemeral(json!({"sizeLimit": "big"})), "spec.storage.ephemeral.sizeLimit must be a size"),
            (ephemeral(json!({"sizeLimit": 0})), "spec.storage.ephemeral.sizeLimit must be a size"),
            (ephemeral(json!({"medium": "Tape"})), "\"Disk\", \"Memory\""),
            (with("spec/deletionPolicy", json!("Shred")), "\"KeepVolumes\", \"DeleteVolumes\""),
        ],
    );
    takes(
        &namespace,
        [
            ephemeral(json!({})),
            ephemeral(json!({"medium": "Memory", "sizeLimit": "100Mi"})),
            ephemeral(json!({"sizeLimit": 104857600})),
            with("spec/storage/ephemeral", Value::Null),
            with("spec/deletionPolicy", json!("DeleteVolumes")),
        ],
    );
}

#[test]
fn image_repository_must_have_no_tag() {
    let namespace = Namespace::create("api-image");
    let repository = |name: &str| with("spec/image/repository", json!(name));
    let tagged = "spec.image.repository must not have a tag or a digest";
    let malformed = "spec.image.repository must be the name of a repository";
    refuses(
        &namespace,
        [
            (repository("quay.io/coreos/etcd:v3.6.16"), tagged),
            (repository("etcd:latest"), tagged),
            (repository("localhost:5000/etcd:v3.6.16"), tagged),
            (repository(&format!("quay.io/coreos/etcd@sha256:{}", "a".repeat(64))), tagged),
            (repository("https://quay.io/coreos/etcd"), malformed),
            (repository("quay.io/CoreOS/etcd"), malformed),
            (repository("quay.io/coreos/etcd/"), malformed),
            (repository(""), malformed),
            (with("spec/image/pullPolicy", json!("Sometimes")), "\"Always\", \"IfNotPresent\", \"Never\""),
        ],
    );
    let good = ["quay.io/coreos/etcd", "etcd", "localhost:5000/etcd", "my-registry.example.com/a_b/c.d/e--f/etcd"];
    takes(&namespace, good.map(repository));
    takes(&namespace, ["Always", "IfNotPresent", "Never"].map(|policy| with("spec/image/pullPolicy", json!(policy))));
}

#[test]
fn pod_labels_must_be_valid_and_not_those_of_the_operator() {
    let namespace = Namespace::create("api-labels");
    let label = |name: &str, value: &str| with("spec/podTemplate/metadata/labels", json!({name: value}));
    let reserved = "spec.podTemplate.metadata.labels must not have app.kubernetes.io/name nor names that begin with";
    let malformed = "spec.podTemplate.metadata.labels must have names and values that Kubernetes takes";
    refuses(
        &namespace,
        [
            (label("etcd.improbable.io/cluster-name", "other"), reserved),
            (label("app.kubernetes.io/name", "other"), reserved),
            (label("team", "the storage team"), malformed),
            (label("team", &"a".repeat(64)), malformed),
            (label("the team", "storage"), malformed),
            (label(&"a".repeat(64), "storage"), malformed),
        ],
    );
    takes(
        &namespace,
        [
            label("team", "storage"),
            label("app.kubernetes.io/part-of", "a.b_c-D"),
            label("team", ""),
            label(&format!("example.com/{}", "a".repeat(63)), &"a".repeat(63)),
        ],
    );
}
