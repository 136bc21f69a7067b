//! The Job that reads a backup from one end to the other before it is restored.

use std::time::Duration;

use etcd_operator_api::{EtcdClusterSpec, EtcdRestore, JobPodTemplate, PodTemplate, RestoreFrom, labels};
use etcd_operator_core::locations;
use etcd_operator_protocol::task::{Find, Task};

use crate::controllers::agent_job::{self, Access, AgentJob};
use crate::objects::containers::Settings;

/// Reading a backup is retried a few times: the store may be unavailable for a moment.
const RETRIES: i32 = 3;
const DEADLINE: Duration = Duration::from_secs(3600);

pub fn name_of_check(restore: &EtcdRestore) -> String {
    agent_job::name_of("check", restore)
}

pub fn agent_job_of(restore: &EtcdRestore, from: &RestoreFrom, settings: &Settings) -> AgentJob {
    let task = Task::Check(Find { from: locations::of_source(from), sha256: from.sha256.clone() });
    let access = Access {
        credentials: from.credentials(),
        decryption: from.decryption.as_ref(),
        claim: from.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.as_str()),
    };
    let template = like_the_members(&restore.spec.cluster_template.spec);
    AgentJob {
        name: name_of_check(restore),
        label: labels::RESTORED_FROM,
        pod: agent_job::pod_of_agent(&task, access, true, &template, settings),
        template,
        retries: RETRIES,
        deadline: DEADLINE,
    }
}

/// The pod that reads the backup is scheduled like the members, and pulls its image as they do.
fn like_the_members(cluster: &EtcdClusterSpec) -> JobPodTemplate {
    let PodTemplate { metadata, tolerations, node_selector, priority_class_name, image_pull_secrets, .. } =
        cluster.pod_template().unwrap_or_default();
    JobPodTemplate {
        metadata,
        tolerations,
        node_selector,
        priority_class_name,
        image_pull_secrets,
        ..JobPodTemplate::default()
    }
}
