//! The pod of a member: the gate, which checks the data first, and etcd, which is started through the gate too.

use std::collections::BTreeMap;

use etcd_operator_api::{EtcdPeer, EtcdPeerSpec, PodTemplate, PullPolicy, RestoreFrom};
use etcd_operator_core::cluster::cpu::gomaxprocs;
use etcd_operator_core::cluster::plan::Start;
use etcd_operator_core::names::ClusterNames;
use semver::Version;
use serde_json::{Value, json};

use super::annotations::{self, ROLE};
use super::{cluster_labels, member_labels, owner_reference, restore_containers};

/// The operator's settings for the pods of all clusters.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The image that contains the gate: the operator's own.
    pub agent_image: String,
    /// The repository of etcd's images, unless the cluster's spec has one.
    pub etcd_repository: String,
    /// The pull policy of images, unless the cluster's spec has one.
    pub pull_policy: Option<PullPolicy>,
}

/// The user and group that everything in the pod runs as, and that owns the files on the volume.
pub const USER: i64 = 65532;
pub(super) const VOLUME: &str = "etcd-data";
pub(super) const MOUNT: &str = "/var/lib/etcd";
/// A folder on the volume rather than the volume itself: the root of a disk has a lost+found.
pub const DATA_DIR: &str = "/var/lib/etcd/data";
/// Where the gate copies itself to for the etcd container, whose image does not contain it.
pub(super) const GATE_VOLUME: &str = "gate";
pub(super) const GATE_MOUNT: &str = "/gate-bin";
/// Health and metrics, without client certificates.
const METRICS_PORT: u16 = 2381;

pub fn pod(
    peer: &EtcdPeer,
    names: &ClusterNames,
    ordinal: u32,
    start: &Start,
    role: &str,
    settings: &Settings,
) -> Value {
    let name = names.member_name(ordinal);
    let spec = &peer.spec;
    let template = spec.pod_template.clone().unwrap_or_default();
    let mut labels = template.labels();
    labels.extend(member_labels(&names.cluster, &name));
    labels.insert(ROLE.to_owned(), role.to_owned());
    let mut notes: BTreeMap<String, String> = template.annotations();
    // The copy of the gate is not data: it must not keep a node from being scaled down.
    notes.insert(annotations::EVICTABLE_VOLUMES.to_owned(), GATE_VOLUME.to_owned());
    notes.insert(annotations::IMAGE.to_owned(), spec.image(&settings.etcd_repository));
    notes.extend(
        annotations::of_expected_data(start.expected).into_iter().map(|(name, value)| (name.to_owned(), value)),
    );
    let mut init_containers = vec![gate(&template, settings)];
    let mut etcd = etcd(spec, &template, names, ordinal, start, settings);
    let mut volumes = vec![volume(spec, &name), gate_volume()];
    let restore = to_restore(spec, start);
    if let Some(from) = restore {
        let restore_containers =
            restore_containers::RestoreContainers { spec, template: &template, names, ordinal, start, settings };
        init_containers.extend([restore_containers.fetch(from), restore_containers.restore()]);
        volumes.extend(restore_containers::source_volume(from));
        // Without the backup, etcd would bootstrap a cluster without any data.
        restore_containers::say_that_it_restores(&mut etcd);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": names.namespace,
            "labels": labels,
            "annotations": notes,
            "ownerReferences": [owner_reference(peer)],
        },
        "spec": {
            "hostname": name,
            "subdomain": names.cluster,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": USER,
                "runAsGroup": USER,
                "fsGroup": USER,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "initContainers": init_containers,
            "containers": [etcd],
            "volumes": volumes,
            "serviceAccountName": restore.and_then(|it| it.credentials()?.service_account_name.clone()),
            "affinity": affinity(&template, &names.cluster),
            "tolerations": template.tolerations,
            "nodeSelector": template.node_selector,
            "topologySpreadConstraints": template.topology_spread_constraints,
            "priorityClassName": template.priority_class_name,
            "imagePullSecrets": template.image_pull_secrets,
        },
    })
}

