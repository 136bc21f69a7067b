//! From what is known about a schedule to what is to be done and said about it.

use etcd_operator_api::{EtcdBackupSchedule, EtcdBackupScheduleStatus};
use jiff::{SignedDuration, Timestamp};

pub use super::cluster::{Seen, is_to_be_restored};
use super::cluster::{Verdict, verdict};
use super::cron::{Cron, parse};
use super::due::{Due, Timing, what_is_due};
use super::history::{Limits, superfluous};
use super::overdue::overdue_from;
use super::status::{news, status_to_report};
use super::taken::{Taken, name_of};
use super::tally::{Tally, tally};

/// How often to ask for a cluster that is not there.
const WITHOUT_CLUSTER: SignedDuration = SignedDuration::from_secs(30);

/// What is known about a schedule.
pub struct Look<'a> {
    pub schedule: &'a EtcdBackupSchedule,
    pub taken: &'a [Taken],
    pub cluster: Seen,
    pub deletion: Deletion,
    /// In whole seconds, as it is written down.
    pub now: Timestamp,
}

/// How far the deletion of the stored backups of a cluster that is gone has come. It is impossible to begin one if nobody can tell
/// where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    NotBegun,
    Runs { trouble: Option<String> },
    Done { deleted: u32 },
    Failed { reason: String, message: String },
    Impossible { message: String },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// EtcdBackups that are deleted although they run.
    pub stop: Vec<String>,
    pub begin: Option<Begin>,
    /// The UID of a cluster that is gone, if the stored backups are to be deleted now.
    pub delete_backups_of: Option<String>,
    /// Whether the deletion is to be stopped, because it is not asked for any more or there is a cluster again.
    pub stop_deleting: bool,
    /// EtcdBackups that are deleted once the status is written, which is all that is left of them.
    pub superfluous: Vec<String>,
    /// The status to report, once everything else is done.
    pub status: EtcdBackupScheduleStatus,
    /// What is new in the status.
    pub news: Vec<News>,
    /// When to look again, if nothing happens before.
    pub again: Option<Timestamp>,
}

/// The EtcdBackup that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begin {
    pub name: String,
    pub at: Timestamp,
    pub number: i64,
    /// Whether it is restored for a test, whatever its template says.
    pub verify: bool,
    pub missed_since: Option<Timestamp>,
}

/// Something worth an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    pub is_bad: bool,
    pub reason: String,
    pub note: String,
}

/// What holds for a schedule, as far as it can be told.
pub(super) struct Outlook {
    pub tally: Tally,
    pub verdict: Verdict,
    pub standing: Standing,
    /// Times up to this one are never made up for.
    pub counted_from: Timestamp,
}

pub(super) enum Standing {
    InForce(Course),
    /// No backups are begun, and why.
    Not {
        reason: &'static str,
        message: String,
    },
}

/// How a schedule goes that is in force.
pub(super) struct Course {
    pub due: Due,
    pub next: Option<Timestamp>,
    /// From when on it is overdue if nothing succeeds.
    pub overdue_at: Option<Timestamp>,
}

pub fn plan(look: &Look) -> Plan {
    let spec = &look.schedule.spec;
    let written = look.schedule.status.clone().unwrap_or_default();
    let outlook = outlook(look, &written);
    let status = status_to_report(look, &outlook, &written);
    let limits = Limits { succeeded: spec.successful_backups_history_limit, failed: spec.failed_backups_history_limit };
    let (stop, begin) = match &outlook.standing {
        // What is stopped must have been counted before, or its number would be given again after a crash.
        Standing::InForce(Course { due: Due::Begin { at, missed_since, instead_of }, .. })
            if instead_of.is_empty() || outlook.tally.begun == written.backups_taken =>
        {
            (instead_of.clone(), Some(begin(look, outlook.tally.begun + 1, *at, *missed_since)))
        }
        _ => (Vec::new(), None),
    };
    Plan {
        stop,
        begin,
        delete_backups_of: backups_to_delete(look, &outlook.verdict),
        stop_deleting: deletes_wrongly(look, &outlook.verdict),
        superfluous: superfluous(look.taken, outlook.tally.judged, &limits),
        news: news(&written, &status, &outlook),
        status,
        again: when_to_look_again(look, &outlook),
    }
}

fn outlook(look: &Look, written: &EtcdBackupScheduleStatus) -> Outlook {
    let tally = tally(written, look.taken);
    let verdict = verdict(look.schedule, written, &look.cluster, look.now);
    match cron_in_force(look, &verdict) {
        Ok(cron) => {
            let counted_from = counted_from(look, written);
            let standing = Standing::InForce(course(look, &cron, &tally, counted_from));
            Outlook { tally, verdict, standing, counted_from }
        }
        Err((reason, message)) => {
            let counted_from = written.counted_from.as_ref().map_or(look.now, |time| time.0);
            Outlook { tally, verdict, standing: Standing::Not { reason, message }, counted_from }
        }
    }
}

