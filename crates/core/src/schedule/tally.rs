//! The totals of a schedule's backups: those recorded before, and those observed since.

use etcd_operator_api::EtcdBackupScheduleStatus;
use jiff::Timestamp;

use super::scheduled_backup::{Run, ScheduledBackup};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The latest time of the schedule that is handled.
    pub last_time: Option<Timestamp>,
    pub last_backup: Option<String>,
    pub last_success: Option<Timestamp>,
    /// How many backups were started. The next one has the next number.
    pub begun: i64,
    pub failures: i32,
    /// The number of the last backup that `failures` includes.
    pub last_counted: i64,
}

/// Adds what is not recorded yet to the record. It is idempotent.
pub fn tally(written: &EtcdBackupScheduleStatus, taken: &[ScheduledBackup]) -> Tally {
    let mut runs: Vec<(Run, &ScheduledBackup)> = taken.iter().filter_map(|it| Some((it.run?, it))).collect();
    runs.sort_by_key(|(run, _)| run.number);
    let written_time = written.last_schedule_time.as_ref().map(|time| time.0);
    let newest = runs.last().filter(|(run, _)| run.number >= written.backups_taken);
    let (failures, last_counted) = count_ends(written, &runs);
    let successes = taken.iter().filter_map(|it| it.end).filter(|end| end.succeeded).map(|end| end.at);
    Tally {
        last_time: runs.iter().map(|(run, _)| run.at).max().max(written_time),
        last_backup: newest.map(|(_, it)| it.name.clone()).or_else(|| written.last_backup.clone()),
        last_success: successes.max().max(written.last_successful_time.as_ref().map(|time| time.0)),
        begun: runs.last().map_or(0, |(run, _)| run.number).max(written.backups_taken),
        failures,
        last_counted,
    }
}

/// Counts failures in the order in which backups were started, up to the first that has not ended. So each is counted
/// once, whenever it ends.
fn count_ends(written: &EtcdBackupScheduleStatus, runs: &[(Run, &ScheduledBackup)]) -> (i32, i64) {
    let (mut failures, mut last_counted) = (written.consecutive_failures, written.last_counted_backup);
    for (run, taken) in runs.iter().filter(|(run, _)| run.number > written.last_counted_backup) {
        let Some(end) = taken.end else { break };
        failures = if end.succeeded { 0 } else { failures.saturating_add(1) };
        last_counted = run.number;
    }
    (failures, last_counted)
}
