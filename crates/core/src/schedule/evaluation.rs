//! What a schedule amounts to right now: whether it is active, what is due, and when it becomes overdue. The plan and the
//! status both follow from it.

use std::time::Duration;

use etcd_operator_api::{EtcdBackupSchedule, EtcdBackupScheduleStatus, ScheduleReason};
use jiff::{SignedDuration, Timestamp};

use super::cluster::{ClusterState, cluster_state};
use super::cron::{Cron, parse};
use super::deletion::Deletion;
use super::due::{Due, Timing, what_is_due};
use super::observed::Observed;
use super::overdue::overdue_from;
use super::scheduled_backup::ScheduledBackup;
use super::tally::{Tally, tally};

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
        reason: ScheduleReason,
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

pub(super) fn evaluation(observed: &Observed, written: &EtcdBackupScheduleStatus) -> Evaluation {
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
fn active_cron(observed: &Observed, cluster_state: &ClusterState) -> Result<Cron, (ScheduleReason, String)> {
    let spec = &observed.schedule.spec;
    let cron = parse(&spec.schedule, &spec.time_zone);
    let cron = cron.map_err(|why| (ScheduleReason::InvalidSchedule, why.to_string()))?;
    let cluster = spec.backup_spec().cluster_name.unwrap_or_default();
    match cluster_state {
        ClusterState::Deleted { .. } => Err((
            ScheduleReason::DeletingBackups,
            format!("the backups of the EtcdCluster {cluster:?}, which is gone, are deleted first"),
        )),
        _ if spec.suspend => Err((ScheduleReason::Suspended, "spec.suspend is true".to_owned())),
        ClusterState::Missing => Err((ScheduleReason::NoCluster, format!("there is no EtcdCluster {cluster:?}"))),
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

pub(super) fn deadline(observed: &Observed) -> Option<SignedDuration> {
    observed.schedule.spec.starting_deadline_seconds.map(SignedDuration::from_secs)
}

/// Whether stored backups may be deleted at any moment although they are to stay. A deletion that counts as failed may
/// have a pod that is still pending; one that is impossible has none.
pub(super) fn deletes_wrongly(observed: &Observed, cluster_state: &ClusterState) -> bool {
    let may_delete = matches!(observed.deletion, Deletion::Runs { .. } | Deletion::Failed { .. } | Deletion::NoReport);
    may_delete && !matches!(cluster_state, ClusterState::Deleted { .. })
}
