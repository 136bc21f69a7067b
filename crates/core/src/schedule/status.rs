//! The status to report about a schedule, and which of its changes are worth an event.

use etcd_operator_api::{EtcdBackupScheduleStatus, JobFailureReason, Reason, ScheduleEventReason, ScheduleReason};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::cluster::{BACKUPS_DELETED, ClusterState};
use super::deletion::Deletion;
use super::due::Due;
use super::evaluation::{Evaluation, Scheduling, Timeline, active_schedule, deletes_wrongly};
use super::observed::Observed;
use super::scheduled_backup::ScheduledBackup;
use crate::conditions::{Statement, conditions_after};
use crate::notice::Notice;

const READY: &str = "Ready";
const OVERDUE: &str = "Overdue";

/// The status to report. It equals the previous one if nothing changed.
pub fn status_to_report(
    observed: &Observed,
    evaluation: &Evaluation,
    written: &EtcdBackupScheduleStatus,
) -> EtcdBackupScheduleStatus {
    let Evaluation { tally, cluster_state, scheduling, active_since } = evaluation;
    let timeline = match scheduling {
        Scheduling::Active(timeline) => Some(timeline),
        Scheduling::Inactive { .. } => None,
    };
    let left_out = match timeline.map(|timeline| &timeline.due) {
        Some(Due::TooLate { at }) => Some(*at),
        _ => None,
    };
    let (cluster_name, cluster_uid) = remembered_cluster(observed, cluster_state, written);
    let mut statements = vec![ready(scheduling), overdue(observed, evaluation)];
    statements.extend(backups_deleted(observed, cluster_state));
    let generation = observed.schedule.metadata.generation;
    let mut conditions = conditions_after(&written.conditions, &statements, generation, &Time(observed.now));
    // What was done for a cluster that is gone is reported until there is another one.
    let said = written.conditions.iter().find(|it| it.type_ == BACKUPS_DELETED && it.status == "True");
    conditions.extend(said.filter(|_| *cluster_state == ClusterState::Missing).cloned());
    EtcdBackupScheduleStatus {
        last_schedule_time: tally.last_time.max(left_out).map(Time),
        next_schedule_time: timeline.and_then(|timeline| timeline.next).map(Time),
        last_successful_time: tally.last_success.map(Time),
        last_backup: tally.last_backup.clone(),
        consecutive_failures: tally.failures,
        backups_taken: tally.begun,
        active: observed.taken.iter().filter(|it| it.is_active()).map(|it| it.name.clone()).collect(),
        schedule: timeline.map(|_| active_schedule(observed.schedule)),
        active_since: Some(Time(*active_since)),
        last_counted_backup: tally.last_counted,
        counted_from: None,
        judged: None,
        cluster_name,
        cluster_uid,
        observed_generation: generation,
        conditions,
    }
}

/// The name and the UID of the recorded cluster.
fn remembered_cluster(
    observed: &Observed,
    cluster_state: &ClusterState,
    written: &EtcdBackupScheduleStatus,
) -> (Option<String>, Option<String>) {
    if deletes_wrongly(observed, cluster_state) {
        // The Job is found by this UID, so it stays until the Job is stopped.
        return (written.cluster_name.clone(), written.cluster_uid.clone());
    }
    let uid = match cluster_state {
        ClusterState::Present { uid } => uid.clone(),
        ClusterState::Missing => None,
        ClusterState::Deleted { .. } if is_done(&observed.deletion) => None,
        ClusterState::Deleted { uid, .. } => Some(uid.clone()),
    };
    (uid.as_ref().and_then(|_| observed.schedule.spec.backup_spec().cluster_name), uid)
}

fn is_done(deletion: &Deletion) -> bool {
    matches!(deletion, Deletion::Done { .. })
}

fn ready(scheduling: &Scheduling) -> Statement {
    match scheduling {
        Scheduling::Active(Timeline { due: Due::Waits { at, runs }, .. }) => {
            let message = format!("the backup of {at} waits until {runs} has ended");
            Statement::yes(READY, ScheduleReason::WaitingForRunningBackup, message)
        }
        Scheduling::Active(_) => {
            Statement::yes(READY, ScheduleReason::Scheduled, "backups are taken as the schedule says")
        }
        Scheduling::Inactive { reason, message } => Statement::no(READY, *reason, message.clone()),
    }
}

fn overdue(observed: &Observed, evaluation: &Evaluation) -> Statement {
    match &evaluation.scheduling {
        Scheduling::Inactive { reason, .. } => Statement::no(OVERDUE, *reason, "no backups are expected"),
        Scheduling::Active(timeline) if timeline.overdue_at.is_some_and(|from| observed.now >= from) => {
            Statement::yes(OVERDUE, ScheduleReason::NoRecentSuccess, nothing_succeeds(evaluation))
        }
        Scheduling::Active(_) => {
            Statement::no(OVERDUE, ScheduleReason::OnSchedule, "backups succeed, or are not due yet")
        }
    }
}

