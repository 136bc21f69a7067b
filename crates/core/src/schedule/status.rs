//! What to report about a schedule in its status, and what of it is news.

use etcd_operator_api::EtcdBackupScheduleStatus;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::cluster::{BACKUPS_DELETED, Verdict};
use super::due::Due;
use super::plan::{Course, Deletion, Look, News, Outlook, Standing, deletes_wrongly, in_force};
use super::taken::Taken;
use crate::conditions::{Statement, conditions_after};

const READY: &str = "Ready";
const OVERDUE: &str = "Overdue";

/// The status to report. It equals the one that was written before if there is nothing new to say.
pub fn status_to_report(
    look: &Look,
    outlook: &Outlook,
    written: &EtcdBackupScheduleStatus,
) -> EtcdBackupScheduleStatus {
    let Outlook { tally, verdict, standing, counted_from } = outlook;
    let course = match standing {
        Standing::InForce(course) => Some(course),
        Standing::Not { .. } => None,
    };
    let left_out = match course.map(|course| &course.due) {
        Some(Due::TooLate { at }) => Some(*at),
        _ => None,
    };
    let (cluster_name, cluster_uid) = remembered_cluster(look, verdict, written);
    let mut statements = vec![ready(standing), overdue(look, outlook)];
    statements.extend(backups_deleted(look, verdict));
    let generation = look.schedule.metadata.generation;
    let mut conditions = conditions_after(&written.conditions, &statements, generation, &Time(look.now));
    // What was done for a cluster that is gone is told until there is another one.
    let said = written.conditions.iter().find(|it| it.type_ == BACKUPS_DELETED && it.status == "True");
    conditions.extend(said.filter(|_| *verdict == Verdict::Missing).cloned());
    EtcdBackupScheduleStatus {
        last_schedule_time: tally.last_time.max(left_out).map(Time),
        next_schedule_time: course.and_then(|course| course.next).map(Time),
        last_successful_time: tally.last_success.map(Time),
        last_backup: tally.last_backup.clone(),
        consecutive_failures: tally.failures,
        backups_taken: tally.begun,
        active: look.taken.iter().filter(|it| it.is_active()).map(|it| it.name.clone()).collect(),
        schedule: course.map(|_| in_force(look.schedule)),
        counted_from: Some(Time(*counted_from)),
        judged: tally.judged,
        cluster_name,
        cluster_uid,
        observed_generation: generation,
        conditions,
    }
}

/// The name and the UID of the cluster that is remembered.
fn remembered_cluster(
    look: &Look,
    verdict: &Verdict,
    written: &EtcdBackupScheduleStatus,
) -> (Option<String>, Option<String>) {
    if deletes_wrongly(look, verdict) {
        // The Job is found by this UID, so it stays until the Job is stopped.
        return (written.cluster_name.clone(), written.cluster_uid.clone());
    }
    let uid = match verdict {
        Verdict::Backed { uid } => uid.clone(),
        Verdict::Missing => None,
        Verdict::Deleted { .. } if is_done(&look.deletion) => None,
        Verdict::Deleted { uid, .. } => Some(uid.clone()),
    };
    (uid.as_ref().and_then(|_| look.schedule.spec.backup_spec().cluster_name), uid)
}

fn is_done(deletion: &Deletion) -> bool {
    matches!(deletion, Deletion::Done { .. })
}

fn ready(standing: &Standing) -> Statement {
    match standing {
        Standing::InForce(Course { due: Due::Waits { at, runs }, .. }) => {
            let message = format!("the backup of {at} waits until {runs} has ended");
            Statement::yes(READY, "WaitsForLast", message)
        }
        Standing::InForce(_) => Statement::yes(READY, "Scheduled", "backups are taken as the schedule says"),
        Standing::Not { reason, message } => Statement::no(READY, reason, message.clone()),
    }
}

fn overdue(look: &Look, outlook: &Outlook) -> Statement {
    match &outlook.standing {
        Standing::Not { reason, .. } => Statement::no(OVERDUE, reason, "no backups are expected"),
        Standing::InForce(course) if course.overdue_at.is_some_and(|from| look.now >= from) => {
            Statement::yes(OVERDUE, "NothingSucceeds", nothing_succeeds(outlook))
        }
        Standing::InForce(_) => Statement::no(OVERDUE, "InTime", "backups succeed, or are not due yet"),
    }
}

