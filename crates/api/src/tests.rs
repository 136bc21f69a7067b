//! Tests of the types, and in `definitions` of the CustomResourceDefinitions that are generated from them.
//!
//! Whether the API server accepts the definitions, and what it says when a rule is broken, is tested against a real one.

mod backups;
mod definitions;

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Value, json};

use crate::{
    ClusterId, CompactionMode, DeletionPolicy, EtcdCluster, EtcdClusterSpec, EtcdClusterStatus, EtcdPeer, EtcdPeerSpec,
    EtcdPeerStatus, Medium, MemberId, PodTemplate, PullPolicy, all_crds,
};

const SAMPLE: &str = include_str!("../../../config/samples/etcd_v1alpha1_etcdcluster.yaml");
const FULL_SAMPLE: &str = include_str!("../../../config/samples/etcd_v1alpha1_etcdcluster_full.yaml");

fn cluster_spec(more: Value) -> EtcdClusterSpec {
    let mut spec = json!({
        "version": "3.6.16",
        "storage": {"volumeClaimTemplate": {"resources": {"requests": {"storage": "1Gi"}}}},
    });
    let fields = spec.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    serde_json::from_value(spec).unwrap()
}

fn on_nodes(label: &str) -> Value {
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": label, "operator": "Exists"}]}]
    }}})
}

/// The schema of a kind, as it is installed. They are large: all tests share them.
fn schema_of(kind: &str) -> Value {
    static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
        let schema = |crd: &CustomResourceDefinition| {
            serde_json::to_value(&crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema).unwrap()
        };
        all_crds().iter().map(|crd| (crd.spec.names.kind.clone(), schema(crd))).collect()
    });
    SCHEMAS[kind].clone()
}

fn property<'a>(schema: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(schema, |schema, name| {
        let found = &schema["properties"][name];
        assert!(!found.is_null(), "no {name} in {path:?}");
        found
    })
}

#[test]
fn cluster_sample_is_parsed() {
    let cluster: EtcdCluster = serde_saphyr::from_str(SAMPLE).unwrap();
    assert_eq!(cluster.metadata.name.as_deref(), Some("my-cluster"));
    assert_eq!(cluster.spec.replicas, 3);
    assert_eq!(cluster.spec.version, "3.6.16");
    assert!(!cluster.spec.storage.is_ephemeral());
    let claim = cluster.spec.storage.volume_claim_template.as_ref().unwrap();
    assert_eq!(claim.storage_class_name.as_deref(), Some("standard"));
    assert!(cluster.spec.affinity().unwrap().pod_anti_affinity.is_some());
}

#[test]
fn full_sample_is_parsed() {
    let cluster: EtcdCluster = serde_saphyr::from_str(FULL_SAMPLE).unwrap();
    let spec = cluster.spec;
    assert_eq!(spec.deletion_policy, DeletionPolicy::KeepVolumes);
    assert_eq!(spec.image("elsewhere"), "quay.io/coreos/etcd:v3.6.16");
    assert_eq!(spec.pull_policy(), Some(PullPolicy::IfNotPresent));
    let etcd = spec.etcd.clone().unwrap();
    assert_eq!(etcd.auto_compaction.unwrap().mode, CompactionMode::Periodic);
    let flags = spec.etcd_flags();
    let flags: Vec<(&str, &str)> = flags.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(
        flags,
        [
            ("auto-compaction-mode", "periodic"),
            ("auto-compaction-retention", "1h"),
            ("election-timeout", "2500"),
            ("heartbeat-interval", "500"),
            ("log-level", "warn"),
            ("max-txn-ops", "256"),
            ("quota-backend-bytes", "4294967296"),
            ("snapshot-count", "10000"),
        ]
    );
    let template = spec.pod_template().unwrap();
    assert_eq!(template.labels()["team"], "storage");
    assert_eq!(template.annotations().len(), 2);
    assert_eq!(template.tolerations.len(), 1);
    assert_eq!(template.topology_spread_constraints.len(), 1);
    assert_eq!(template.image_pull_secrets[0].name, "registry-credentials");
}

