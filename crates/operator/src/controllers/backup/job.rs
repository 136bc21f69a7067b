//! The Job that takes a backup.

use etcd_operator_api::{EtcdBackup, EtcdBackupSpec, labels};
use etcd_operator_core::backup::observed::JobKind;
use etcd_operator_protocol::task::{Backup, Task};

use crate::controllers::agent_job::{self, Access, AgentJob};
use crate::objects::containers::Settings;

pub fn agent_job_of(backup: &EtcdBackup, task: Backup, settings: &Settings) -> AgentJob {
    let spec = &backup.spec;
    let template = spec.pod_template();
    // What is written is encrypted with public keys.
    let access = Access { decryption: None, ..access_of(spec) };
    let task = Task::Backup(Box::new(task));
    AgentJob {
        name: agent_job::name_of(JobKind::Backup.prefix(), backup),
        label: labels::BACKUP_NAME,
        pod: agent_job::pod_of_agent(&task, access, false, &template, settings),
        template,
        retries: spec.backoff_limit,
        deadline: spec.active_deadline(),
    }
}

/// How the pods of a backup get at the place where it is stored.
pub fn access_of(spec: &EtcdBackupSpec) -> Access<'_> {
    Access {
        credentials: spec.destination.credentials(),
        decryption: spec.decryption.as_ref(),
        claim: spec.destination.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.as_str()),
    }
}
