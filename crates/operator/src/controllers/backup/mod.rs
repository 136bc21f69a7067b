//! The reconcile of an EtcdBackup: a Job takes it, an optional second one verifies it, and the status reports the
//! result.

pub mod verify;

use std::collections::BTreeSet;
use std::time::Duration;

use etcd_operator_api::{
    BackupPhase, Compression, EtcdBackup, EtcdBackupSchedule, EtcdBackupStatus, EtcdCluster, Retention,
    RetentionResult, Variables, Verify, labels,
};
use etcd_operator_core::conditions::{Statement, conditions_after};
use etcd_operator_core::names::ClusterNames;
use etcd_operator_protocol::manifest::{Manifest, Origin};
use etcd_operator_protocol::report::{Done, Pruned};
use etcd_operator_protocol::task::{self, Backup, Location, Task};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt};
use serde_json::json;

use super::agent_job::{self, AgentJob, Progress};
use super::backup_schedule::location_of_all;
use super::context::Context;
use crate::objects::locations;
use crate::objects::pod::Settings;
use crate::runtime::api_errors::ApiError;
use crate::runtime::status;

/// When to reconcile again for changes that no watch reports.
const WHILE_WAITING: Duration = Duration::from_secs(5);
const WHILE_RUNNING: Duration = Duration::from_secs(15);

pub async fn reconcile(backup: &EtcdBackup, context: &Context) -> Result<Action, ApiError> {
    let before = backup.status.clone().unwrap_or_default();
    if before.has_ended() || backup.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let mut after = match before.phase {
        Some(BackupPhase::Verifying) => go_on_verifying(backup, before.clone(), context).await?,
        _ => go_on(backup, before.clone(), context).await?,
    };
    let now = Time(jiff::Timestamp::now());
    after.observed_generation = backup.metadata.generation;
    if after.has_ended() {
        after.completion_time = Some(now.clone());
    }
    after.conditions = conditions_after(&before.conditions, &statements(&after), backup.metadata.generation, &now);
    if after != before {
        status::write(backup, &after, &context.client).await?;
        tell(backup, &after, context).await;
    }
    Ok(match after.phase {
        Some(BackupPhase::Completed | BackupPhase::Failed) => Action::await_change(),
        Some(BackupPhase::Running | BackupPhase::Verifying) => Action::requeue(WHILE_RUNNING),
        _ => Action::requeue(WHILE_WAITING),
    })
}

/// The next step of a backup that is not taken yet.
async fn go_on(backup: &EtcdBackup, before: EtcdBackupStatus, context: &Context) -> Result<EtcdBackupStatus, ApiError> {
    let (name, namespace) = (agent_job::name_of("backup", backup), backup.namespace().unwrap_or_default());
    let state = agent_job::observe(&name, &namespace, context);
    Ok(match state.progress {
        Progress::NotBegun => match order(backup, context).await? {
            Order::Ready(task) => {
                agent_job_of(backup, &task, &context.settings).begin(backup, context).await?;
                let started = before.start_time.clone().unwrap_or_else(|| Time(jiff::Timestamp::now()));
                let claim = backup.spec.destination.persistent_volume_claim.as_ref();
                EtcdBackupStatus {
                    phase: Some(BackupPhase::Running),
                    start_time: Some(started),
                    object_url: Some(locations::shown_url(&task.to, claim.map(|claim| claim.claim_name.as_str()))),
                    reason: None,
                    message: None,
                    ..before
                }
            }
            Order::Wait(why) if is_overdue(backup) => failed(before, "ClusterNotReady", why),
            Order::Wait(why) => EtcdBackupStatus { phase: Some(BackupPhase::Pending), message: Some(why), ..before },
            Order::Impossible(why) => failed(before, "InvalidRequest", why),
        },
        Progress::Running { attempts, trouble } => EtcdBackupStatus {
            phase: Some(BackupPhase::Running),
            attempts: Some(attempts.max(1)),
            message: trouble,
            ..before
        },
        Progress::Done { attempts, done } => {
            taken(backup, EtcdBackupStatus { attempts: Some(attempts), ..before }, *done)
        }
        Progress::Failed { attempts, reason, message } => {
            if reason == "PodCannotStart" {
                agent_job::end(&name, &namespace, state.job, context).await?;
            }
            failed(EtcdBackupStatus { attempts: Some(attempts), ..before }, &reason, message)
        }
        Progress::NoReport => {
            agent_job::end(&name, &namespace, state.job, context).await?;
            before
        }
    })
}

