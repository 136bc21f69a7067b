//! The agent job that deletes the stored backups of a schedule, once its cluster is gone and if the spec says so.

use etcd_operator_api::{EtcdBackupSchedule, labels};
use etcd_operator_core::locations;
use etcd_operator_core::schedule::plan::Deletion;
use etcd_operator_protocol::task::{Prune, Task};
use jiff::Timestamp;
use kube::ResourceExt;

use crate::controllers::agent_job::{self, Access, AgentJob};
use crate::controllers::context::Context;
use crate::controllers::identity::identity_of;
use crate::objects::containers::Settings;
use crate::runtime::api_errors::ApiError;

/// The progress of the deletion, for the cluster that was observed last.
pub fn observe(schedule: &EtcdBackupSchedule, now: Timestamp, context: &Context) -> Deletion {
    let Some(name) = name_of_last(schedule) else { return Deletion::NotBegun };
    let job = agent_job::observe(&name, &schedule.namespace().unwrap_or_default(), now, context);
    Deletion::of(schedule, job.progress)
}

pub async fn begin(schedule: &EtcdBackupSchedule, cluster: &str, context: &Context) -> Result<(), ApiError> {
    // Otherwise the deletion would have been observed to be impossible.
    let Ok(below) = locations::of_all(schedule) else { return Ok(()) };
    let whose = identity_of(schedule, &context.client).await?;
    let task = Prune { below, schedule: whose, retention: None };
    agent_job::create(&agent_job_of(schedule, cluster, task, &context.settings), schedule, context).await
}

pub fn agent_job_of(schedule: &EtcdBackupSchedule, cluster: &str, task: Prune, settings: &Settings) -> AgentJob {
    let spec = schedule.spec.backup_spec();
    let template = spec.pod_template();
    let access = Access {
        credentials: spec.destination.credentials(),
        decryption: None,
        claim: spec.destination.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.as_str()),
    };
    AgentJob {
        name: name_of(schedule, cluster),
        label: labels::BACKUP_SCHEDULE_NAME,
        pod: agent_job::pod_of_agent(&Task::Prune(task), access, false, &template, settings),
        template,
        retries: spec.backoff_limit,
        deadline: spec.active_deadline(),
    }
}

/// Deletes the Job, if there is one: the remaining backups stay.
pub async fn stop(schedule: &EtcdBackupSchedule, context: &Context) -> Result<(), ApiError> {
    let Some(name) = name_of_last(schedule) else { return Ok(()) };
    let namespace = schedule.namespace().unwrap_or_default();
    let uid = agent_job::observe(&name, &namespace, Timestamp::now(), context).uid;
    agent_job::delete(&name, &namespace, uid, context).await
}

/// The name of the Job for the cluster that was observed last.
fn name_of_last(schedule: &EtcdBackupSchedule) -> Option<String> {
    let cluster = schedule.status.as_ref()?.cluster_uid.as_ref()?;
    Some(name_of(schedule, cluster))
}

/// The name of the Job: there is one for each cluster.
fn name_of(schedule: &EtcdBackupSchedule, cluster: &str) -> String {
    let cluster: String = cluster.chars().take(7).collect();
    format!("{}-{cluster}", agent_job::name_of("prune", schedule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_jobs_are_short_enough_and_differ_by_cluster() {
        let schedule = serde_json::json!({
            "apiVersion": "etcd.improbable.io/v1alpha1",
            "kind": "EtcdBackupSchedule",
            "metadata": {"name": "n".repeat(52), "namespace": "db", "uid": "5c1e8a07-e3a5-4c4e-8f60-1f3a3a9c21ce"},
            "spec": {"schedule": "@daily", "backupTemplate": {}},
        });
        let schedule: EtcdBackupSchedule = serde_json::from_value(schedule).unwrap();
        let name = name_of(&schedule, "0d5b3f1c-9f0e-4b8e-9b0e-2f6c1d7e8a90");
        assert!(name.len() <= 63, "{name}");
        assert_ne!(name, name_of(&schedule, "1d5b3f1c-9f0e-4b8e-9b0e-2f6c1d7e8a90"));
    }
}
