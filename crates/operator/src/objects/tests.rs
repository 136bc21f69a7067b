//! The objects as the API server gets them, one golden file each in `golden`. `UPDATE_GOLDEN=1` writes the files anew; the
//! difference is then what a change does to the clusters that exist.

use etcd_operator_core::ordinal::Ordinal;
mod pods;

use std::path::Path;

use etcd_operator_api::EtcdCluster;
use etcd_operator_core::cluster::observed::{Bootstrap, ClusterId, Identity, MemberId};
use etcd_operator_core::names::ClusterNames;
use serde::Serialize;
use serde_json::{Value, json};

use super::claim::claim;
use super::peer::{Recipe, peer};
use super::services::{client_service, disruption_budget, headless_service};

/// Compares an object with its golden file.
fn assert_golden(name: &str, object: &impl Serialize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/objects/golden/{name}.yaml"));
    let rendered = rendered(object);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return std::fs::write(&path, rendered).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(rendered == golden, "{} is another: UPDATE_GOLDEN=1 writes it anew. Now it is\n{rendered}", path.display());
}

/// An object as YAML, with its keys in order. Left out is what the API server drops: nulls, empty lists, and empty maps of
/// the fields below. Any other empty map says something (`emptyDir: {}`), and stays.
fn rendered(object: &impl Serialize) -> String {
    let object = tidied(serde_json::to_value(object).unwrap());
    format!("{}\n", serde_saphyr::to_string(&object).unwrap().trim_end())
}

const MAPS_THAT_MAY_BE_ABSENT: [&str; 3] = ["labels", "annotations", "nodeSelector"];

fn tidied(value: Value) -> Value {
    let is_dropped = |key: &str, value: &Value| match value {
        Value::Null => true,
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.is_empty() && MAPS_THAT_MAY_BE_ABSENT.contains(&key),
        _ => false,
    };
    match value {
        Value::Object(all) => {
            let mut all: Vec<_> = all.into_iter().filter(|(key, value)| !is_dropped(key, value)).collect();
            all.sort_by(|one, other| one.0.cmp(&other.0));
            all.into_iter().map(|(key, value)| (key, tidied(value))).collect()
        }
        Value::Array(all) => all.into_iter().map(tidied).collect(),
        other => other,
    }
}

fn names() -> ClusterNames {
    ClusterNames { cluster: "c".into(), namespace: "n".into(), domain: "cluster.local".into() }
}

/// A cluster with this in its spec in addition.
fn cluster(more: Value) -> EtcdCluster {
    let template = json!({"storageClassName": "fast", "resources": {"requests": {"storage": "8Gi"}}});
    let mut spec = json!({"replicas": 3, "version": "3.6.16", "storage": {"volumeClaimTemplate": template}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let metadata = json!({"name": "c", "namespace": "n", "uid": "uid-of-c"});
    let object = json!({
        "apiVersion": "etcd.improbable.io/v1alpha1", "kind": "EtcdCluster", "metadata": metadata, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

/// Everything that users may add to pods.
fn full_pod_template() -> Value {
    let zones = json!({
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"team": "storage"}},
    });
    let expression = json!({"key": "disk", "operator": "In", "values": ["ssd"]});
    let required = json!({"nodeSelectorTerms": [{"matchExpressions": [expression]}]});
    json!({
        "metadata": {"labels": {"team": "storage"}, "annotations": {"example.com/contact": "storage@example.com"}},
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "etcd", "effect": "NoSchedule"}],
        "nodeSelector": {"pool": "etcd"},
        "topologySpreadConstraints": [zones],
        "priorityClassName": "important",
        "imagePullSecrets": [{"name": "registry"}],
    })
}

fn restore_from_s3() -> Value {
    json!({
        "objectURL": "s3://bucket/backups/one.db",
        "sha256": "5".repeat(64),
        "credentials": {"s3": {"secretName": "keys"}, "serviceAccountName": "reader"},
        "s3": {"endpoint": "https://minio:9000", "region": "eu-west-1", "forcePathStyle": true},
        "decryption": {"age": {"identitySecretKeyRef": {"name": "age", "key": "identity"}}},
    })
}

fn restore_from_volume() -> Value {
    json!({"persistentVolumeClaim": {"claimName": "backups-of-c", "path": "/daily/one.db"}})
}

#[test]
fn peer_of_initial_member_lists_the_initial_cluster() {
    let cluster = cluster(json!({}));
    assert_golden("peer-initial", &peer(&cluster, &names(), Ordinal(1), Some(3), Recipe::of_cluster(&cluster)));
}

#[test]
fn peer_of_restored_cluster_names_the_backup() {
    let cluster = cluster(json!({"bootstrap": {"restore": restore_from_s3()}}));
    assert_golden("peer-initial-restore", &peer(&cluster, &names(), Ordinal(0), Some(1), Recipe::of_cluster(&cluster)));
}

#[test]
fn peer_of_joining_member_has_all_of_the_spec_but_no_backup() {
    let mut cluster = cluster(json!({
        "podTemplate": full_pod_template(),
        "image": {"repository": "registry.example.com/etcd", "pullPolicy": "Always"},
        "etcd": {"quotaBackendBytes": "4Gi", "extraArgs": {"max-txn-ops": "256"}},
        "bootstrap": {"restore": restore_from_s3()},
    }));
    let restart = (etcd_operator_api::labels::RESTART.to_owned(), "2026-11-18T07:00:00Z".to_owned());
    cluster.metadata.annotations = Some([restart].into());
    assert_golden("peer-joining", &peer(&cluster, &names(), Ordinal(3), None, Recipe::of_cluster(&cluster)));
}

#[test]
fn claim_of_initial_member_has_no_owner_but_the_bootstrap() {
    let cluster = cluster(json!({}));
    let template = cluster.spec.storage.volume_claim_template.clone().unwrap();
    let bootstrap = Bootstrap { token: "token".into(), size: 3 };
    assert_golden("claim-initial", &claim(&cluster, &template, "c-0", Some(&bootstrap), None));
}

#[test]
fn claim_of_joining_member_has_its_identity_and_with_delete_volumes_an_owner() {
    let cluster = cluster(json!({"deletionPolicy": "DeleteVolumes"}));
    let mut template = cluster.spec.storage.volume_claim_template.clone().unwrap();
    template.access_modes = Some(vec!["ReadWriteOncePod".into()]);
    let identity = Identity { member_id: MemberId(0x8eca1236bfa86a0a), cluster_id: ClusterId(7) };
    assert_golden("claim-joining", &claim(&cluster, &template, "c-3", None, Some(identity)));
}

#[test]
fn headless_service_publishes_all_members() {
    assert_golden("service-headless", &headless_service(&cluster(json!({}))));
}

#[test]
fn client_service_selects_the_voters() {
    assert_golden("service-client", &client_service(&cluster(json!({}))));
}

#[test]
fn disruption_budget_keeps_as_many_voters_as_it_is_told() {
    assert_golden("disruption-budget", &disruption_budget(&cluster(json!({"replicas": 5})), 3));
}