fn failed(before: EtcdBackupStatus, reason: &str, message: String) -> EtcdBackupStatus {
    EtcdBackupStatus {
        phase: Some(BackupPhase::Failed),
        reason: Some(reason.to_owned()),
        message: Some(message),
        ..before
    }
}

/// Whether the backup has waited for longer than its deadline.
fn is_overdue(backup: &EtcdBackup) -> bool {
    let created = backup.creation_timestamp().map_or(0, |time| time.0.as_second());
    let waited = jiff::Timestamp::now().as_second() - created;
    waited > backup.spec.active_deadline().as_secs().cast_signed()
}

/// The status of a backup that was taken.
fn taken(backup: &EtcdBackup, before: EtcdBackupStatus, done: Done) -> EtcdBackupStatus {
    let Some(manifest) = done.manifest else {
        return failed(before, "NoReport", "the pod did not say what it has backed up".to_owned());
    };
    let Manifest { revision, keys, etcd_version, cluster_id, member, with_quorum, .. } = manifest;
    let is_to_verify = backup.spec.verify == Verify::Restore;
    EtcdBackupStatus {
        phase: Some(if is_to_verify { BackupPhase::Verifying } else { BackupPhase::Completed }),
        revision: Some(revision),
        keys: Some(keys),
        etcd_version: Some(etcd_version),
        cluster_id: Some(cluster_id),
        member: Some(member),
        with_quorum: Some(with_quorum),
        snapshot_size: i64::try_from(manifest.snapshot_size).ok(),
        object_size: i64::try_from(manifest.object_size).ok(),
        sha256: Some(manifest.snapshot_sha256),
        retention: done.pruned.as_ref().map(retention_result),
        message: done.pruned.and_then(|pruned| pruned.problem),
        reason: None,
        ..before
    }
}

fn retention_result(pruned: &Pruned) -> RetentionResult {
    let number = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    RetentionResult {
        kept: number(pruned.kept),
        deleted: number(pruned.deleted),
        would_delete: pruned.would_delete.clone(),
    }
}

/// The next step of a backup that was taken and is to be verified.
async fn go_on_verifying(
    backup: &EtcdBackup,
    before: EtcdBackupStatus,
    context: &Context,
) -> Result<EtcdBackupStatus, ApiError> {
    let (name, namespace) = (agent_job::name_of("verify", backup), backup.namespace().unwrap_or_default());
    let state = agent_job::observe(&name, &namespace, context);
    let proven = |verified: bool, reason: Option<String>, message: Option<String>| EtcdBackupStatus {
        phase: Some(BackupPhase::Completed),
        verified: Some(verified),
        reason,
        message,
        ..before.clone()
    };
    Ok(match state.progress {
        Progress::NotBegun => {
            let location = match location_of(backup) {
                Ok(location) => location,
                Err(why) => return Ok(proven(false, Some("InvalidRequest".to_owned()), Some(why))),
            };
            let cluster = source_cluster(backup, context).await?;
            let image = cluster.as_ref().and_then(|cluster| cluster.spec.image.as_ref());
            let version = before.etcd_version.clone().unwrap_or_default();
            verify::agent_job(backup, &location, &version, image, &context.settings).begin(backup, context).await?;
            before
        }
        Progress::Running { trouble, .. } => EtcdBackupStatus { message: trouble, ..before },
        Progress::Done { .. } => proven(true, None, None),
        Progress::Failed { reason, message, .. } => {
            if reason == "PodCannotStart" {
                agent_job::end(&name, &namespace, state.job, context).await?;
            }
            proven(false, Some(reason), Some(message))
        }
        Progress::NoReport => {
            agent_job::end(&name, &namespace, state.job, context).await?;
            before
        }
    })
}

/// The task of the pod.
enum Order {
    Ready(Box<Backup>),
    /// The task is not known yet.
    Wait(String),
    /// The backup is impossible, for this reason.
    Impossible(String),
}

