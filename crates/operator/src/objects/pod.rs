//! The pod of a member: the gate, which looks at the data first, and etcd.

use std::collections::BTreeMap;

use etcd_operator_api::{EtcdPeer, EtcdPeerSpec, PodTemplate, PullPolicy};
use etcd_operator_core::cpu::gomaxprocs;
use etcd_operator_core::names::Place;
use etcd_operator_core::plan::Start;
use semver::Version;
use serde_json::{Value, json};

use super::annotations::{self, ROLE};
use super::{cluster_labels, member_labels, owned_by_peer};

/// What the operator was told about the pods of all clusters.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The image that holds the gate: the operator's own.
    pub agent_image: String,
    /// Where etcd's images come from, unless the cluster says otherwise.
    pub etcd_repository: String,
    /// When images are pulled, unless the cluster says otherwise.
    pub pull_policy: Option<PullPolicy>,
}

/// The user and group that everything in the pod runs as, and that owns the files on the volume.
const USER: i64 = 65532;
const VOLUME: &str = "etcd-data";
const MOUNT: &str = "/var/lib/etcd";
/// A folder on the volume rather than the volume itself: on a disk of its own that has a lost+found.
pub const DATA_DIR: &str = "/var/lib/etcd/data";
/// Health and metrics, without client certificates.
const METRICS_PORT: u16 = 2381;

pub fn pod(peer: &EtcdPeer, place: &Place, ordinal: u32, start: &Start, settings: &Settings) -> Value {
    let name = place.member_name(ordinal);
    let spec = &peer.spec;
    let template = spec.pod_template.clone().unwrap_or_default();
    let mut labels = template.labels();
    labels.extend(member_labels(&place.cluster, &name));
    labels.insert(ROLE.to_owned(), annotations::role(start.serves_clients).to_owned());
    let mut notes: BTreeMap<String, String> = template.annotations();
    notes.extend(annotations::of_told(start.told).into_iter().map(|(name, value)| (name.to_owned(), value)));
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": place.namespace,
            "labels": labels,
            "annotations": notes,
            "ownerReferences": owned_by_peer(peer),
        },
        "spec": {
            "hostname": name,
            "subdomain": place.cluster,
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
            "initContainers": [gate(&template, settings)],
            "containers": [etcd(spec, &template, place, ordinal, start, settings)],
            "volumes": [volume(spec, &name)],
            "affinity": affinity(&template, &place.cluster),
            "tolerations": template.tolerations,
            "nodeSelector": template.node_selector,
            "topologySpreadConstraints": template.topology_spread_constraints,
            "priorityClassName": template.priority_class_name,
            "imagePullSecrets": template.image_pull_secrets,
        },
    })
}

/// It reads what it was told from the pod's annotations, anew at every start of the pod.
fn gate(template: &PodTemplate, settings: &Settings) -> Value {
    let note = |variable: &str, annotation: &str| {
        json!({
            "name": variable,
            "valueFrom": {"fieldRef": {"fieldPath": format!("metadata.annotations['{annotation}']")}},
        })
    };
    json!({
        "name": "gate",
        "image": settings.agent_image,
        "imagePullPolicy": settings.pull_policy,
        "args": ["agent", "gate", "--data-dir", DATA_DIR],
        "env": [
            note("GATE_DATA", annotations::DATA),
            note("GATE_MEMBER_ID", annotations::MEMBER_ID),
            note("GATE_CLUSTER_ID", annotations::CLUSTER_ID),
        ],
        "resources": template.resources,
        "securityContext": locked_down(),
        "volumeMounts": [{"name": VOLUME, "mountPath": MOUNT}],
        // The message tells why a member may not start; the last lines of the log would do if it were lost.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    })
}

fn etcd(
    spec: &EtcdPeerSpec,
    template: &PodTemplate,
    place: &Place,
    ordinal: u32,
    start: &Start,
    settings: &Settings,
) -> Value {
    json!({
        "name": "etcd",
        "image": spec.image(&settings.etcd_repository),
        "imagePullPolicy": spec.pull_policy().or(settings.pull_policy),
        "command": ["/usr/local/bin/etcd"],
        "args": arguments(spec, place, ordinal, start),
        "env": environment(template),
        "ports": [
            {"name": "client", "containerPort": 2379},
            {"name": "peer", "containerPort": 2380},
            {"name": "metrics", "containerPort": METRICS_PORT},
        ],
        "resources": template.resources,
        "securityContext": locked_down(),
        "volumeMounts": [{"name": VOLUME, "mountPath": MOUNT}],
        // The member's own state. Asking for a quorum would make all members unready at once when it is lost.
        "readinessProbe": {
            "httpGet": {"path": readiness_path(&spec.version), "port": "metrics"},
            "periodSeconds": 2,
            "timeoutSeconds": 5,
            "failureThreshold": 3,
        },
    })
}

fn arguments(spec: &EtcdPeerSpec, place: &Place, ordinal: u32, start: &Start) -> Vec<String> {
    let members = start.initial_cluster.iter().map(|(name, url)| format!("{name}={url}"));
    let own = [
        ("name", place.member_name(ordinal)),
        ("data-dir", DATA_DIR.to_owned()),
        ("listen-client-urls", "http://0.0.0.0:2379".to_owned()),
        ("listen-peer-urls", "http://0.0.0.0:2380".to_owned()),
        ("listen-metrics-urls", format!("http://0.0.0.0:{METRICS_PORT}")),
        ("advertise-client-urls", place.client_url(ordinal)),
        ("initial-advertise-peer-urls", place.peer_url(ordinal)),
        ("initial-cluster", members.collect::<Vec<_>>().join(",")),
        ("initial-cluster-state", if start.founding.is_some() { "new" } else { "existing" }.to_owned()),
    ];
    let own = own.into_iter().map(|(flag, value)| (flag.to_owned(), value));
    let token = start.founding.iter().map(|token| ("initial-cluster-token".to_owned(), token.clone()));
    own.chain(token).chain(spec.etcd_flags()).map(|(flag, value)| format!("--{flag}={value}")).collect()
}

fn environment(template: &PodTemplate) -> Vec<Value> {
    let limits = template.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    let threads = limits.and_then(|limits| limits.get("cpu")).and_then(gomaxprocs);
    threads.map(|threads| json!({"name": "GOMAXPROCS", "value": threads.to_string()})).into_iter().collect()
}

/// `/livez` asks the member alone. Versions before 3.5.11 have no such path, and a question that comes close to it.
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

/// Members prefer different nodes, unless the user says where they should be.
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

fn locked_down() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]},
    })
}
