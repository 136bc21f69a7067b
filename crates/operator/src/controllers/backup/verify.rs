//! The Job that verifies a backup: it is fetched, restored by etcdutl, and opened by etcd itself, which is then queried
//! for its content. The result is stored beside the backup.

use std::time::Duration;

use etcd_operator_api::{EtcdBackup, Image, image, labels};
use etcd_operator_protocol::task::{Fetch, Find, Location, Task, Verify};
use serde_json::{Value, json};

use crate::controllers::agent_job::{self, AgentJob};
use crate::objects::locations;
use crate::objects::pod::{Settings, locked_down};

const SCRATCH: &str = "/scratch";
const SNAPSHOT: &str = "/scratch/snapshot.db";
const DATA: &str = "/scratch/data";
const ENDPOINT: &str = "http://127.0.0.1:2379";
/// More retries don't help.
const RETRIES: i32 = 1;
const DEADLINE: Duration = Duration::from_secs(3600);

/// `version` is that of the member that was backed up, and `image` specifies the source of its image.
pub fn agent_job(
    backup: &EtcdBackup,
    location: &Location,
    version: &str,
    image: Option<&Image>,
    settings: &Settings,
) -> AgentJob {
    let spec = &backup.spec;
    let template = spec.pod_template();
    let credentials = spec.destination.credentials();
    let from = Find { from: location.clone(), sha256: None };
    let for_version = Some(version.to_owned());
    let fetch = Task::Fetch(Fetch { from: from.clone(), file: SNAPSHOT.to_owned(), for_version });
    let compare = Task::Verify(Verify { from, endpoint: ENDPOINT.to_owned() });
    let decryption = spec.decryption.as_ref();
    let ours = |name: &str, task: &Task| agent_job::agent(name, task, credentials, decryption, &template, settings);
    let claim = spec.destination.persistent_volume_claim.as_ref();
    let image = image::name(image, version, &settings.etcd_repository);
    let etcdutl = json!(["/usr/local/bin/etcdutl", "snapshot", "restore", SNAPSHOT, format!("--data-dir={DATA}")]);
    let etcd = json!([
        "/usr/local/bin/etcd",
        format!("--data-dir={DATA}"),
        format!("--listen-client-urls={ENDPOINT}"),
        format!("--advertise-client-urls={ENDPOINT}"),
        "--listen-peer-urls=http://127.0.0.1:2380",
    ]);
    let mut etcd = of_etcd("etcd", &image, etcd, settings);
    // It is a sidecar of the last container, and terminates with it.
    etcd["restartPolicy"] = json!("Always");
    let mut volumes = vec![json!({"name": "scratch", "emptyDir": {}})];
    volumes.extend(claim.map(|claim| locations::claim_volume(&claim.claim_name, false)));
    let with_mounts = |mut container: Value, read_only: bool| {
        let mut mounts = vec![json!({"name": "scratch", "mountPath": SCRATCH})];
        mounts.extend(claim.map(|_| locations::claim_mount(read_only)));
        container["volumeMounts"] = json!(mounts);
        container
    };
    let parts = json!({
        "initContainers": [
            with_mounts(ours("fetch", &fetch), true),
            with_mounts(of_etcd("restore", &image, etcdutl, settings), true),
            with_mounts(etcd, true),
        ],
        // It stores the proof beside the backup.
        "containers": [with_mounts(ours(agent_job::AGENT, &compare), false)],
        "volumes": volumes,
    });
    AgentJob {
        name: agent_job::name_of("verify", backup),
        label: labels::BACKUP_NAME,
        pod: agent_job::pod(&template, credentials, parts),
        template,
        retries: RETRIES,
        deadline: DEADLINE,
    }
}

fn of_etcd(name: &str, image: &str, command: Value, settings: &Settings) -> Value {
    json!({
        "name": name,
        "image": image,
        "imagePullPolicy": settings.pull_policy,
        "command": command,
        "securityContext": locked_down(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    })
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
