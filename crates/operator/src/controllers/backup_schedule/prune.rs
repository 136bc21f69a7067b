//! Deletes the stored backups of a schedule, once its cluster is gone and if the spec says so.

use etcd_operator_api::{EtcdBackupSchedule, Variables, labels};
use etcd_operator_core::schedule::plan::Deletion;
use etcd_operator_protocol::task::{Location, Prune, Task};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::json;

use crate::controllers::agent_job::{self, AgentJob, Progress};
use crate::controllers::context::Context;
use crate::objects::locations;
use crate::objects::pod::Settings;
use crate::runtime::api_errors::ApiError;

/// The progress of the deletion, for the cluster that was observed last.
pub async fn observed(schedule: &EtcdBackupSchedule, context: &Context) -> Result<Deletion, ApiError> {
    let cluster = schedule.status.as_ref().and_then(|status| status.cluster_uid.as_ref());
    let Some(cluster) = cluster else { return Ok(Deletion::NotBegun) };
    let (name, namespace) = (name_of(schedule, cluster), schedule.namespace().unwrap_or_default());
    let state = agent_job::observe(&name, &namespace, context);
    Ok(match state.progress {
        Progress::NotBegun => match location_of_all(schedule) {
            Ok(_) => Deletion::NotBegun,
            Err(message) => Deletion::Impossible { message },
        },
        Progress::Running { trouble, .. } => Deletion::Runs { trouble },
        Progress::Done { done, .. } => {
            let pruned = done.pruned.unwrap_or_default();
            match pruned.problem {
                None => Deletion::Done { deleted: pruned.deleted },
                Some(problem) => Deletion::Failed { reason: "NotAllDeleted".to_owned(), message: problem },
            }
        }
        Progress::Failed { reason, message, .. } => Deletion::Failed { reason, message },
        Progress::NoReport => {
            agent_job::end(&name, &namespace, state.job, context).await?;
            Deletion::Runs { trouble: None }
        }
    })
}

pub async fn begin(schedule: &EtcdBackupSchedule, cluster: &str, context: &Context) -> Result<(), ApiError> {
    // Otherwise `observed` would have reported it.
    let Ok(below) = location_of_all(schedule) else { return Ok(()) };
    let whose = locations::identity_of(schedule, &context.client).await?;
    let task = Prune { below, schedule: whose, retention: None };
    agent_job_of(schedule, cluster, task, &context.settings).begin(schedule, context).await
}

pub fn agent_job_of(schedule: &EtcdBackupSchedule, cluster: &str, task: Prune, settings: &Settings) -> AgentJob {
    let spec = schedule.spec.backup_spec();
    let (template, credentials) = (spec.pod_template(), spec.destination.credentials());
    let claim = spec.destination.persistent_volume_claim.as_ref();
    let task = Task::Prune(task);
    let mut agent = agent_job::agent(agent_job::AGENT, &task, credentials, None, &template, settings);
    agent["volumeMounts"] = claim.map(|_| json!([locations::claim_mount(false)])).unwrap_or_default();
    let volumes = claim.map(|claim| json!([locations::claim_volume(&claim.claim_name, false)]));
    AgentJob {
        name: name_of(schedule, cluster),
        label: labels::BACKUP_SCHEDULE_NAME,
        pod: agent_job::pod(&template, credentials, json!({"containers": [agent], "volumes": volumes})),
        template,
        retries: spec.backoff_limit,
        deadline: spec.active_deadline(),
    }
}

/// Stops the deletion, if it runs: the remaining backups stay.
pub async fn stop(schedule: &EtcdBackupSchedule, context: &Context) -> Result<(), ApiError> {
    let cluster = schedule.status.as_ref().and_then(|status| status.cluster_uid.as_ref());
    let Some(cluster) = cluster else { return Ok(()) };
    let (name, namespace) = (name_of(schedule, cluster), schedule.namespace().unwrap_or_default());
    let job = agent_job::observe(&name, &namespace, context).job;
    agent_job::end(&name, &namespace, job, context).await
}

/// The name of the Job: there is one for each cluster.
fn name_of(schedule: &EtcdBackupSchedule, cluster: &str) -> String {
    let cluster: String = cluster.chars().take(7).collect();
    format!("{}-{cluster}", agent_job::name_of("prune", schedule))
}

/// The folder that contains all backups of the schedule, at any depth. The error is a sentence about a template that
/// can't be filled.
pub fn location_of_all(schedule: &EtcdBackupSchedule) -> Result<Location, String> {
    let spec = schedule.spec.backup_spec();
    let namespace = schedule.namespace().unwrap_or_default();
    let like = |name: &str, created: Timestamp| {
        let variables = Variables {
            name,
            namespace: &namespace,
            uid: name,
            created: &Time(created),
            cluster_name: spec.cluster_name.as_deref(),
        };
        locations::of_destination(&spec.destination, &variables)
    };
    // The common folder of two backups that differ in all variables.
    let (one, other) = (like("a", Timestamp::UNIX_EPOCH)?, like("b", Timestamp::MAX)?);
    Ok(Location { url: common_folder(&one.url, &other.url), ..one })
}

/// The part of two URLs up to the last `/` before they differ, with the query of the first.
fn common_folder(one: &str, other: &str) -> String {
    let (path, query) = one.split_once('?').map_or((one, None), |(path, query)| (path, Some(query)));
    let other = other.split('?').next().unwrap_or_default();
    let same: usize = path.chars().zip(other.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let folder = path[..same].rfind('/').map_or("", |slash| &path[..=slash]);
    query.map_or_else(|| folder.to_owned(), |query| format!("{folder}?{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_backups_are_below_the_part_that_has_nothing_of_one_of_them() {
        for (one, other, expected) in [
            ("s3://b/db/a.db", "s3://b/db/b.db", "s3://b/db/"),
            ("s3://b/a/x.db?region=eu", "s3://b/b/x.db?region=eu", "s3://b/?region=eu"),
            ("gs://b/db/same.db", "gs://b/db/same.db", "gs://b/db/"),
            ("file:///backups/19700101.db", "file:///backups/99991231.db", "file:///backups/"),
            ("az://b/ä-a", "az://b/ö-b", "az://b/"),
        ] {
            assert_eq!(common_folder(one, other), expected);
        }
    }

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
