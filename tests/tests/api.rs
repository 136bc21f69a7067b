//! EtcdCluster and EtcdPeer as the real API server serves them: what it takes, what it refuses and with which words,
//! and how the objects look to `kubectl`.

use std::time::Duration;

use e2e::{Namespace, checkout, eventually, is, kubectl, kubectl_with_input};
use serde_json::{Value, json};

/// A cluster with everything that must be there.
fn cluster() -> Value {
    json!({
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdCluster",
        "metadata": {"name": "c"},
        "spec": {
            "replicas": 3,
            "version": "3.6.16",
            "storage": {"volumeClaimTemplate": {"resources": {"requests": {"storage": "50Mi"}}}},
        },
    })
}

/// The cluster with one thing changed, given by its path.
fn with(path: &str, value: Value) -> Value {
    let mut changed = cluster();
    let (parent, field) = path.rsplit_once('/').unwrap();
    let mut place = &mut changed;
    for name in parent.split('/') {
        if place.get(name).is_none() {
            place[name] = json!({});
        }
        place = &mut place[name];
    }
    place[field] = value;
    changed
}

fn without(path: &str) -> Value {
    let mut changed = cluster();
    let (parent, field) = path.rsplit_once('/').unwrap();
    changed.pointer_mut(&format!("/{parent}")).unwrap().as_object_mut().unwrap().remove(field).unwrap();
    changed
}

#[test]
fn what_cannot_work_is_refused_with_a_sentence_that_names_the_field() {
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
        (with("metadata/name", json!("a".repeat(51))), "metadata.name must have at most 50 characters"),
        (with("spec/replica", json!(3)), "unknown field"),
    ];
    for (manifest, sentence) in refused {
        let complaint = namespace.try_apply(&manifest.to_string()).expect_err(&format!("{manifest} was accepted"));
        assert!(complaint.contains(sentence), "wanted: {sentence}\ngot: {complaint}");
    }
}

#[test]
fn one_mistake_gives_one_sentence() {
    let namespace = Namespace::create("api-one-sentence");
    for manifest in [with("spec/version", json!("banana")), without("spec/storage")] {
        let complaint = namespace.try_apply(&manifest.to_string()).unwrap_err();
        assert_eq!(
            complaint.matches("spec.").count() - complaint.matches("spec.storage.volume").count(),
            2,
            "{complaint}"
        );
    }
}

#[test]
fn documented_manifests_apply_as_written() {
    let namespace = Namespace::create("api-documented");
    let sample = std::fs::read_to_string(checkout().join("config/samples/etcd_v1alpha1_etcdcluster.yaml")).unwrap();
    namespace.try_apply(&sample).unwrap();

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
    for manifest in accepted {
        namespace.try_apply(&manifest.to_string()).unwrap_or_else(|complaint| panic!("{manifest}: {complaint}"));
    }
}

#[test]
fn defaults_columns_scale_and_selector() {
    let namespace = Namespace::create("api-columns");
    namespace.apply(&without("spec/replicas").to_string()).unwrap();
    assert_eq!(namespace.get("etcdcluster c")["spec"]["replicas"], 3, "three is the default");

    eventually("the operator reports", Duration::from_secs(20), || {
        let status = namespace.get("etcdcluster c")["status"].clone();
        is(status["observedGeneration"].as_i64(), Some(1))
    });
    let table = namespace.kubectl("get etcdclusters");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "READY", "DESIRED", "VERSION", "AVAILABLE", "AGE"]);
    assert_eq!(rows[1][..5], ["c", "0", "3", "3.6.16", "False"]);
    assert!(namespace.kubectl("get ec -o wide").contains("NoMembers"), "the reason is shown with -o wide");
    assert!(namespace.kubectl("get etcd").contains("etcdcluster.etcd.improbable.io/c"), "the category lists clusters");

    namespace.kubectl("scale etcdcluster c --replicas=5");
    assert_eq!(namespace.get("etcdcluster c")["spec"]["replicas"], 5);
    let path = "/apis/etcd.improbable.io/v1alpha1/namespaces/api-columns/etcdclusters/c/scale";
    let scale: Value = serde_json::from_str(&kubectl(&format!("get --raw {path}"))).unwrap();
    assert_eq!(scale["status"]["selector"], "app.kubernetes.io/name=etcd,etcd.improbable.io/cluster-name=c");
    let too_low = e2e::try_kubectl("--namespace api-columns scale etcdcluster c --replicas=0").unwrap_err();
    assert!(too_low.contains("spec.replicas must be at least 1"), "{too_low}");
}

#[test]
fn storage_and_peers_cannot_be_changed() {
    let namespace = Namespace::create("api-immutable");
    namespace.apply(&cluster().to_string()).unwrap();
    let bigger = with("spec/storage/volumeClaimTemplate/resources/requests/storage", json!("100Mi"));
    let complaint = namespace.apply(&bigger.to_string()).unwrap_err();
    assert!(complaint.contains("spec.storage cannot be changed"), "{complaint}");

    let mut peer = cluster();
    peer["kind"] = json!("EtcdPeer");
    peer["metadata"]["name"] = json!("c-0");
    peer["spec"].as_object_mut().unwrap().remove("replicas");
    peer["spec"]["clusterName"] = json!("c");
    peer["spec"]["bootstrap"] = json!({
        "static": {"initialCluster": [{"name": "c-0", "host": "c-0.c"}]},
        "initialClusterState": "New",
    });
    namespace.apply(&peer.to_string()).unwrap();
    assert!(namespace.kubectl("get etcdpeers").contains("CLUSTER"));
    peer["spec"]["version"] = json!("3.7.3");
    let complaint = namespace.apply(&peer.to_string()).unwrap_err();
    assert!(complaint.contains("spec of an EtcdPeer cannot be changed"), "{complaint}");
    peer["spec"]["bootstrap"]["initialClusterState"] = json!("Perhaps");
    let complaint =
        kubectl_with_input(&["--namespace", &namespace.0, "apply", "-f", "-"], &peer.to_string()).unwrap_err();
    assert!(complaint.contains("\"New\", \"Existing\""), "{complaint}");
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
        "etcdcluster.spec.affinity",
        "etcdcluster.status.members.id",
        "etcdcluster.status.conditions",
        "etcdpeer.spec.clusterName",
        "etcdpeer.spec.bootstrap",
        "etcdpeer.spec.bootstrap.static.initialCluster.host",
        "etcdpeer.status.serverVersion",
    ] {
        let text = kubectl(&format!("explain {field}"));
        assert!(!text.contains("<empty>"), "{field} has no description:\n{text}");
    }
}
