//! The pod of a member: the gate, which checks the data first, and etcd, which is started through the gate too.

use std::collections::BTreeMap;

use etcd_operator_api::{EtcdPeer, EtcdPeerSpec, PodTemplate, RestoreFrom};
use etcd_operator_core::cluster::cpu::gomaxprocs;
use etcd_operator_core::cluster::plan::Start;
use etcd_operator_core::names::ClusterNames;
use etcd_operator_core::ordinal::Ordinal;
use k8s_openapi::api::core::v1::{
    Affinity, Container, ContainerPort, EmptyDirVolumeSource, EnvVar, HTTPGetAction, PersistentVolumeClaimVolumeSource,
    Pod, PodAffinityTerm, PodAntiAffinity, PodSpec, Probe, Volume, WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::ObjectMeta;
use semver::Version;

use super::annotations::{self, ROLE};
use super::containers::{
    DATA_DIR, GATE_MOUNT, GATE_VOLUME, Settings, VOLUME, data_mount, gate_environment, gate_mount, locked_down,
    pull_policy, unprivileged, variable,
};
use super::{cluster_labels, member_labels, owner_reference, restore_containers};

/// Health and metrics, without client certificates.
const METRICS_PORT: i32 = 2381;

pub fn pod(
    peer: &EtcdPeer,
    names: &ClusterNames,
    ordinal: Ordinal,
    start: &Start,
    role: &str,
    settings: &Settings,
) -> Pod {
    let name = names.member_name(ordinal);
    let spec = &peer.spec;
    let template = spec.pod_template();
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
        etcd.env.get_or_insert_default().push(restore_containers::restore_dir());
    }
    let metadata = ObjectMeta {
        name: Some(name.clone()),
        namespace: Some(names.namespace.clone()),
        labels: Some(labels(&template, names, &name, role)),
        annotations: Some(notes(spec, &template, start, settings)),
        owner_references: Some(vec![owner_reference(peer)]),
        ..ObjectMeta::default()
    };
    let spec = PodSpec {
        hostname: Some(name),
        subdomain: Some(names.cluster.clone()),
        restart_policy: Some("Always".to_owned()),
        termination_grace_period_seconds: Some(30),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        security_context: Some(unprivileged()),
        init_containers: Some(init_containers),
        containers: vec![etcd],
        volumes: Some(volumes),
        service_account_name: restore.and_then(|it| it.credentials()?.service_account_name.clone()),
        affinity: Some(affinity(&template, &names.cluster)),
        tolerations: Some(template.tolerations),
        node_selector: Some(template.node_selector),
        topology_spread_constraints: Some(template.topology_spread_constraints),
        priority_class_name: template.priority_class_name,
        image_pull_secrets: Some(template.image_pull_secrets),
        ..PodSpec::default()
    };
    Pod { metadata, spec: Some(spec), status: None }
}

fn labels(template: &PodTemplate, names: &ClusterNames, name: &str, role: &str) -> BTreeMap<String, String> {
    let mut labels = template.labels();
    labels.extend(member_labels(&names.cluster, name));
    labels.insert(ROLE.to_owned(), role.to_owned());
    labels
}

fn notes(spec: &EtcdPeerSpec, template: &PodTemplate, start: &Start, settings: &Settings) -> BTreeMap<String, String> {
    let mut notes = template.annotations();
    // The copy of the gate is not data: it must not keep a node from being scaled down.
    notes.insert(annotations::EVICTABLE_VOLUMES.to_owned(), GATE_VOLUME.to_owned());
    notes.insert(annotations::IMAGE.to_owned(), spec.image(&settings.etcd_repository));
    notes.extend(annotations::of_expected_data(start.expected));
    notes
}

/// The backup that a member restores, if it is the first of a cluster that is bootstrapped from one.
fn to_restore<'a>(spec: &'a EtcdPeerSpec, start: &Start) -> Option<&'a RestoreFrom> {
    start.bootstrap_token.as_ref()?;
    spec.bootstrap.as_ref()?.restore.as_ref()
}

/// Checks the data when the pod starts, so that etcd is never started if it may not, and copies itself.
fn gate(template: &PodTemplate, settings: &Settings) -> Container {
    Container {
        name: "gate".to_owned(),
        image: Some(settings.agent_image.clone()),
        image_pull_policy: pull_policy(settings.pull_policy),
        command: Some(["/gate", "install", GATE_MOUNT].map(str::to_owned).to_vec()),
        env: Some(gate_environment()),
        resources: template.resources.clone(),
        security_context: Some(locked_down()),
        volume_mounts: Some(vec![data_mount(), gate_mount(None)]),
        // The message says why a member may not start; the last lines of the log are a fallback.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        ..Container::default()
    }
}