async fn order(backup: &EtcdBackup, context: &Context) -> Result<Order, ApiError> {
    let spec = &backup.spec;
    let to = match location_of(backup) {
        Ok(location) => location,
        Err(why) => return Ok(Order::Impossible(why)),
    };
    let endpoints = match (&spec.source, &spec.cluster_name) {
        (Some(source), _) => vec![source.cluster_url.clone()],
        (None, Some(name)) => {
            let Some(cluster) = source_cluster(backup, context).await? else {
                return Ok(Order::Wait(format!("waits for the EtcdCluster {name:?}, which does not exist")));
            };
            let endpoints = endpoints_of(&cluster, &context.domain);
            if endpoints.is_empty() {
                return Ok(Order::Wait(format!("waits for the EtcdCluster {name:?}, which has no members yet")));
            }
            endpoints
        }
        (None, None) => return Ok(Order::Impossible("neither spec.clusterName nor spec.source is set".to_owned())),
    };
    let namespace = backup.namespace().unwrap_or_default();
    let schedule = schedule_of(backup, context);
    let identity = match &schedule {
        Some(schedule) => Some(locations::identity_of(schedule, &context.client).await?),
        None => None,
    };
    let origin = Origin {
        backup: format!("{namespace}/{}", backup.name_any()),
        uid: backup.uid().unwrap_or_default(),
        cluster: spec.cluster_name.as_ref().map(|name| format!("{namespace}/{name}")),
        schedule: identity,
    };
    let is_to_verify = spec.verify == Verify::Restore;
    Ok(Order::Ready(Box::new(Backup {
        to,
        endpoints,
        compress: spec.compression == Compression::Zstd,
        recipients: spec.recipients().to_vec(),
        hash_keys: is_to_verify,
        origin,
        all_below: schedule.as_ref().and_then(|schedule| location_of_all(schedule).ok()),
        retention: schedule
            .and_then(|it| Some(retention_task(it.spec.retention.as_ref()?, &it.spec.time_zone, is_to_verify))),
    })))
}

pub fn agent_job_of(backup: &EtcdBackup, task: &Backup, settings: &Settings) -> AgentJob {
    let spec = &backup.spec;
    let template = spec.pod_template();
    let credentials = spec.destination.credentials();
    let claim = spec.destination.persistent_volume_claim.as_ref();
    let task = Task::Backup(Box::new(task.clone()));
    let mut agent = agent_job::agent(agent_job::AGENT, &task, credentials, None, &template, settings);
    agent["volumeMounts"] = claim.map(|_| json!([locations::claim_mount(false)])).unwrap_or_default();
    let volumes = claim.map(|claim| json!([locations::claim_volume(&claim.claim_name, false)]));
    let parts = json!({"containers": [agent], "volumes": volumes});
    AgentJob {
        name: agent_job::name_of("backup", backup),
        label: labels::BACKUP_NAME,
        pod: agent_job::pod(&template, credentials, parts),
        template,
        retries: spec.backoff_limit,
        deadline: spec.active_deadline(),
    }
}

/// Where the backup is stored. The error is a sentence about a template that can't be filled.
pub fn location_of(backup: &EtcdBackup) -> Result<Location, String> {
    let created = backup.creation_timestamp().unwrap_or(Time(jiff::Timestamp::UNIX_EPOCH));
    let variables = Variables {
        name: &backup.name_any(),
        namespace: &backup.namespace().unwrap_or_default(),
        uid: &backup.uid().unwrap_or_default(),
        created: &created,
        cluster_name: backup.spec.cluster_name.as_deref(),
    };
    locations::of_destination(&backup.spec.destination, &variables)
}

async fn source_cluster(backup: &EtcdBackup, context: &Context) -> Result<Option<EtcdCluster>, ApiError> {
    let Some(name) = &backup.spec.cluster_name else { return Ok(None) };
    let clusters: Api<EtcdCluster> = Api::namespaced(context.client.clone(), &backup.namespace().unwrap_or_default());
    clusters.get_opt(name).await.map_err(ApiError::doing(format!("reading the EtcdCluster {name:?}")))
}

/// The endpoints of a cluster's members, as etcd knows them. The agent finds out which of them are reachable.
fn endpoints_of(cluster: &EtcdCluster, domain: &str) -> Vec<String> {
    let names = ClusterNames {
        cluster: cluster.name_any(),
        namespace: cluster.namespace().unwrap_or_default(),
        domain: domain.to_owned(),
    };
    let members = cluster.status.iter().flat_map(|status| &status.members);
    let ordinals: BTreeSet<u32> = members.filter_map(|member| names.ordinal_of_name(&member.name)).collect();
    ordinals.into_iter().map(|ordinal| names.client_url(ordinal)).collect()
}

/// The schedule that created this backup, if one did and it still exists.
fn schedule_of(backup: &EtcdBackup, context: &Context) -> Option<EtcdBackupSchedule> {
    let owner = backup.owner_references().iter().find(|owner| owner.kind == "EtcdBackupSchedule")?;
    let schedule = context.caches.schedules.get(&backup.namespace()?, &owner.name)?;
    let schedule = schedule.0.as_ref().ok().filter(|schedule| schedule.uid().as_ref() == Some(&owner.uid));
    schedule.cloned()
}