/// The backup that a member restores, if it is the first of a cluster that is bootstrapped from one.
fn to_restore<'a>(spec: &'a EtcdPeerSpec, start: &Start) -> Option<&'a RestoreFrom> {
    start.bootstrap_token.as_ref()?;
    spec.bootstrap.as_ref()?.restore.as_ref()
}

/// Checks the data when the pod starts, so that etcd is never started if it may not, and copies itself.
fn gate(template: &PodTemplate, settings: &Settings) -> Value {
    json!({
        "name": "gate",
        "image": settings.agent_image,
        "imagePullPolicy": settings.pull_policy,
        "command": ["/gate", "install", GATE_MOUNT],
        "env": gate_environment(),
        "resources": template.resources,
        "securityContext": locked_down(),
        "volumeMounts": [{"name": VOLUME, "mountPath": MOUNT}, {"name": GATE_VOLUME, "mountPath": GATE_MOUNT}],
        // The message says why a member may not start; the last lines of the log are a fallback.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    })
}

/// The environment of the gate, in either container. The kubelet reads the annotations again whenever it starts a
/// container.
pub(super) fn gate_environment() -> Vec<Value> {
    let note = |variable: &str, annotation: &str| {
        json!({
            "name": variable,
            "valueFrom": {"fieldRef": {"fieldPath": format!("metadata.annotations['{annotation}']")}},
        })
    };
    vec![
        json!({"name": "GATE_DATA_DIR", "value": DATA_DIR}),
        note("GATE_DATA", annotations::DATA),
        note("GATE_MEMBER_ID", annotations::MEMBER_ID),
        note("GATE_CLUSTER_ID", annotations::CLUSTER_ID),
    ]
}

fn etcd(
    spec: &EtcdPeerSpec,
    template: &PodTemplate,
    names: &ClusterNames,
    ordinal: u32,
    start: &Start,
    settings: &Settings,
) -> Value {
    json!({
        "name": "etcd",
        "image": spec.image(&settings.etcd_repository),
        "imagePullPolicy": spec.pull_policy().or(settings.pull_policy),
        // Init containers don't run again when this one is restarted, so the gate checks the data here as well.
        "command": [format!("{GATE_MOUNT}/gate"), "run", "--", "/usr/local/bin/etcd"],
        "args": arguments(spec, names, ordinal, start),
        "env": environment(template),
        "ports": [
            {"name": "client", "containerPort": 2379},
            {"name": "peer", "containerPort": 2380},
            {"name": "metrics", "containerPort": METRICS_PORT},
        ],
        "resources": template.resources,
        "securityContext": locked_down(),
        "volumeMounts": [
            {"name": VOLUME, "mountPath": MOUNT},
            {"name": GATE_VOLUME, "mountPath": GATE_MOUNT, "readOnly": true},
        ],
        // Only what the gate writes: the truncated end of etcd's log could look like a message of the gate.
        "terminationMessagePolicy": "File",
        // The member's own state. Requiring a quorum would make all members unready at once when it is lost.
        "readinessProbe": {
            "httpGet": {"path": readiness_path(&spec.version), "port": "metrics"},
            "periodSeconds": 2,
            "timeoutSeconds": 5,
            "failureThreshold": 3,
        },
    })
}

fn arguments(spec: &EtcdPeerSpec, names: &ClusterNames, ordinal: u32, start: &Start) -> Vec<String> {
    let members = start.initial_cluster.iter().map(|(name, url)| format!("{name}={url}"));
    let own = [
        ("name", names.member_name(ordinal)),
        ("data-dir", DATA_DIR.to_owned()),
        ("listen-client-urls", "http://0.0.0.0:2379".to_owned()),
        ("listen-peer-urls", "http://0.0.0.0:2380".to_owned()),
        ("listen-metrics-urls", format!("http://0.0.0.0:{METRICS_PORT}")),
        ("advertise-client-urls", names.client_url(ordinal)),
        ("initial-advertise-peer-urls", names.peer_url(ordinal)),
        ("initial-cluster", members.collect::<Vec<_>>().join(",")),
        ("initial-cluster-state", if start.bootstrap_token.is_some() { "new" } else { "existing" }.to_owned()),
    ];
    let own = own.into_iter().map(|(flag, value)| (flag.to_owned(), value));
    let token = start.bootstrap_token.iter().map(|token| ("initial-cluster-token".to_owned(), token.clone()));
    own.chain(token).chain(spec.etcd_flags()).map(|(flag, value)| format!("--{flag}={value}")).collect()
}

fn environment(template: &PodTemplate) -> Vec<Value> {
    let limits = template.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    let threads = limits.and_then(|limits| limits.get("cpu")).and_then(gomaxprocs);
    let threads = threads.map(|threads| json!({"name": "GOMAXPROCS", "value": threads.to_string()}));
    gate_environment().into_iter().chain(threads).collect()
}

/// `/livez` checks the member alone. Versions before 3.5.11 lack it, but have a query that comes close to it.
fn readiness_path(version: &str) -> &'static str {
    let has_livez = Version::parse(version).is_ok_and(|version| version >= Version::new(3, 5, 11));
    if has_livez { "/livez" } else { "/health?serializable=true" }
}

fn volume(spec: &EtcdPeerSpec, name: &str) -> Value {
    match &spec.storage.ephemeral {
        Some(ephemeral) => json!({
            "name": VOLUME,
            "emptyDir": {"medium": ephemeral.medium.of_empty_dir(), "sizeLimit": ephemeral.size_limit},
        }),
        None => json!({"name": VOLUME, "persistentVolumeClaim": {"claimName": name}}),
    }
}

/// It contains one small file, which the init container writes.
fn gate_volume() -> Value {
    json!({"name": GATE_VOLUME, "emptyDir": {"sizeLimit": "16Mi"}})
}

/// Members prefer different nodes, unless the user specifies an affinity.
fn affinity(template: &PodTemplate, cluster: &str) -> Value {
    if let Some(affinity) = &template.affinity {
        return json!(affinity);
    }
    let term = json!({
        "labelSelector": {"matchLabels": cluster_labels(cluster)},
        "topologyKey": "kubernetes.io/hostname",
    });
    let preferred = json!([{"weight": 100, "podAffinityTerm": term}]);
    json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}})
}