fn etcd(
    spec: &EtcdPeerSpec,
    template: &PodTemplate,
    names: &ClusterNames,
    ordinal: Ordinal,
    start: &Start,
    settings: &Settings,
) -> Container {
    let gate = format!("{GATE_MOUNT}/gate");
    Container {
        name: "etcd".to_owned(),
        image: Some(spec.image(&settings.etcd_repository)),
        image_pull_policy: pull_policy(spec.pull_policy().or(settings.pull_policy)),
        // Init containers don't run again when this one is restarted, so the gate checks the data here as well.
        command: Some([&gate, "run", "--", "/usr/local/bin/etcd"].map(str::to_owned).to_vec()),
        args: Some(arguments(spec, names, ordinal, start)),
        env: Some(environment(template)),
        ports: Some(vec![port("client", 2379), port("peer", 2380), port("metrics", METRICS_PORT)]),
        resources: template.resources.clone(),
        security_context: Some(locked_down()),
        volume_mounts: Some(vec![data_mount(), gate_mount(Some(true))]),
        // Only what the gate writes: the truncated end of etcd's log could look like a message of the gate.
        termination_message_policy: Some("File".to_owned()),
        readiness_probe: Some(readiness(&spec.version)),
        ..Container::default()
    }
}

fn port(name: &str, port: i32) -> ContainerPort {
    ContainerPort { name: Some(name.to_owned()), container_port: port, ..ContainerPort::default() }
}

/// The member's own state. Requiring a quorum would make all members unready at once when it is lost.
fn readiness(version: &str) -> Probe {
    let get = HTTPGetAction {
        path: Some(readiness_path(version).to_owned()),
        port: IntOrString::String("metrics".to_owned()),
        ..HTTPGetAction::default()
    };
    Probe {
        http_get: Some(get),
        period_seconds: Some(2),
        timeout_seconds: Some(5),
        failure_threshold: Some(3),
        ..Probe::default()
    }
}

fn arguments(spec: &EtcdPeerSpec, names: &ClusterNames, ordinal: Ordinal, start: &Start) -> Vec<String> {
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

fn environment(template: &PodTemplate) -> Vec<EnvVar> {
    let limits = template.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    let threads = limits.and_then(|limits| limits.get("cpu")).and_then(gomaxprocs);
    let threads = threads.map(|threads| variable("GOMAXPROCS", threads.to_string()));
    gate_environment().into_iter().chain(threads).collect()
}

/// `/livez` checks the member alone. Versions before 3.5.11 lack it, but have a query that comes close to it.
fn readiness_path(version: &str) -> &'static str {
    let has_livez = Version::parse(version).is_ok_and(|version| version >= Version::new(3, 5, 11));
    if has_livez { "/livez" } else { "/health?serializable=true" }
}

fn volume(spec: &EtcdPeerSpec, name: &str) -> Volume {
    let mut volume = Volume { name: VOLUME.to_owned(), ..Volume::default() };
    match &spec.storage.ephemeral {
        Some(ephemeral) => {
            let (medium, size_limit) = (ephemeral.medium.of_empty_dir(), ephemeral.size_limit.clone());
            volume.empty_dir = Some(EmptyDirVolumeSource { medium, size_limit, ..Default::default() });
        }
        None => {
            let claim = PersistentVolumeClaimVolumeSource { claim_name: name.to_owned(), read_only: None };
            volume.persistent_volume_claim = Some(claim);
        }
    }
    volume
}

/// It contains one small file, which the init container writes.
fn gate_volume() -> Volume {
    let empty_dir = EmptyDirVolumeSource { size_limit: Some(Quantity("16Mi".to_owned())), ..Default::default() };
    Volume { name: GATE_VOLUME.to_owned(), empty_dir: Some(empty_dir), ..Volume::default() }
}

/// Members prefer different nodes, unless the user specifies an affinity.
fn affinity(template: &PodTemplate, cluster: &str) -> Affinity {
    if let Some(affinity) = &template.affinity {
        return affinity.clone();
    }
    let members = LabelSelector { match_labels: Some(cluster_labels(cluster)), match_expressions: None };
    let node = PodAffinityTerm {
        label_selector: Some(members),
        topology_key: "kubernetes.io/hostname".to_owned(),
        ..PodAffinityTerm::default()
    };
    let preferred = WeightedPodAffinityTerm { weight: 100, pod_affinity_term: node };
    let apart = PodAntiAffinity {
        preferred_during_scheduling_ignored_during_execution: Some(vec![preferred]),
        ..PodAntiAffinity::default()
    };
    Affinity { pod_anti_affinity: Some(apart), ..Affinity::default() }
}