fn nothing_succeeds(outlook: &Outlook) -> String {
    let failures = match outlook.tally.failures {
        0 => String::new(),
        1 => "; one has failed".to_owned(),
        many => format!("; {many} have failed"),
    };
    match outlook.tally.last_success {
        Some(last) => format!("no backup has succeeded since {last}{failures}"),
        None => format!("no backup has succeeded yet{failures}"),
    }
}

fn backups_deleted(look: &Look, verdict: &Verdict) -> Option<Statement> {
    let Verdict::Deleted { not_before, .. } = verdict else { return None };
    let no = |reason: &str, message: String| Statement::no(BACKUPS_DELETED, reason, message);
    let active = look.taken.iter().find(|it| it.is_active());
    Some(match (&look.deletion, active) {
        (Deletion::Done { deleted }, _) => {
            let message = format!(
                "{deleted} stored backups were deleted, because the EtcdCluster was and \
                spec.deleteWithCluster asks for it"
            );
            Statement::yes(BACKUPS_DELETED, "Deleted", message)
        }
        (Deletion::Failed { reason, message }, _) => no(reason, format!("{message}; it is tried again in a while")),
        (Deletion::Impossible { message }, _) => no("BadOrder", format!("{message}; it is tried again in a while")),
        (Deletion::Runs { trouble: Some(trouble) }, _) => no("Deleting", trouble.clone()),
        (Deletion::Runs { trouble: None }, _) => no("Deleting", "the stored backups are being deleted".to_owned()),
        (Deletion::NotBegun, _) if look.now < *not_before => {
            no("ClusterIsGone", format!("the EtcdCluster is gone; the stored backups are deleted from {not_before} on"))
        }
        (Deletion::NotBegun, Some(Taken { name, .. })) => {
            no("ClusterIsGone", format!("the stored backups are deleted as soon as {name} has ended"))
        }
        (Deletion::NotBegun, None) => no("Deleting", "the stored backups are being deleted".to_owned()),
    })
}

/// What the new status says that the one before did not.
pub fn news(before: &EtcdBackupScheduleStatus, after: &EtcdBackupScheduleStatus, outlook: &Outlook) -> Vec<News> {
    let mut news = Vec::new();
    if let Standing::InForce(Course { due: Due::TooLate { at }, .. }) = &outlook.standing {
        news.push(News { is_bad: true, reason: "BackupMissed".to_owned(), note: too_late(*at) });
    }
    for condition in &after.conditions {
        let said = before.conditions.iter().find(|it| it.type_ == condition.type_);
        let is_said = |it: &&Condition| it.status == condition.status && it.reason == condition.reason;
        if let Some(is_bad) = is_worth_an_event(condition).filter(|_| said.filter(is_said).is_none()) {
            news.push(News { is_bad, reason: event_of(condition), note: condition.message.clone() });
        }
    }
    news
}

fn too_late(at: Timestamp) -> String {
    format!("no backup was begun for {at}: it would have begun later than spec.startingDeadlineSeconds allows")
}

/// Whether a condition is worth an event, and if so whether it is bad news. What a user has just asked for is none.
fn is_worth_an_event(condition: &Condition) -> Option<bool> {
    match (condition.type_.as_str(), condition.status.as_str(), condition.reason.as_str()) {
        (READY, "True", "WaitsForLast") | (BACKUPS_DELETED, "True", _) => Some(false),
        (READY, "False", "InvalidSchedule" | "NoCluster") | (OVERDUE, "True", _) => Some(true),
        (BACKUPS_DELETED, "False", "ClusterIsGone" | "Deleting") => Some(false),
        (BACKUPS_DELETED, "False", _) => Some(true),
        _ => None,
    }
}

fn event_of(condition: &Condition) -> String {
    match (condition.type_.as_str(), condition.status.as_str()) {
        (OVERDUE, _) => "Overdue".to_owned(),
        (BACKUPS_DELETED, "True") => "BackupsDeleted".to_owned(),
        _ => condition.reason.clone(),
    }
}