/// The schedule, or the reason why no backups are begun by it, and that in a sentence.
fn cron_in_force(look: &Look, verdict: &Verdict) -> Result<Cron, (&'static str, String)> {
    let spec = &look.schedule.spec;
    let cron = parse(&spec.schedule, &spec.time_zone).map_err(|why| ("InvalidSchedule", why))?;
    let cluster = spec.backup_spec().cluster_name.unwrap_or_default();
    match verdict {
        Verdict::Deleted { .. } => Err((
            "DeletingBackups",
            format!("the backups of the EtcdCluster {cluster:?}, which is gone, are deleted first"),
        )),
        _ if spec.suspend => Err(("Suspended", "spec.suspend is true".to_owned())),
        Verdict::Missing => Err(("NoCluster", format!("there is no EtcdCluster {cluster:?}"))),
        Verdict::Backed { .. } => Ok(cron),
    }
}

/// What is in force, in the form in which it is written down.
pub(super) fn in_force(schedule: &EtcdBackupSchedule) -> String {
    format!("{} {}", schedule.spec.schedule, schedule.spec.time_zone)
}

/// When counting begins: what came before a change or while no backups were taken is not made up for.
fn counted_from(look: &Look, written: &EtcdBackupScheduleStatus) -> Timestamp {
    match (&written.schedule, &written.counted_from) {
        (Some(schedule), Some(from)) if *schedule == in_force(look.schedule) => from.0,
        (None, None) => look.schedule.metadata.creation_timestamp.as_ref().map_or(look.now, |time| time.0),
        _ => look.now,
    }
}

fn course(look: &Look, cron: &Cron, tally: &Tally, counted_from: Timestamp) -> Course {
    let spec = &look.schedule.spec;
    let deadline = deadline(look);
    let due = what_is_due(&Timing {
        cron,
        after: tally.last_time.map_or(counted_from, |last| last.max(counted_from)),
        now: look.now,
        deadline,
        policy: spec.concurrency_policy,
        taken: look.taken,
    });
    // One that runs may still succeed, as long as it may run.
    let runs = look.taken.iter().any(Taken::is_active);
    let allowance = if runs { spec.backup_spec().active_deadline() } else { std::time::Duration::ZERO };
    let last_success = tally.last_success.map_or(counted_from, |last| last.max(counted_from));
    let overdue_at = overdue_from(cron, last_success, deadline).and_then(|from| from.checked_add(allowance).ok());
    Course { due, next: cron.next_after(look.now), overdue_at }
}

fn deadline(look: &Look) -> Option<SignedDuration> {
    look.schedule.spec.starting_deadline_seconds.map(SignedDuration::from_secs)
}

fn begin(look: &Look, number: i64, at: Timestamp, missed_since: Option<Timestamp>) -> Begin {
    let schedule = look.schedule.metadata.name.as_deref().unwrap_or_default();
    let every = look.schedule.spec.verify_every.map_or(0, i64::from);
    let verify = every > 0 && number % every == 0;
    Begin { name: name_of(schedule, at), at, number, verify, missed_since }
}

/// Only once it is sure that the cluster is gone, and nothing is written any more.
fn backups_to_delete(look: &Look, verdict: &Verdict) -> Option<String> {
    let Verdict::Deleted { uid, not_before } = verdict else { return None };
    let may_begin = look.now >= *not_before && look.deletion == Deletion::NotBegun;
    let nothing_runs = !look.taken.iter().any(Taken::is_active);
    (may_begin && nothing_runs).then(|| uid.clone())
}

/// Whether stored backups may be deleted at any moment although they are to stay. A deletion that counts as failed may have a pod
/// that still waits to be started; one that is impossible has none.
pub(super) fn deletes_wrongly(look: &Look, verdict: &Verdict) -> bool {
    let may_delete = matches!(look.deletion, Deletion::Runs { .. } | Deletion::Failed { .. });
    may_delete && !matches!(verdict, Verdict::Deleted { .. })
}

fn when_to_look_again(look: &Look, outlook: &Outlook) -> Option<Timestamp> {
    match (&outlook.standing, &outlook.verdict) {
        (Standing::InForce(Course { due, next, overdue_at }), _) => {
            let too_late = match (due, deadline(look)) {
                (Due::Waits { at, .. }, Some(deadline)) => at.checked_add(deadline + SignedDuration::from_secs(1)).ok(),
                _ => None,
            };
            let times = [*next, *overdue_at, too_late];
            times.into_iter().flatten().filter(|time| *time > look.now).min()
        }
        (_, Verdict::Deleted { not_before, .. }) if *not_before > look.now => Some(*not_before),
        (_, Verdict::Deleted { .. } | Verdict::Missing) => look.now.checked_add(WITHOUT_CLUSTER).ok(),
        (_, Verdict::Backed { .. }) => None,
    }
}
