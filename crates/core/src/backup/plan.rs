//! Decides what to do next about an EtcdBackup: a Job takes it, an optional second one verifies it.

use std::time::Duration;

use etcd_operator_api::{BackupPhase, BackupReason, EtcdBackup, EtcdBackupStatus, Image, JobFailureReason};
use etcd_operator_protocol::task::{Backup, Location};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observed::{JobKind, Observed, ObservedCluster, is_over};
use super::status::{failed, notices, proven, statements, taken};
use super::task::{Order, order};
use crate::agent_job::Progress;
use crate::conditions::conditions_after;
use crate::locations;
use crate::notice::Notice;

/// When to reconcile again for changes that no watch reports.
const WHILE_WAITING: Duration = Duration::from_secs(5);
const WHILE_RUNNING: Duration = Duration::from_secs(15);

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub step: Option<Step>,
    /// The status to write once the step is taken.
    pub status: EtcdBackupStatus,
    pub notices: Vec<Notice>,
    /// When to reconcile again, if nothing happens before.
    pub again: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    CreateBackupJob(Box<Backup>),
    /// `version` is that of the member that was backed up, and `image` specifies the source of its image.
    CreateVerifyJob {
        from: Location,
        version: String,
        image: Option<Image>,
    },
    /// The Job that was observed, and no later one of its name.
    DeleteJob {
        kind: JobKind,
        uid: Option<String>,
    },
}

pub fn plan(observed: &Observed) -> Plan {
    let backup = observed.backup;
    let before = backup.status.clone().unwrap_or_default();
    if is_over(backup) {
        return Plan { step: None, status: before, notices: Vec::new(), again: None };
    }
    let (step, after) = match JobKind::of(backup) {
        JobKind::Backup => take(observed, before.clone()),
        JobKind::Verify => verify(observed, before.clone()),
    };
    let status = dated(observed, &before, after);
    let notices = if status == before { Vec::new() } else { notices(&status) };
    Plan { step, notices, again: when_to_look_again(&status), status }
}

/// The next step of a backup that is not taken yet.
fn take(observed: &Observed, before: EtcdBackupStatus) -> (Option<Step>, EtcdBackupStatus) {
    let to_delete = job_to_delete(observed, JobKind::Backup);
    match &observed.job.progress {
        Progress::NotBegun => begin(observed, before),
        Progress::Running { attempts, trouble } => {
            let attempts = Some((*attempts).max(1));
            let phase = Some(BackupPhase::Running);
            (None, EtcdBackupStatus { phase, attempts, message: trouble.clone(), ..before })
        }
        Progress::Done { attempts, done } => {
            let before = EtcdBackupStatus { attempts: Some(*attempts), ..before };
            (None, taken(observed.backup, before, done.as_ref().clone()))
        }
        Progress::Failed { attempts, reason, message } => {
            let before = EtcdBackupStatus { attempts: Some(*attempts), ..before };
            (to_delete, failed(before, reason.clone(), message.clone()))
        }
        Progress::NoReport => (to_delete, before),
    }
}

fn begin(observed: &Observed, before: EtcdBackupStatus) -> (Option<Step>, EtcdBackupStatus) {
    match order(observed) {
        Order::Ready(task) => {
            let claim = observed.backup.spec.destination.persistent_volume_claim.as_ref();
            let started = before.start_time.clone().unwrap_or(Time(observed.now));
            let running = EtcdBackupStatus {
                phase: Some(BackupPhase::Running),
                start_time: Some(started),
                object_url: Some(locations::shown_url(&task.to, claim.map(|claim| claim.claim_name.as_str()))),
                reason: None,
                message: None,
                ..before
            };
            (Some(Step::CreateBackupJob(task)), running)
        }
        Order::Wait(why) if is_overdue(observed.backup, observed.now) => {
            (None, failed(before, BackupReason::ClusterNotReady, why))
        }
        Order::Wait(why) => {
            (None, EtcdBackupStatus { phase: Some(BackupPhase::Pending), message: Some(why), ..before })
        }
        Order::Impossible(why) => (None, failed(before, JobFailureReason::InvalidRequest, why)),
    }
}

/// Whether the backup has waited for longer than its deadline.
fn is_overdue(backup: &EtcdBackup, now: Timestamp) -> bool {
    let created = backup.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second());
    now.as_second() - created > backup.spec.active_deadline().as_secs().cast_signed()
}

/// The next step of a backup that was taken and is to be verified.
fn verify(observed: &Observed, before: EtcdBackupStatus) -> (Option<Step>, EtcdBackupStatus) {
    let to_delete = job_to_delete(observed, JobKind::Verify);
    match &observed.job.progress {
        Progress::NotBegun => match locations::of_backup(observed.backup) {
            Err(error) => {
                let reason = JobFailureReason::InvalidRequest.into();
                (None, proven(before, false, Some(reason), Some(error.to_string())))
            }
            Ok(from) => {
                let image = match &observed.cluster {
                    ObservedCluster::Present { image, .. } => image.clone(),
                    ObservedCluster::NotRead | ObservedCluster::Missing => None,
                };
                let version = before.etcd_version.clone().unwrap_or_default();
                (Some(Step::CreateVerifyJob { from, version, image }), before)
            }
        },
        Progress::Running { trouble, .. } => (None, EtcdBackupStatus { message: trouble.clone(), ..before }),
        Progress::Done { .. } => (None, proven(before, true, None, None)),
        Progress::Failed { reason, message, .. } => {
            (to_delete, proven(before, false, Some(reason.clone()), Some(message.clone())))
        }
        Progress::NoReport => (to_delete, before),
    }
}

fn job_to_delete(observed: &Observed, kind: JobKind) -> Option<Step> {
    let uid = observed.job.uid.clone();
    observed.job.progress.leaves_a_job_to_delete().then_some(Step::DeleteJob { kind, uid })
}

/// The status with its times and conditions.
fn dated(observed: &Observed, before: &EtcdBackupStatus, after: EtcdBackupStatus) -> EtcdBackupStatus {
    let generation = observed.backup.metadata.generation;
    let now = Time(observed.now);
    let conditions = conditions_after(&before.conditions, &statements(&after), generation, &now);
    let completion_time = if after.has_ended() { Some(now) } else { after.completion_time.clone() };
    EtcdBackupStatus { observed_generation: generation, completion_time, conditions, ..after }
}

fn when_to_look_again(status: &EtcdBackupStatus) -> Option<Duration> {
    match status.phase {
        Some(BackupPhase::Completed | BackupPhase::Failed) => None,
        Some(BackupPhase::Running | BackupPhase::Verifying) => Some(WHILE_RUNNING),
        Some(BackupPhase::Pending) | None => Some(WHILE_WAITING),
    }
}
