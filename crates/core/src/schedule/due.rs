//! Which time of a schedule is due. Of several missed times only the last counts: one backup makes up for all.

use etcd_operator_api::ConcurrencyPolicy;
use jiff::{SignedDuration, Timestamp};

use super::cron::Cron;
use super::scheduled_backup::ScheduledBackup;

/// The input of the decision.
pub struct Timing<'a> {
    pub cron: &'a Cron,
    /// Times up to this one are handled, or don't count.
    pub after: Timestamp,
    pub now: Timestamp,
    /// How late a backup may start.
    pub deadline: Option<SignedDuration>,
    pub policy: ConcurrencyPolicy,
    pub taken: &'a [ScheduledBackup],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    Nothing,
    /// A backup for this time is to be started now.
    Begin {
        at: Timestamp,
        /// The first of the earlier times for which no backup was started.
        missed_since: Option<Timestamp>,
        /// The backups that are stopped first.
        instead_of: Vec<String>,
    },
    /// It is due, but another backup has to end first.
    Waits {
        at: Timestamp,
        runs: String,
    },
    /// The deadline to start it has passed.
    TooLate {
        at: Timestamp,
    },
}

pub fn what_is_due(timing: &Timing) -> Due {
    let Timing { cron, after, now, deadline, policy, taken } = timing;
    let Some(at) = cron.last_until(*now).filter(|at| at > after) else { return Due::Nothing };
    if deadline.is_some_and(|deadline| now.duration_since(at) > deadline) {
        return Due::TooLate { at };
    }
    let mut active = taken.iter().filter(|it| it.is_active());
    if let (ConcurrencyPolicy::Forbid, Some(running)) = (policy, active.clone().next()) {
        return Due::Waits { at, runs: running.name.clone() };
    }
    // Backups that were created for another reason than the time are left alone.
    let instead_of = match policy {
        ConcurrencyPolicy::Replace => active.by_ref().filter(|it| it.run.is_some() && !it.deleting).collect(),
        ConcurrencyPolicy::Allow | ConcurrencyPolicy::Forbid => Vec::new(),
    };
    Due::Begin {
        at,
        missed_since: cron.next_after(*after).filter(|first| *first < at),
        instead_of: instead_of.into_iter().map(|it: &ScheduledBackup| it.name.clone()).collect(),
    }
}
