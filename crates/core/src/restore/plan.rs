//! Decides what to do next about an EtcdRestore: nothing if its cluster or claims of it exist already; a Job that reads
//! the backup; then, once that is done, the EtcdCluster. From then on it only reports.

use std::time::Duration;

use etcd_operator_api::{EtcdBackup, EtcdCluster, EtcdRestoreStatus, RestoreFrom, RestorePhase, RestoreReason};
use etcd_operator_protocol::report::Done;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::cluster::cluster_to_create;
use super::observed::{Observed, ObservedCluster, is_over};
use super::source::{Source, source_of};
use super::status::{
    checking, cluster_deleted, cluster_exists, created, failed, growing, known, notices, statements, volumes_exist,
};
use super::version::version_for;
use crate::agent_job::Progress;
use crate::conditions::conditions_after;
use crate::notice::Notice;

/// When to reconcile again for changes that no watch reports.
const WHILE_SCALING_UP: Duration = Duration::from_secs(30);
const WHILE_CHECKING: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub step: Option<Step>,
    /// The status to write once the step is taken.
    pub status: EtcdRestoreStatus,
    pub notices: Vec<Notice>,
    /// When to reconcile again, if nothing happens before.
    pub again: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The Job that reads the backup from here, from one end to the other.
    CreateCheckJob(Box<RestoreFrom>),
    /// The Job that was observed, and no later one of its name.
    DeleteCheckJob {
        uid: Option<String>,
    },
    CreateCluster(Box<EtcdCluster>),
}

/// Why the API server did not create the EtcdCluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotCreated {
    /// There is one by now. The next reconcile finds out whether it belongs to this EtcdRestore.
    Exists,
    /// It will never be, for this reason.
    Refused(String),
}

/// What to do now, and what to report then.
type Next = (Option<Step>, EtcdRestoreStatus);

pub fn plan(observed: &Observed) -> Plan {
    let before = observed.restore.status.clone().unwrap_or_default();
    if is_over(observed.restore) {
        return Plan { step: None, status: before, notices: Vec::new(), again: None };
    }
    completed(observed, next(observed))
}

/// What follows if the cluster was to be created, and was not.
pub fn plan_without_cluster(observed: &Observed, why: NotCreated) -> Plan {
    let known = match source(observed) {
        Source::Known(from) => checking(known(observed), &from),
        Source::Awaited(_) | Source::None { .. } => known(observed),
    };
    let status = match why {
        NotCreated::Exists => known,
        NotCreated::Refused(message) => failed(known, RestoreReason::ClusterRefused, message),
    };
    completed(observed, (None, status))
}

fn next(observed: &Observed) -> Next {
    let known = known(observed);
    let name = &observed.restore.spec.cluster_template.cluster_name;
    match &observed.cluster {
        ObservedCluster::Ours(cluster) => (None, growing(known, cluster, checked(observed))),
        ObservedCluster::Another => (None, failed(known, RestoreReason::ClusterExists, cluster_exists(name))),
        ObservedCluster::Deleted => (None, failed(known, RestoreReason::ClusterDeleted, cluster_deleted(name))),
        ObservedCluster::Claims(names) => (None, failed(known, RestoreReason::VolumesExist, volumes_exist(names))),
        ObservedCluster::Nothing { .. } => match source(observed) {
            Source::Known(from) => check(observed, known, *from),
            Source::Awaited(why) => {
                (None, EtcdRestoreStatus { phase: Some(RestorePhase::Pending), progress: Some(why), ..known })
            }
            Source::None { reason, message } => (None, failed(known, reason, message)),
        },
    }
}

fn source(observed: &Observed) -> Source {
    let backup: Option<&EtcdBackup> = match &observed.cluster {
        ObservedCluster::Nothing { backup } => backup.as_deref(),
        _ => None,
    };
    source_of(&observed.restore.spec.source, backup)
}

/// The result of reading the backup, as long as it is known.
fn checked<'a>(observed: &'a Observed) -> Option<&'a Done> {
    match &observed.check.progress {
        Progress::Done { done, .. } => Some(done),
        _ => None,
    }
}

/// The next step before the cluster exists, and nothing is in its way.
fn check(observed: &Observed, known: EtcdRestoreStatus, from: RestoreFrom) -> Next {
    let checking = checking(known, &from);
    let uid = observed.check.uid.clone();
    let to_delete = observed.check.progress.leaves_a_job_to_delete().then_some(Step::DeleteCheckJob { uid });
    match &observed.check.progress {
        Progress::NotBegun => (Some(Step::CreateCheckJob(Box::new(from))), checking),
        Progress::Running { trouble, .. } => (None, EtcdRestoreStatus { message: trouble.clone(), ..checking }),
        Progress::Failed { reason, message, .. } => (to_delete, failed(checking, reason.clone(), message.clone())),
        Progress::NoReport => (to_delete, checking),
        Progress::Done { done, .. } => create(observed, checking, from, done),
    }
}

/// The cluster is created, now that the backup is known to be complete.
fn create(observed: &Observed, checking: EtcdRestoreStatus, from: RestoreFrom, done: &Done) -> Next {
    let restore = observed.restore;
    match version_for(&restore.spec.cluster_template.spec.version, done.manifest.as_ref()) {
        Err(error) => (None, failed(checking, RestoreReason::WrongVersion, error.to_string())),
        Ok(version) => {
            let cluster = cluster_to_create(restore, from, version.clone(), done);
            (Some(Step::CreateCluster(Box::new(cluster))), created(checking, version, done))
        }
    }
}

/// The plan, with the times and conditions of the status.
fn completed(observed: &Observed, (step, after): Next) -> Plan {
    let before = observed.restore.status.clone().unwrap_or_default();
    let generation = observed.restore.metadata.generation;
    let now = Time(observed.now);
    let conditions = conditions_after(&before.conditions, &statements(&after), generation, &now);
    let completion_time = if after.has_ended() { Some(now) } else { after.completion_time.clone() };
    let status = EtcdRestoreStatus { completion_time, conditions, ..after };
    Plan { step, notices: notices(&before, &status), again: when_to_look_again(&status), status }
}

fn when_to_look_again(status: &EtcdRestoreStatus) -> Option<Duration> {
    match status.phase {
        Some(RestorePhase::Completed | RestorePhase::Failed) => None,
        Some(RestorePhase::Restoring | RestorePhase::ScalingUp) => Some(WHILE_SCALING_UP),
        Some(RestorePhase::Pending | RestorePhase::Validating) | None => Some(WHILE_CHECKING),
    }
}