#[test]
fn full_sample_shows_the_defaults_of_recovery_and_maintenance() {
    let shown = serde_saphyr::from_str::<EtcdCluster>(FULL_SAMPLE).unwrap().spec;
    assert!(shown.recovery.is_some() && shown.maintenance.is_some());
    let default = cluster_spec(json!({}));
    assert_eq!(recovery_and_maintenance(&shown), recovery_and_maintenance(&default));
    assert!(FULL_SAMPLE.contains("\n  paused: false\n"));
}

/// The settings of recovery and maintenance, with defaults applied.
fn recovery_and_maintenance(spec: &EtcdClusterSpec) -> (bool, Option<Duration>, bool, Option<Duration>) {
    (spec.paused, spec.replace_after(), spec.defragments(), spec.compare_every())
}

#[test]
fn recovery_and_maintenance_are_on_unless_the_spec_turns_them_off() {
    let (five_minutes, ten_minutes) = (Duration::from_secs(300), Duration::from_secs(600));
    let default = (false, Some(five_minutes), true, Some(ten_minutes));
    for nothing_said in [
        json!({}),
        json!({"paused": false, "recovery": {}, "maintenance": {}}),
        json!({"recovery": {"memberReplacement": {}}, "maintenance": {"corruptionCheck": {}}}),
        json!({"recovery": null, "maintenance": {"autoDefragment": null, "corruptionCheck": {"interval": null}}}),
    ] {
        assert_eq!(recovery_and_maintenance(&cluster_spec(nothing_said.clone())), default, "{nothing_said}");
    }
    let everything_said = cluster_spec(json!({
        "paused": true,
        "recovery": {"memberReplacement": {"after": "30s"}},
        "maintenance": {"autoDefragment": false, "corruptionCheck": {"interval": "1h30m"}},
    }));
    assert_eq!(
        recovery_and_maintenance(&everything_said),
        (true, Some(Duration::from_secs(30)), false, Some(Duration::from_secs(5400)))
    );
}

#[test]
fn member_replacement_is_after_the_specified_time_or_never() {
    let replace_after = |after: Value| {
        let recovery = json!({"recovery": {"memberReplacement": {"after": after}}});
        cluster_spec(recovery).replace_after().map(|time| time.as_secs())
    };
    assert_eq!(["30s", "5m", "1h30m"].map(|after| replace_after(json!(after))), [Some(30), Some(300), Some(5400)]);
    for never in [json!(0), json!("0"), json!("0s"), json!("0h0m")] {
        assert_eq!(replace_after(never.clone()), None, "{never}");
    }
    // The API server refuses these. Should one arrive all the same, nobody is given up any sooner for it.
    for nonsense in [json!(30), json!(-1), json!("soon"), json!(""), json!("-5m")] {
        assert_eq!(replace_after(nonsense.clone()), Some(300), "{nonsense}");
    }
}

#[test]
fn corruption_check_has_the_specified_interval_or_is_off() {
    let compare_every = |interval: Value| {
        let maintenance = json!({"maintenance": {"corruptionCheck": {"interval": interval}}});
        cluster_spec(maintenance).compare_every().map(|time| time.as_secs())
    };
    assert_eq!(["10s", "1h"].map(|interval| compare_every(json!(interval))), [Some(10), Some(3600)]);
    for never in [json!(0), json!("0"), json!("0s")] {
        assert_eq!(compare_every(never.clone()), None, "{never}");
    }
    assert_eq!(compare_every(json!("often")), Some(600));
}

#[test]
fn defragmentation_is_on_by_default() {
    let defragments = |value: Value| cluster_spec(json!({"maintenance": {"autoDefragment": value}})).defragments();
    assert!(defragments(json!(true)));
    assert!(!defragments(json!(false)));
}

