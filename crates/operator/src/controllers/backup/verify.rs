//! The Job that verifies a backup: it is fetched, restored by etcdutl, and opened by etcd itself, which is then queried
//! for its content. The result is stored beside the backup.

use std::time::Duration;

use etcd_operator_api::{EtcdBackup, Image, image, labels};
use etcd_operator_core::agent_job::AGENT;
use etcd_operator_core::backup::observed::JobKind;
use etcd_operator_protocol::task::{Fetch, Find, Location, Task, Verify};
use k8s_openapi::api::core::v1::{Container, EmptyDirVolumeSource, PodSpec, Volume, VolumeMount};

use super::job::access_of;
use crate::controllers::agent_job::{self, AgentJob};
use crate::objects::containers::{Settings, locked_down};
use crate::objects::locations;

const SCRATCH: &str = "/scratch";
const SCRATCH_VOLUME: &str = "scratch";
const SNAPSHOT: &str = "/scratch/snapshot.db";
const DATA: &str = "/scratch/data";
const ENDPOINT: &str = "http://127.0.0.1:2379";
/// More retries don't help.
const RETRIES: i32 = 1;
const DEADLINE: Duration = Duration::from_secs(3600);

/// `version` is that of the member that was backed up, and `image` specifies the source of its image.
pub fn agent_job_of(
    backup: &EtcdBackup,
    location: &Location,
    version: &str,
    image: Option<&Image>,
    settings: &Settings,
) -> AgentJob {
    let template = backup.spec.pod_template();
    let access = access_of(&backup.spec);
    let from = Find { from: location.clone(), sha256: None };
    let for_version = Some(version.to_owned());
    let fetch = Task::Fetch(Fetch { from: from.clone(), file: SNAPSHOT.to_owned(), for_version });
    let compare = Task::Verify(Verify { from, endpoint: ENDPOINT.to_owned() });
    let ours = |name: &str, task: &Task| agent_job::agent(name, task, access, &template, settings);
    let image = image::name(image, version, &settings.etcd_repository);
    let with_mounts = |container: Container, read_only: bool| {
        let scratch =
            VolumeMount { name: SCRATCH_VOLUME.to_owned(), mount_path: SCRATCH.to_owned(), ..VolumeMount::default() };
        let of_claim = access.claim.map(|_| locations::claim_mount(read_only));
        Container { volume_mounts: Some([scratch].into_iter().chain(of_claim).collect()), ..container }
    };
    let volumes = [scratch_volume()].into_iter().chain(access.claim.map(|it| locations::claim_volume(it, false)));
    let pod = PodSpec {
        init_containers: Some(vec![
            with_mounts(ours("fetch", &fetch), true),
            with_mounts(restore(&image, settings), true),
            with_mounts(etcd(&image, settings), true),
        ]),
        // It stores the proof beside the backup.
        containers: vec![with_mounts(ours(AGENT, &compare), false)],
        volumes: Some(volumes.collect()),
        ..agent_job::pod(&template, access)
    };
    AgentJob {
        name: agent_job::name_of(JobKind::Verify.prefix(), backup),
        label: labels::BACKUP_NAME,
        pod,
        template,
        retries: RETRIES,
        deadline: DEADLINE,
    }
}

fn scratch_volume() -> Volume {
    Volume { name: SCRATCH_VOLUME.to_owned(), empty_dir: Some(EmptyDirVolumeSource::default()), ..Volume::default() }
}

fn restore(image: &str, settings: &Settings) -> Container {
    let data_dir = format!("--data-dir={DATA}");
    of_etcd("restore", image, &["/usr/local/bin/etcdutl", "snapshot", "restore", SNAPSHOT, &data_dir], settings)
}

/// It is a sidecar of the last container, and terminates with it.
fn etcd(image: &str, settings: &Settings) -> Container {
    let command = [
        "/usr/local/bin/etcd",
        &format!("--data-dir={DATA}"),
        &format!("--listen-client-urls={ENDPOINT}"),
        &format!("--advertise-client-urls={ENDPOINT}"),
        "--listen-peer-urls=http://127.0.0.1:2380",
    ];
    Container { restart_policy: Some("Always".to_owned()), ..of_etcd("etcd", image, &command, settings) }
}

fn of_etcd(name: &str, image: &str, command: &[&str], settings: &Settings) -> Container {
    Container {
        name: name.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: settings.pull_policy.map(|policy| policy.as_str().to_owned()),
        command: Some(command.iter().map(|&word| word.to_owned()).collect()),
        security_context: Some(locked_down()),
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        ..Container::default()
    }
}

#[cfg(test)]
mod tests {
    use etcd_operator_protocol::retention::PROOF_TAKES_AT_MOST;

    use super::*;

    #[test]
    fn retention_leaves_a_backup_as_long_as_its_proof_may_take() {
        let tries = u32::try_from(RETRIES + 1).unwrap();
        assert!(DEADLINE * tries <= PROOF_TAKES_AT_MOST.unsigned_abs());
    }
}
