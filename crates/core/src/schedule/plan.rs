//! Decides what to do and to report about a schedule.

use std::time::Duration;

use etcd_operator_api::{EtcdBackupSchedule, EtcdBackupScheduleStatus};
use jiff::{SignedDuration, Timestamp};

use super::cluster::ClusterState;
pub use super::cluster::{ObservedCluster, is_to_be_restored};
pub use super::deletion::Deletion;
use super::due::Due;
use super::evaluation::{Evaluation, Scheduling, Timeline, deadline, deletes_wrongly, evaluation};
use super::history::{Limits, beyond_history_limits};
pub use super::observed::Observed;
use super::requeue::requeue_after;
use super::scheduled_backup::{ScheduledBackup, name_of};
use super::status::{notices, status_to_report};
use crate::notice::Notice;

/// How often to look up a cluster that does not exist.
const WITHOUT_CLUSTER: SignedDuration = SignedDuration::from_secs(30);

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// EtcdBackups that are deleted although they run.
    pub stop: Vec<String>,
    pub begin: Option<Begin>,
    /// The UID of a cluster that is gone, if its stored backups are to be deleted now.
    pub delete_backups_of: Option<String>,
    /// Whether the deletion is to be stopped, because it is no longer desired or a cluster exists again.
    pub stop_deleting: bool,
    /// Whether the Job that deletes stored backups has to run again, since nobody knows how it ended.
    pub delete_job_without_report: bool,
    /// EtcdBackups that are deleted once the status is written, which is all that remains of them.
    pub beyond_history_limits: Vec<String>,
    /// The status to report, once everything else is done.
    pub status: EtcdBackupScheduleStatus,
    /// The changes in the status that are worth an event.
    pub notices: Vec<Notice>,
    /// When to reconcile again, if nothing happens before.
    pub again: Option<Timestamp>,
}

impl Plan {
    /// Whether there is nothing to create or delete.
    pub fn is_idle(&self) -> bool {
        let changes_backups = self.begin.is_some() || !self.beyond_history_limits.is_empty();
        let changes_job = self.delete_backups_of.is_some() || self.stop_deleting || self.delete_job_without_report;
        !changes_backups && !changes_job
    }

    /// The EtcdBackups to delete now. Only the status keeps their results, so that has to be written before.
    pub fn may_delete_now(&self, schedule: &EtcdBackupSchedule) -> &[String] {
        let is_written = schedule.status.as_ref() == Some(&self.status);
        if is_written { &self.beyond_history_limits } else { &[] }
    }

    /// How long to wait before the next reconcile, if nothing happens before.
    pub fn requeue_after(&self, schedule: &EtcdBackupSchedule, now: Timestamp) -> Option<Duration> {
        requeue_after(schedule, self.again, now)
    }
}

/// The EtcdBackup to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begin {
    pub name: String,
    pub at: Timestamp,
    pub number: i64,
    /// Whether it is verified by a test restore, whatever its template says.
    pub verify: bool,
    pub missed_since: Option<Timestamp>,
}

pub fn plan(observed: &Observed) -> Plan {
    let spec = &observed.schedule.spec;
    let written = observed.schedule.status.clone().unwrap_or_default().with_current_names();
    let evaluation = evaluation(observed, &written);
    let status = status_to_report(observed, &evaluation, &written);
    let limits = Limits { succeeded: spec.successful_backups_history_limit, failed: spec.failed_backups_history_limit };
    let (stop, begin) = match &evaluation.scheduling {
        // A backup must be counted before it is stopped, or its number would be used again after a crash.
        Scheduling::Active(Timeline { due: Due::Begin { at, missed_since, instead_of }, .. })
            if instead_of.is_empty() || evaluation.tally.begun == written.backups_taken =>
        {
            (instead_of.clone(), Some(begin(observed, evaluation.tally.begun + 1, *at, *missed_since)))
        }
        _ => (Vec::new(), None),
    };
    Plan {
        stop,
        begin,
        delete_backups_of: backups_to_delete(observed, &evaluation.cluster_state),
        stop_deleting: deletes_wrongly(observed, &evaluation.cluster_state),
        delete_job_without_report: observed.deletion == Deletion::NoReport,
        beyond_history_limits: beyond_history_limits(observed.taken, evaluation.tally.last_counted, &limits),
        notices: notices(&written, &status, &evaluation),
        status,
        again: when_to_look_again(observed, &evaluation),
    }
}

fn begin(observed: &Observed, number: i64, at: Timestamp, missed_since: Option<Timestamp>) -> Begin {
    let schedule = observed.schedule.metadata.name.as_deref().unwrap_or_default();
    let every = observed.schedule.spec.verify_every.map_or(0, i64::from);
    let verify = every > 0 && number % every == 0;
    Begin { name: name_of(schedule, at), at, number, verify, missed_since }
}

/// Only once the cluster is certainly gone, and no backup is being written any more.
fn backups_to_delete(observed: &Observed, cluster_state: &ClusterState) -> Option<String> {
    let ClusterState::Deleted { uid, not_before } = cluster_state else { return None };
    let may_begin = observed.now >= *not_before && observed.deletion == Deletion::NotBegun;
    let nothing_runs = !observed.taken.iter().any(ScheduledBackup::is_active);
    (may_begin && nothing_runs).then(|| uid.clone())
}

fn when_to_look_again(observed: &Observed, evaluation: &Evaluation) -> Option<Timestamp> {
    match (&evaluation.scheduling, &evaluation.cluster_state) {
        (Scheduling::Active(Timeline { due, next, overdue_at }), _) => {
            let too_late = match (due, deadline(observed)) {
                (Due::Waits { at, .. }, Some(deadline)) => at.checked_add(deadline + SignedDuration::from_secs(1)).ok(),
                _ => None,
            };
            let times = [*next, *overdue_at, too_late];
            times.into_iter().flatten().filter(|time| *time > observed.now).min()
        }
        (_, ClusterState::Deleted { not_before, .. }) if *not_before > observed.now => Some(*not_before),
        (_, ClusterState::Deleted { .. } | ClusterState::Missing) => observed.now.checked_add(WITHOUT_CLUSTER).ok(),
        (_, ClusterState::Present { .. }) => None,
    }
}