pub fn locked_down() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]},
    })
}

#[cfg(test)]
mod tests {
    use etcd_operator_core::cluster::observed::{DataState, ExpectedData};

    use super::*;

    fn pod_of_an_initial_member() -> Value {
        let spec = json!({"clusterName": "c", "version": "3.6.16", "storage": {"ephemeral": {}}});
        let peer = EtcdPeer::new("c-0", serde_json::from_value(spec).unwrap());
        let names = ClusterNames { cluster: "c".into(), namespace: "n".into(), domain: "cluster.local".into() };
        let start = Start {
            bootstrap_token: Some("token".into()),
            initial_cluster: vec![("c-0".into(), names.peer_url(0))],
            expected: ExpectedData { data: DataState::New, identity: None },
            serves_clients: true,
        };
        let settings = Settings { agent_image: "operator".into(), etcd_repository: "etcd".into(), pull_policy: None };
        pod(&peer, &names, 0, &start, annotations::VOTER, &settings)
    }

    fn mounted(container: &Value, volume: &str) -> Value {
        let mounts = container["volumeMounts"].as_array().unwrap();
        mounts.iter().find(|mount| mount["name"] == volume).unwrap().clone()
    }

    #[test]
    fn etcd_never_starts_but_through_the_gate() {
        let pod = pod_of_an_initial_member();
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
    fn both_containers_are_locked_down() {
        let spec = &pod_of_an_initial_member()["spec"];
        assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
        for container in [&spec["initContainers"][0], &spec["containers"][0]] {
            assert_eq!(container["securityContext"], locked_down());
        }
    }
}
