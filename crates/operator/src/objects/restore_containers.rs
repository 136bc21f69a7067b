//! The additional containers in the first pod of a cluster that is bootstrapped from a backup: one that fetches it, and
//! one that restores it with etcdutl.

use etcd_operator_api::{EtcdPeerSpec, PodTemplate, RestoreFrom};
use etcd_operator_core::cluster::plan::Start;
use etcd_operator_core::locations::of_source;
use etcd_operator_core::names::ClusterNames;
use etcd_operator_core::ordinal::Ordinal;
use etcd_operator_protocol::task::{Fetch, Find, Task};
use k8s_openapi::api::core::v1::{Container, EnvVar, Volume};

use super::containers::{
    GATE_MOUNT, Settings, data_mount, gate_environment, gate_mount, locked_down, pull_policy, variable,
};
use super::locations;

/// The names of the two containers.
pub const FETCH: &str = "fetch";
pub const RESTORE: &str = "restore";

/// A folder on the volume, so that the restored data is moved into place atomically.
const RESTORE_DIR: &str = "/var/lib/etcd/restore";
const SNAPSHOT: &str = "/var/lib/etcd/restore/snapshot.db";
const RESTORED: &str = "/var/lib/etcd/restore/data";

/// Revisions are bumped by more than any cluster writes between two backups, so that no client ever sees a revision
/// twice with different content.
const BUMP_REVISION: u64 = 1_000_000_000;

/// The member that the backup is restored to.
pub struct RestoreContainers<'a> {
    pub spec: &'a EtcdPeerSpec,
    pub template: &'a PodTemplate,
    pub names: &'a ClusterNames,
    pub ordinal: Ordinal,
    pub start: &'a Start,
    pub settings: &'a Settings,
}

impl RestoreContainers<'_> {
    /// Downloads the backup to the volume, and verifies it.
    pub fn fetch(&self, from: &RestoreFrom) -> Container {
        let task = Task::Fetch(Fetch {
            from: Find { from: of_source(from), sha256: from.sha256.clone() },
            file: SNAPSHOT.to_owned(),
            for_version: Some(self.spec.version.clone()),
        });
        let mut env = environment();
        env.extend(locations::environment(&task, from.credentials(), from.decryption.as_ref()));
        let mut mounts = vec![data_mount()];
        mounts.extend(from.persistent_volume_claim.as_ref().map(|_| locations::claim_mount(true)));
        Container {
            name: FETCH.to_owned(),
            image: Some(self.settings.agent_image.clone()),
            image_pull_policy: pull_policy(self.settings.pull_policy),
            command: Some(["/gate", "fetch", "--", "/agent"].map(str::to_owned).to_vec()),
            env: Some(env),
            resources: self.template.resources.clone(),
            security_context: Some(locked_down()),
            volume_mounts: Some(mounts),
            termination_message_policy: Some("File".to_owned()),
            ..Container::default()
        }
    }

    /// Creates a data dir from the backup, with the binaries of the version that will run on it.
    pub fn restore(&self) -> Container {
        let name = self.names.member_name(self.ordinal);
        let url = self.names.peer_url(self.ordinal);
        let flags = [
            ("data-dir", RESTORED.to_owned()),
            ("name", name.clone()),
            ("initial-cluster", format!("{name}={url}")),
            ("initial-cluster-token", self.start.bootstrap_token.clone().unwrap_or_default()),
            ("initial-advertise-peer-urls", url),
            ("bump-revision", BUMP_REVISION.to_string()),
            // Watches from an older revision are cancelled and must start again, as after any compaction.
            ("mark-compacted", "true".to_owned()),
        ];
        let flags = flags.map(|(flag, value)| format!("--{flag}={value}"));
        let command: Vec<String> = [&format!("{GATE_MOUNT}/gate"), "restore", "--", "/usr/local/bin/etcdutl"]
            .into_iter()
            .chain(["snapshot", "restore", SNAPSHOT])
            .map(str::to_owned)
            .chain(flags)
            .collect();
        Container {
            name: RESTORE.to_owned(),
            image: Some(self.spec.image(&self.settings.etcd_repository)),
            image_pull_policy: pull_policy(self.spec.pull_policy().or(self.settings.pull_policy)),
            command: Some(command),
            env: Some(environment()),
            resources: self.template.resources.clone(),
            security_context: Some(locked_down()),
            volume_mounts: Some(vec![data_mount(), gate_mount(Some(true))]),
            termination_message_policy: Some("File".to_owned()),
            ..Container::default()
        }
    }
}

/// The volume that the backup is on, if any.
pub fn source_volume(from: &RestoreFrom) -> Option<Volume> {
    from.persistent_volume_claim.as_ref().map(|claim| locations::claim_volume(&claim.claim_name, true))
}

/// Tells the gate that etcd must find the restored data.
pub fn restore_dir() -> EnvVar {
    variable("GATE_RESTORE_DIR", RESTORE_DIR)
}

fn environment() -> Vec<EnvVar> {
    gate_environment().into_iter().chain([restore_dir()]).collect()
}
