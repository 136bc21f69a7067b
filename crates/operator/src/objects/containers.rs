//! What the containers of several pods have in common: settings, users and mounts, and the environment of the gate.

use etcd_operator_api::PullPolicy;
use k8s_openapi::api::core::v1::{
    Capabilities, EnvVar, EnvVarSource, ObjectFieldSelector, PodSecurityContext, SeccompProfile, SecurityContext,
    VolumeMount,
};

use super::annotations;

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
const MOUNT: &str = "/var/lib/etcd";
/// A folder on the volume rather than the volume itself: the root of a disk has a lost+found.
pub const DATA_DIR: &str = "/var/lib/etcd/data";
/// Where the gate copies itself to for the etcd container, whose image does not contain it.
pub(super) const GATE_VOLUME: &str = "gate";
pub(super) const GATE_MOUNT: &str = "/gate-bin";

/// The environment of the gate, in either container. The kubelet reads the annotations again whenever it starts a
/// container.
pub(super) fn gate_environment() -> Vec<EnvVar> {
    let note = |variable: &str, annotation: &str| {
        let field_path = format!("metadata.annotations['{annotation}']");
        let field = ObjectFieldSelector { field_path, ..ObjectFieldSelector::default() };
        let source = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
        EnvVar { name: variable.to_owned(), value_from: Some(source), value: None }
    };
    vec![
        variable("GATE_DATA_DIR", DATA_DIR),
        note("GATE_DATA", annotations::DATA),
        note("GATE_MEMBER_ID", annotations::MEMBER_ID),
        note("GATE_CLUSTER_ID", annotations::CLUSTER_ID),
    ]
}

pub(super) fn variable(name: &str, value: impl Into<String>) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value.into()), value_from: None }
}

pub(super) fn pull_policy(policy: Option<PullPolicy>) -> Option<String> {
    policy.map(|policy| policy.as_str().to_owned())
}

pub(super) fn data_mount() -> VolumeMount {
    VolumeMount { name: VOLUME.to_owned(), mount_path: MOUNT.to_owned(), ..VolumeMount::default() }
}

pub(super) fn gate_mount(read_only: Option<bool>) -> VolumeMount {
    VolumeMount { name: GATE_VOLUME.to_owned(), mount_path: GATE_MOUNT.to_owned(), read_only, ..VolumeMount::default() }
}

/// How the pods run, of members and of agents.
pub fn unprivileged() -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(USER),
        run_as_group: Some(USER),
        fs_group: Some(USER),
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }),
        ..PodSecurityContext::default()
    }
}

/// How all containers run.
pub fn locked_down() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
        ..SecurityContext::default()
    }
}