fn nothing_succeeds(evaluation: &Evaluation) -> String {
    let failures = match evaluation.tally.failures {
        0 => String::new(),
        1 => "; one has failed".to_owned(),
        many => format!("; {many} have failed"),
    };
    match evaluation.tally.last_success {
        Some(last) => format!("no backup has succeeded since {last}{failures}"),
        None => format!("no backup has succeeded yet{failures}"),
    }
}

fn backups_deleted(observed: &Observed, cluster_state: &ClusterState) -> Option<Statement> {
    let ClusterState::Deleted { not_before, .. } = cluster_state else { return None };
    let failed = |reason: Reason, message: &str| {
        Statement::no(BACKUPS_DELETED, reason, format!("{message}; it is tried again in a while"))
    };
    let not_yet = |reason: ScheduleReason, message: String| Statement::no(BACKUPS_DELETED, reason, message);
    let active = observed.taken.iter().find(|it| it.is_active());
    Some(match (&observed.deletion, active) {
        (Deletion::Done { deleted }, _) => {
            let message = format!(
                "{deleted} stored backups were deleted, because the EtcdCluster was and \
                spec.deleteWithCluster asks for it"
            );
            Statement::yes(BACKUPS_DELETED, ScheduleReason::Deleted, message)
        }
        (Deletion::Failed { reason, message }, _) => failed(reason.clone(), message),
        (Deletion::Impossible { message }, _) => failed(JobFailureReason::InvalidRequest.into(), message),
        (Deletion::Runs { trouble: Some(trouble) }, _) => not_yet(ScheduleReason::Deleting, trouble.clone()),
        (Deletion::Runs { trouble: None } | Deletion::NoReport, _) => {
            not_yet(ScheduleReason::Deleting, "the stored backups are being deleted".to_owned())
        }
        (Deletion::NotBegun, _) if observed.now < *not_before => {
            let message = format!("the EtcdCluster is gone; the stored backups are deleted from {not_before} on");
            not_yet(ScheduleReason::ClusterGone, message)
        }
        (Deletion::NotBegun, Some(ScheduledBackup { name, .. })) => {
            let message = format!("the stored backups are deleted as soon as {name} has ended");
            not_yet(ScheduleReason::ClusterGone, message)
        }
        (Deletion::NotBegun, None) => {
            not_yet(ScheduleReason::Deleting, "the stored backups are being deleted".to_owned())
        }
    })
}

/// What the new status reports that the previous one did not.
pub fn notices(
    before: &EtcdBackupScheduleStatus,
    after: &EtcdBackupScheduleStatus,
    evaluation: &Evaluation,
) -> Vec<Notice> {
    let mut notices = Vec::new();
    if let Scheduling::Active(Timeline { due: Due::TooLate { at }, .. }) = &evaluation.scheduling {
        notices.push(Notice::of(ScheduleEventReason::BackupMissed, too_late(*at)));
    }
    for condition in &after.conditions {
        let said = before.conditions.iter().find(|it| it.type_ == condition.type_);
        let is_said = |it: &&Condition| it.status == condition.status && it.reason == condition.reason;
        if said.filter(is_said).is_none() {
            notices.extend(notice_about(condition));
        }
    }
    notices
}

fn too_late(at: Timestamp) -> String {
    format!("no backup was begun for {at}: it would have begun later than spec.startingDeadlineSeconds allows")
}

/// The event about a condition, if it is worth one.
fn notice_about(condition: &Condition) -> Option<Notice> {
    if condition.type_ == OVERDUE && condition.status == "False" {
        // Either all is well, or no backups are expected, which `Ready` says with the same reason.
        return None;
    }
    let reason = ScheduleReason::ALL.iter().find(|reason| reason.as_str() == condition.reason);
    match reason {
        Some(reason) => event_of(*reason).map(|event| Notice::of(event, condition.message.clone())),
        // All other reasons are those of a Job that failed.
        None => Some(Notice::of_failure(Reason::verbatim(&condition.reason), condition.message.clone())),
    }
}

/// The direct result of a user's change is not worth an event.
fn event_of(reason: ScheduleReason) -> Option<ScheduleEventReason> {
    match reason {
        ScheduleReason::Scheduled
        | ScheduleReason::Suspended
        | ScheduleReason::DeletingBackups
        | ScheduleReason::OnSchedule => None,
        ScheduleReason::WaitingForRunningBackup => Some(ScheduleEventReason::WaitingForRunningBackup),
        ScheduleReason::InvalidSchedule => Some(ScheduleEventReason::InvalidSchedule),
        ScheduleReason::NoCluster => Some(ScheduleEventReason::NoCluster),
        ScheduleReason::NoRecentSuccess => Some(ScheduleEventReason::Overdue),
        ScheduleReason::ClusterGone => Some(ScheduleEventReason::ClusterGone),
        ScheduleReason::Deleting => Some(ScheduleEventReason::Deleting),
        ScheduleReason::NotAllDeleted => Some(ScheduleEventReason::NotAllDeleted),
        ScheduleReason::Deleted => Some(ScheduleEventReason::BackupsDeleted),
    }
}