fn retention_task(retention: &Retention, time_zone: &str, is_to_verify: bool) -> task::Retention {
    let days = retention.days_of_month.clone().unwrap_or_default();
    let rules = task::Retention {
        keep_last: retention.keep_last.unwrap_or_default(),
        keep_last_with_proofs: None,
        keep_days: retention.keep_days.unwrap_or_default(),
        keep_weeks: retention.keep_weeks.unwrap_or_default(),
        keep_months: retention.keep_months.unwrap_or_default(),
        keep_daily: retention.keep_daily.unwrap_or_default(),
        keep_weekly: retention.keep_weekly.unwrap_or_default(),
        keep_monthly: retention.keep_monthly.unwrap_or_default(),
        days_of_month: days.days,
        months: days.months,
        time_zone: time_zone.to_owned(),
        dry_run: retention.dry_run,
    };
    if is_to_verify && !rules.says_nothing() { with_one_before_the_unproven(rules) } else { rules }
}

/// The agent may be of an earlier version than the operator, which does not know about proofs. It must keep the backup
/// before one that is not verified yet: that may be the last good one.
fn with_one_before_the_unproven(rules: task::Retention) -> task::Retention {
    let keep_last = rules.keep_last;
    task::Retention { keep_last: keep_last.max(2), keep_last_with_proofs: Some(keep_last), ..rules }
}

fn statements(status: &EtcdBackupStatus) -> Vec<Statement> {
    let message = status.message.clone().unwrap_or_default();
    let reason = status.reason.as_deref();
    let url = status.object_url.as_deref().unwrap_or_default();
    let revision = status.revision.unwrap_or_default();
    let complete = match status.phase {
        Some(BackupPhase::Completed) => {
            Statement::yes("Complete", "Completed", format!("everything up to revision {revision} is in {url}"))
        }
        Some(BackupPhase::Failed) => Statement::no("Complete", reason.unwrap_or("Failed"), message.clone()),
        Some(BackupPhase::Running | BackupPhase::Verifying) => Statement::no("Complete", "Running", message.clone()),
        Some(BackupPhase::Pending) | None => Statement::no("Complete", "Pending", message.clone()),
    };
    // For clients that wait for either: Complete may become true at any time until this does.
    let failed = (status.phase == Some(BackupPhase::Failed))
        .then(|| Statement::yes("Failed", reason.unwrap_or("Failed"), message.clone()));
    let verified = status.verified.map(|verified| match verified {
        true => Statement::yes("Verified", "Restored", "it was restored, and the restored data matches"),
        false => Statement::no("Verified", reason.unwrap_or("Failed"), message),
    });
    let member = status.member.as_deref().unwrap_or_default();
    let quorum = (status.with_quorum == Some(false)).then(|| {
        let message =
            format!("no quorum of the members answered; this is the data of {member}; newer writes may be missing");
        Statement::yes("QuorumLost", "SurvivingMember", message)
    });
    [complete].into_iter().chain(failed).chain(verified).chain(quorum).collect()
}

async fn tell(backup: &EtcdBackup, status: &EtcdBackupStatus, context: &Context) {
    let message = status.message.clone().unwrap_or_default();
    let url = status.object_url.clone().unwrap_or_default();
    let name = backup.name_any();
    match (status.phase, status.verified) {
        (Some(BackupPhase::Failed), _) => context.events.failed(backup, "BackupFailed", message).await,
        (Some(BackupPhase::Completed), Some(false)) => {
            context.events.failed(backup, "BackupNotVerified", message).await;
        }
        (Some(BackupPhase::Completed), verified) => {
            let proven = if verified.is_some() { ", and restored to prove it" } else { "" };
            let note = format!("Backed up to {url}{proven}");
            context.events.done(backup, "BackupSucceeded", &name, note).await;
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_that_know_nothing_of_proofs_keep_the_backup_before_an_unproven_one() {
        let sent = |retention: serde_json::Value, is_to_verify: bool| {
            let retention: Retention = serde_json::from_value(retention).unwrap();
            let task = json!(retention_task(&retention, "UTC", is_to_verify));
            (task["keepLast"].clone(), task.get("keepLastWithProofs").cloned())
        };
        assert_eq!(sent(json!({"keepLast": 1}), true), (json!(2), Some(json!(1))));
        assert_eq!(sent(json!({"keepDays": 7}), true), (json!(2), Some(json!(0))));
        assert_eq!(sent(json!({"keepLast": 5}), true), (json!(5), Some(json!(5))));
        assert_eq!(sent(json!({"keepLast": 1}), false), (json!(1), None));
        assert_eq!(sent(json!({"dryRun": true}), true), (json!(0), None), "without rules nothing may go");
    }
}
