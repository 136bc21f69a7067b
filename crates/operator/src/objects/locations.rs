//! What a pod needs to access stored backups: variables, and the volume that they are on. Where they are is in
//! `etcd_operator_core::locations`.

use etcd_operator_api::{Credentials, Decryption};
use etcd_operator_core::locations::CLAIM_MOUNT;
use etcd_operator_protocol::task::{AGE_IDENTITY, TASK, Task};
use k8s_openapi::api::core::v1::{EnvVar, PersistentVolumeClaimVolumeSource, Volume, VolumeMount};

const CLAIM_VOLUME: &str = "backups";

/// The environment of a container that executes a task: the task itself, and the secrets that it needs.
pub fn environment(task: &Task, credentials: Option<&Credentials>, decryption: Option<&Decryption>) -> Vec<EnvVar> {
    // The types are ours and contain nothing that JSON can't represent.
    let task = serde_json::to_string(task).unwrap_or_default();
    let task = EnvVar { name: TASK.to_owned(), value: Some(task), value_from: None };
    let secrets = credentials.map(Credentials::variables).unwrap_or_default();
    let identity = decryption.map(|decryption| decryption.variable(AGE_IDENTITY));
    [task].into_iter().chain(secrets).chain(identity).collect()
}

pub fn claim_volume(claim: &str, read_only: bool) -> Volume {
    let claim = PersistentVolumeClaimVolumeSource { claim_name: claim.to_owned(), read_only: Some(read_only) };
    Volume { name: CLAIM_VOLUME.to_owned(), persistent_volume_claim: Some(claim), ..Volume::default() }
}

pub fn claim_mount(read_only: bool) -> VolumeMount {
    VolumeMount {
        name: CLAIM_VOLUME.to_owned(),
        mount_path: CLAIM_MOUNT.to_owned(),
        read_only: Some(read_only),
        ..VolumeMount::default()
    }
}