#[test]
fn quota_is_that_of_etcd_by_default() {
    let quota = |etcd: Value| cluster_spec(json!({"etcd": etcd})).quota();
    assert_eq!(cluster_spec(json!({})).quota(), 2 << 30);
    assert_eq!(quota(json!({})), 2 << 30);
    assert_eq!(quota(json!({"snapshotCount": 50})), 2 << 30);
    assert_eq!(quota(json!({"quotaBackendBytes": "16Mi"})), 16 << 20);
    assert_eq!(quota(json!({"quotaBackendBytes": "1.5Gi"})), 3 << 29);
    assert_eq!(quota(json!({"quotaBackendBytes": 2_000_000})), 2_000_000);
    // It is the very number that etcd is told.
    let told = cluster_spec(json!({"etcd": {"quotaBackendBytes": "4Gi"}}));
    assert_eq!(told.etcd_flags()["quota-backend-bytes"], told.quota().to_string());
    // A member keeps that of the spec which it was made from.
    let peer = |etcd: Value| -> EtcdPeerSpec {
        serde_json::from_value(json!({"clusterName": "c", "version": "3.6.16", "storage": {}, "etcd": etcd})).unwrap()
    };
    assert_eq!(peer(json!({})).quota(), 2 << 30);
    assert_eq!(peer(json!({"quotaBackendBytes": "16Mi"})).quota(), 16 << 20);
}

#[test]
fn full_sample_shows_every_option() {
    let sample: EtcdCluster = serde_saphyr::from_str(FULL_SAMPLE).unwrap();
    let sample = serde_json::to_value(sample.spec).unwrap();
    let schema = schema_of("EtcdCluster");
    for path in [
        vec![],
        vec!["etcd"],
        vec!["etcd", "autoCompaction"],
        vec!["image"],
        vec!["podTemplate"],
        vec!["upgrade"],
        vec!["recovery"],
        vec!["recovery", "memberReplacement"],
        vec!["maintenance"],
        vec!["maintenance", "corruptionCheck"],
    ] {
        let full_path: Vec<&str> = ["spec"].into_iter().chain(path.clone()).collect();
        let shown = path.iter().fold(&sample, |value, name| &value[name]);
        for name in property(&schema, &full_path)["properties"].as_object().unwrap().keys() {
            // One has two places, one is not written if it is false, and one is for an EtcdRestore to write.
            let unseen = path.is_empty() && ["affinity", "paused", "bootstrap"].contains(&name.as_str());
            assert!(unseen || !shown[name].is_null(), "{path:?} {name}");
        }
    }
}

#[test]
fn every_flag_with_a_field_is_in_the_list_of_refused_flags() {
    let everything = cluster_spec(json!({"etcd": {
        "quotaBackendBytes": "4Gi",
        "autoCompaction": {"mode": "Revision", "retention": "1000"},
        "heartbeatInterval": "100ms",
        "electionTimeout": 1000,
        "snapshotCount": 10000,
    }}));
    let flags = everything.etcd_flags();
    assert_eq!(flags["auto-compaction-mode"], "revision");
    let mut refused = crate::v1alpha1::validation::FLAGS_WITH_FIELDS;
    refused.sort_unstable();
    assert_eq!(flags.keys().collect::<Vec<_>>(), refused.iter().collect::<Vec<_>>());
}

#[test]
fn image_consists_of_repository_and_version() {
    assert_eq!(cluster_spec(json!({})).image("quay.io/coreos/etcd"), "quay.io/coreos/etcd:v3.6.16");
    let built = json!({"version": "3.6.16+fips.1", "image": {"repository": "localhost:5000/etcd"}});
    assert_eq!(cluster_spec(built).image("quay.io/coreos/etcd"), "localhost:5000/etcd:v3.6.16-fips.1");
}

