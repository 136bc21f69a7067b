//! Decides what to do and to report about a schedule.

use std::time::Duration;

use etcd_operator_api::{EtcdBackupSchedule, EtcdBackupScheduleStatus};
use jiff::{SignedDuration, Timestamp};

use super::cluster::{ClusterState, cluster_state};
pub use super::cluster::{ObservedCluster, is_to_be_restored};
use super::cron::{Cron, parse};
pub use super::deletion::Deletion;
use super::due::{Due, Timing, what_is_due};
use super::history::{Limits, beyond_history_limits};
use super::overdue::overdue_from;
use super::requeue::requeue_after;
use super::scheduled_backup::{ScheduledBackup, name_of};
use super::status::{notices, status_to_report};
use super::tally::{Tally, tally};
use crate::notice::Notice;

/// How often to look up a cluster that does not exist.
const WITHOUT_CLUSTER: SignedDuration = SignedDuration::from_secs(30);

/// What is known about a schedule.
pub struct Observed<'a> {
    pub schedule: &'a EtcdBackupSchedule,
    pub taken: &'a [ScheduledBackup],
    pub cluster: ObservedCluster,
    pub deletion: Deletion,
    /// In whole seconds, as in the status.
    pub now: Timestamp,
}

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

/// What is known about a schedule after evaluation.
pub(super) struct Evaluation {
    pub tally: Tally,
    pub cluster_state: ClusterState,
    pub scheduling: Scheduling,
    /// Times up to this one are never made up for.
    pub active_since: Timestamp,
}

pub(super) enum Scheduling {
    Active(Timeline),
    /// No backups are started, and why.
    Inactive {
        reason: &'static str,
        message: String,
    },
}

/// The times of a schedule that is active.
pub(super) struct Timeline {
    pub due: Due,
    pub next: Option<Timestamp>,
    /// When it becomes overdue if no backup succeeds.
    pub overdue_at: Option<Timestamp>,
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

fn evaluation(observed: &Observed, written: &EtcdBackupScheduleStatus) -> Evaluation {
    let tally = tally(written, observed.taken);
    let cluster_state = cluster_state(observed.schedule, written, &observed.cluster, observed.now);
    match active_cron(observed, &cluster_state) {
        Ok(cron) => {
            let active_since = active_since(observed, written);
            let scheduling = Scheduling::Active(timeline(observed, &cron, &tally, active_since));
            Evaluation { tally, cluster_state, scheduling, active_since }
        }
        Err((reason, message)) => {
            let active_since = written.active_since.as_ref().map_or(observed.now, |time| time.0);
            Evaluation { tally, cluster_state, scheduling: Scheduling::Inactive { reason, message }, active_since }
        }
    }
}

/// The schedule, or why it starts no backups: the reason and a sentence.
fn active_cron(observed: &Observed, cluster_state: &ClusterState) -> Result<Cron, (&'static str, String)> {
    let spec = &observed.schedule.spec;
    let cron = parse(&spec.schedule, &spec.time_zone).map_err(|why| ("InvalidSchedule", why))?;
    let cluster = spec.backup_spec().cluster_name.unwrap_or_default();
    match cluster_state {
        ClusterState::Deleted { .. } => Err((
            "DeletingBackups",
            format!("the backups of the EtcdCluster {cluster:?}, which is gone, are deleted first"),
        )),
        _ if spec.suspend => Err(("Suspended", "spec.suspend is true".to_owned())),
        ClusterState::Missing => Err(("NoCluster", format!("there is no EtcdCluster {cluster:?}"))),
        ClusterState::Present { .. } => Ok(cron),
    }
}

/// The schedule in effect, in the form in which it is recorded.
pub(super) fn active_schedule(schedule: &EtcdBackupSchedule) -> String {
    format!("{} {}", schedule.spec.schedule, schedule.spec.time_zone)
}

/// When counting starts: times before a change, or while no backups were taken, are not made up for.
fn active_since(observed: &Observed, written: &EtcdBackupScheduleStatus) -> Timestamp {
    match (&written.schedule, &written.active_since) {
        (Some(schedule), Some(from)) if *schedule == active_schedule(observed.schedule) => from.0,
        (None, None) => observed.schedule.metadata.creation_timestamp.as_ref().map_or(observed.now, |time| time.0),
        _ => observed.now,
    }
}

fn timeline(observed: &Observed, cron: &Cron, tally: &Tally, active_since: Timestamp) -> Timeline {
    let spec = &observed.schedule.spec;
    let deadline = deadline(observed);
    let due = what_is_due(&Timing {
        cron,
        after: tally.last_time.map_or(active_since, |last| last.max(active_since)),
        now: observed.now,
        deadline,
        policy: spec.concurrency_policy,
        taken: observed.taken,
    });
    // A running backup may still succeed until its deadline.
    let runs = observed.taken.iter().any(ScheduledBackup::is_active);
    let allowance = if runs { spec.backup_spec().active_deadline() } else { Duration::ZERO };
    let last_success = tally.last_success.map_or(active_since, |last| last.max(active_since));
    let overdue_at = overdue_from(cron, last_success, deadline).and_then(|from| from.checked_add(allowance).ok());
    Timeline { due, next: cron.next_after(observed.now), overdue_at }
}

fn deadline(observed: &Observed) -> Option<SignedDuration> {
    observed.schedule.spec.starting_deadline_seconds.map(SignedDuration::from_secs)
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

/// Whether stored backups may be deleted at any moment although they are to stay. A deletion that counts as failed may
/// have a pod that is still pending; one that is impossible has none.
pub(super) fn deletes_wrongly(observed: &Observed, cluster_state: &ClusterState) -> bool {
    let may_delete = matches!(observed.deletion, Deletion::Runs { .. } | Deletion::Failed { .. } | Deletion::NoReport);
    may_delete && !matches!(cluster_state, ClusterState::Deleted { .. })
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
