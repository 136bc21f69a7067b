//! Which EtcdBackup objects are deleted because there are enough later ones. The stored backups stay.

use super::scheduled_backup::{Run, ScheduledBackup};

/// How many are kept of those that succeeded and of those that failed.
pub struct Limits {
    pub succeeded: i32,
    pub failed: i32,
}

/// The names of those to delete, the oldest first. One whose result is not counted yet stays until it is, and another
/// client may be waiting for one that was created for another reason than the time.
pub fn beyond_history_limits(taken: &[ScheduledBackup], last_counted: i64, limits: &Limits) -> Vec<String> {
    let ended = taken.iter().filter(|it| !it.deleting);
    let mut ended: Vec<(Run, bool, &str)> =
        ended.filter_map(|it| Some((it.run?, it.end?.succeeded, it.name.as_str()))).collect();
    ended.sort_by_key(|(run, ..)| (run.at, run.number));
    let oldest = |kind: bool, limit: i32| {
        let of_kind: Vec<_> = ended.iter().filter(|(_, succeeded, _)| *succeeded == kind).collect();
        let beyond = of_kind.len().saturating_sub(usize::try_from(limit).unwrap_or_default());
        of_kind.into_iter().take(beyond)
    };
    let mut gone: Vec<_> = oldest(true, limits.succeeded).chain(oldest(false, limits.failed)).collect();
    gone.retain(|(run, ..)| run.number <= last_counted);
    gone.sort_by_key(|(run, ..)| run.at);
    gone.into_iter().map(|(.., name)| (*name).to_owned()).collect()
}