#[test]
fn ephemeral_storage_is_on_disk_by_default() {
    let spec = cluster_spec(json!({"storage": {"ephemeral": {}}}));
    assert!(spec.storage.is_ephemeral());
    assert_eq!(spec.storage.ephemeral.unwrap().medium, Medium::Disk);
    assert_eq!(Medium::Disk.of_empty_dir(), None);
    assert_eq!(Medium::Memory.of_empty_dir().as_deref(), Some("Memory"));
}

#[test]
fn storage_has_a_size_and_an_optional_class() {
    let storage = |storage: Value| cluster_spec(json!({"storage": storage})).storage;
    let sized = |size: Value| storage(json!({"volumeClaimTemplate": {"resources": {"requests": {"storage": size}}}}));
    assert_eq!(sized(json!("1Gi")).size(), Some(1 << 30));
    assert_eq!(sized(json!("1024Mi")).size(), Some(1 << 30));
    assert_eq!(sized(json!(1_000_000)).size(), Some(1_000_000));
    assert_eq!(sized(json!("big")).size(), None);
    assert_eq!(sized(json!("1Gi")).class(), None);
    for no_size in [json!({"ephemeral": {"sizeLimit": "1Gi"}}), json!({"volumeClaimTemplate": {}})] {
        let storage = storage(no_size.clone());
        assert_eq!((storage.size(), storage.class()), (None, None), "{no_size}");
    }
    assert_eq!(storage(json!({"volumeClaimTemplate": {"storageClassName": "fast"}})).class(), Some("fast"));
}

#[test]
fn volume_migration_is_off_by_default() {
    let spec = cluster_spec(json!({}));
    assert!(!spec.storage.migrate);
    assert_eq!(serde_json::to_value(spec.storage).unwrap().get("migrate"), None);
    let migrating = cluster_spec(json!({"storage": {"volumeClaimTemplate": {}, "migrate": true}}));
    assert!(migrating.storage.migrate);
    assert_eq!(serde_json::to_value(migrating.storage).unwrap()["migrate"], true);
}

#[test]
fn backup_before_upgrade_is_parsed() {
    let backup_first = |upgrade: Value| cluster_spec(json!({"upgrade": upgrade})).upgrade.unwrap().backup_first;
    assert_eq!(cluster_spec(json!({})).upgrade, None);
    assert_eq!(backup_first(json!({})), None);
    assert_eq!([true, false].map(|value| backup_first(json!({"backupFirst": value}))), [Some(true), Some(false)]);
}

#[test]
fn status_is_serialized_with_ids_as_etcd_prints_them() {
    let written = json!({
        "replicas": 1,
        "readyReplicas": 1,
        "updatedReplicas": 1,
        "bootstrap": {"token": "t", "size": 3},
        "clusterID": "cdf818194e3a8c32",
        "leader": "c-0",
        "targetVersion": "3.6.16",
        "members": [{
            "name": "c-0", "id": "8e9e05c52164694d", "role": "Leader", "version": "3.6.16", "healthy": true, "dbSize": 20480,
            "volumeSize": "10Gi",
        }, {
            "name": "c-1", "id": "1", "role": "Voter", "healthy": false, "unhealthySince": "2026-11-15T22:42:05Z",
        }],
    });
    let status: EtcdClusterStatus = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(status.cluster_id(), Some(ClusterId(0xcdf8_1819_4e3a_8c32)));
    assert_eq!(status.member("c-0").unwrap().id(), Some(MemberId(0x8e9e_05c5_2164_694d)));
    assert_eq!(status.member("c-2"), None);
    assert_eq!(status.member("c-0").unwrap().volume_size.as_deref(), Some("10Gi"));
    assert_eq!((status.updated_replicas, status.target_version.as_deref()), (1, Some("3.6.16")));
    assert_eq!(serde_json::to_value(status).unwrap(), written);
    // One that was written before there were these fields is read all the same.
    let older: EtcdClusterStatus = serde_json::from_value(json!({"replicas": 3, "readyReplicas": 3})).unwrap();
    assert_eq!((older.updated_replicas, older.target_version), (0, None));

    let written = json!({
        "memberID": "1",
        "clusterID": "2",
        "serverVersion": "3.6.16",
        "started": true,
        "replacement": {"memberID": "3", "time": "2026-11-15T22:42:05Z", "count": 1, "reason": "its node is down"},
        "lastDefragmentation": {"time": "2026-11-15T22:42:05Z", "compactedRevision": 7},
    });
    let status: EtcdPeerStatus = serde_json::from_value(written.clone()).unwrap();
    assert_eq!((status.member_id(), status.cluster_id()), (Some(MemberId(1)), Some(ClusterId(2))));
    assert_eq!(serde_json::to_value(status).unwrap(), written);
}

