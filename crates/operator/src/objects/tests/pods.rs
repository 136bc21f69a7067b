//! The pods of members.

use etcd_operator_api::{EtcdPeer, PullPolicy};
use etcd_operator_core::cluster::observed::{ClusterId, DataState, ExpectedData, Identity, MemberId};
use etcd_operator_core::cluster::plan::Start;
use etcd_operator_core::ordinal::Ordinal;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::{assert_golden, full_pod_template, names, restore_from_s3, restore_from_volume};
use crate::objects::annotations::{LEARNER, VOTER};
use crate::objects::containers::{DATA_DIR, Settings, locked_down};
use crate::objects::pod::pod;

/// An EtcdPeer with this in its spec in addition.
fn peer(ordinal: Ordinal, more: Value) -> EtcdPeer {
    let storage = json!({"volumeClaimTemplate": {"resources": {"requests": {"storage": "8Gi"}}}});
    let mut spec = json!({"clusterName": "c", "version": "3.6.16", "storage": storage});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut peer = EtcdPeer::new(&names().member_name(ordinal), serde_json::from_value(spec).unwrap());
    peer.metadata.namespace = Some("n".into());
    peer.metadata.uid = Some(format!("uid-of-peer-{ordinal}"));
    peer
}

/// The first start of a member that bootstraps the cluster with others.
fn bootstrapping(members: u32) -> Start {
    Start {
        bootstrap_token: Some("token".into()),
        initial_cluster: Ordinal::first(members)
            .map(|ordinal| (names().member_name(ordinal), names().peer_url(ordinal)))
            .collect(),
        expected: ExpectedData { data: DataState::New, identity: None },
        serves_clients: true,
    }
}

/// The first start of a member that joins.
fn joining() -> Start {
    let identity = Identity { member_id: MemberId(0x8eca1236bfa86a0a), cluster_id: ClusterId(7) };
    Start {
        bootstrap_token: None,
        expected: ExpectedData { data: DataState::New, identity: Some(identity) },
        serves_clients: false,
        ..bootstrapping(2)
    }
}

fn settings(pull_policy: Option<PullPolicy>) -> Settings {
    Settings { agent_image: "operator:1".into(), etcd_repository: "gcr.io/etcd".into(), pull_policy }
}

fn voter(peer: &EtcdPeer, start: &Start) -> Pod {
    pod(peer, &names(), Ordinal(0), start, VOTER, &settings(None))
}

fn restored(from: Value) -> EtcdPeer {
    peer(Ordinal(0), json!({"bootstrap": {"initialClusterState": "New", "restore": from}}))
}

#[test]
fn pod_with_volume_mounts_its_claim() {
    assert_golden("pod-durable", &voter(&peer(Ordinal(0), json!({})), &bootstrapping(3)));
}

#[test]
fn pod_with_ephemeral_storage_has_an_empty_dir() {
    assert_golden("pod-ephemeral", &voter(&peer(Ordinal(0), json!({"storage": {"ephemeral": {}}})), &bootstrapping(1)));
    let in_memory = json!({"storage": {"ephemeral": {"medium": "Memory", "sizeLimit": "1Gi"}}, "version": "3.5.10"});
    assert_golden("pod-ephemeral-memory", &voter(&peer(Ordinal(0), in_memory), &bootstrapping(1)));
}

#[test]
fn pod_with_limit_of_cpu_sets_gomaxprocs() {
    let resources = json!({"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "2500m", "memory": "2Gi"}});
    assert_golden(
        "pod-resources",
        &voter(&peer(Ordinal(0), json!({"podTemplate": {"resources": resources}})), &bootstrapping(3)),
    );
}

#[test]
fn pod_of_joining_member_has_the_whole_pod_template() {
    let peer = peer(
        Ordinal(1),
        json!({
            "podTemplate": full_pod_template(),
            "image": {"repository": "registry.example.com/etcd", "pullPolicy": "Always"},
            "etcd": {"quotaBackendBytes": "4Gi", "extraArgs": {"max-txn-ops": "256"}},
        }),
    );
    let settings = settings(Some(PullPolicy::IfNotPresent));
    assert_golden("pod-full-template", &pod(&peer, &names(), Ordinal(1), &joining(), LEARNER, &settings));
}

#[test]
fn first_pod_of_restored_cluster_fetches_from_s3() {
    assert_golden("pod-restore-s3", &voter(&restored(restore_from_s3()), &bootstrapping(1)));
}

#[test]
fn first_pod_of_restored_cluster_fetches_from_a_volume() {
    assert_golden("pod-restore-volume", &voter(&restored(restore_from_volume()), &bootstrapping(1)));
}

#[test]
fn later_pod_of_restored_cluster_restores_nothing() {
    let identity = Identity { member_id: MemberId(0x8eca1236bfa86a0a), cluster_id: ClusterId(7) };
    let start = Start { expected: ExpectedData { data: DataState::Existing, identity: Some(identity) }, ..joining() };
    assert_golden("pod-restored-before", &voter(&restored(restore_from_s3()), &start));
}

/// The volume mount of a container for a volume.
fn mounted(container: &Value, volume: &str) -> Value {
    let mounts = container["volumeMounts"].as_array().unwrap();
    mounts.iter().find(|mount| mount["name"] == volume).unwrap().clone()
}

#[test]
fn etcd_never_starts_but_through_the_gate() {
    let pod = json!(voter(&peer(Ordinal(0), json!({})), &bootstrapping(3)));
    let (init, etcd) = (&pod["spec"]["initContainers"][0], &pod["spec"]["containers"][0]);
    assert_eq!(init["command"], json!(["/gate", "install", "/gate-bin"]));
    assert_eq!(etcd["command"], json!(["/gate-bin/gate", "run", "--", "/usr/local/bin/etcd"]));
    assert_eq!(mounted(init, "gate")["mountPath"], "/gate-bin");
    assert_eq!(mounted(etcd, "gate"), json!({"name": "gate", "mountPath": "/gate-bin", "readOnly": true}));
    assert_eq!(mounted(init, "etcd-data"), mounted(etcd, "etcd-data"));
    assert_eq!(etcd["env"], init["env"], "both are told the same");
    let expected: Vec<_> = init["env"].as_array().unwrap().iter().map(|variable| &variable["name"]).collect();
    assert_eq!(expected, ["GATE_DATA_DIR", "GATE_DATA", "GATE_MEMBER_ID", "GATE_CLUSTER_ID"]);
    assert!(etcd["args"].as_array().unwrap().contains(&json!(format!("--data-dir={DATA_DIR}"))));
}

#[test]
fn every_container_of_a_pod_is_locked_down() {
    let spec = &json!(voter(&restored(restore_from_s3()), &bootstrapping(1)))["spec"];
    assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
    let containers =
        [&spec["initContainers"], &spec["containers"]].map(|it| it.as_array().unwrap()).into_iter().flatten();
    for container in containers {
        assert_eq!(container["securityContext"], json!(locked_down()));
    }
}
