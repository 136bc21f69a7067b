//! Which EtcdBackup objects go because there are enough later ones. What they stored stays.

use std::cmp::Reverse;

use super::taken::Taken;

/// How many are kept, of those that succeeded and of those that failed.
pub struct Limits {
    pub succeeded: i32,
    pub failed: i32,
}

/// The names of those that go, the oldest first. One whose end is not counted yet stays until it is.
pub fn superfluous(taken: &[Taken], judged: i64, limits: &Limits) -> Vec<String> {
    let mut ended: Vec<&Taken> = taken.iter().filter(|it| it.end.is_some() && !it.deleting).collect();
    ended.sort_by_key(|it| Reverse(it.run.map_or((it.created, 0), |run| (run.at, run.number))));
    let beyond = |succeeded: bool, limit: i32| {
        let of_kind = ended.iter().filter(move |it| it.end.is_some_and(|end| end.succeeded == succeeded));
        of_kind.skip(usize::try_from(limit).unwrap_or_default())
    };
    let mut gone: Vec<&&Taken> = beyond(true, limits.succeeded).chain(beyond(false, limits.failed)).collect();
    gone.retain(|it| it.run.is_none_or(|run| run.number <= judged));
    gone.sort_by_key(|it| (it.run.map_or(it.created, |run| run.at), it.created));
    gone.into_iter().map(|it| it.name.clone()).collect()
}