#[test]
fn replicas_are_three_by_default() {
    assert_eq!(cluster_spec(json!({})).replicas, 3);
    assert_eq!(cluster_spec(json!({"replicas": 5})).replicas, 5);
    assert_eq!(property(&schema_of("EtcdCluster"), &["spec", "replicas"])["default"], 3);
}

#[test]
fn quantities_may_be_numbers() {
    let spec = cluster_spec(json!({
        "storage": {"volumeClaimTemplate": {"resources": {"requests": {"storage": 1073741824}}}},
        "podTemplate": {"resources": {"limits": {"cpu": 2}, "requests": {"cpu": 0.5}}},
    }));
    let claim = spec.storage.volume_claim_template.unwrap().resources.unwrap();
    assert_eq!(claim.requests.unwrap()["storage"], Quantity("1073741824".into()));
    let pod = spec.pod_template.unwrap().resources.unwrap();
    assert_eq!(pod.limits.unwrap()["cpu"], Quantity("2".into()));
    assert_eq!(pod.requests.unwrap()["cpu"], Quantity("0.5".into()));
}

#[test]
fn affinity_is_read_from_spec_and_pod_template() {
    let nowhere = cluster_spec(json!({}));
    assert_eq!(nowhere.affinity(), None);

    let in_spec = cluster_spec(json!({"affinity": on_nodes("a"), "podTemplate": {}}));
    let in_pod_template = cluster_spec(json!({"podTemplate": {"affinity": on_nodes("a")}}));
    assert!(in_spec.affinity().is_some());
    assert_eq!(in_spec.affinity(), in_pod_template.affinity());
    assert_eq!(in_spec.pod_template(), in_pod_template.pod_template());
    assert_eq!(nowhere.pod_template(), None);
    assert_eq!(cluster_spec(json!({"podTemplate": {}})).pod_template(), None);
    let labelled: PodTemplate = serde_json::from_value(json!({"metadata": {"labels": {"a": "b"}}})).unwrap();
    let both = cluster_spec(json!({"affinity": on_nodes("a"), "podTemplate": labelled})).pod_template().unwrap();
    assert_eq!((both.labels().len(), both.affinity.as_ref()), (1, in_spec.affinity()));
}

#[test]
fn absent_fields_are_not_serialized() {
    let spec = serde_json::to_value(cluster_spec(json!({}))).unwrap();
    let fields: Vec<&String> = spec.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["deletionPolicy", "replicas", "storage", "version"]);
}

#[test]
fn peer_with_bootstrap_survives_a_round_trip() {
    let peer = json!({
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdPeer",
        "metadata": {"name": "my-cluster-0"},
        "spec": {
            "clusterName": "my-cluster",
            "version": "3.6.16",
            "storage": {"volumeClaimTemplate": {"resources": {"requests": {"storage": "1Gi"}}}},
            "bootstrap": {
                "static": {"initialCluster": [{"name": "my-cluster-0", "host": "my-cluster-0.my-cluster"}]},
                "initialClusterState": "New",
            },
        },
    });
    let read: EtcdPeer = serde_json::from_value(peer.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), peer);
}
