//! Retention: which backups may be deleted. The time in their manifests decides, never their names.

use std::collections::HashSet;
use std::hash::Hash;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp, Zoned};

use crate::report::{Failure, Reason};
use crate::task::Retention;

/// For so long after it was taken a backup may still be being verified, and must not be deleted under the pod that reads it:
/// the deadline of that Job for each of its tries. The Job has to end within one, which leaves the rest to the upload.
pub const PROOF_TAKES_AT_MOST: SignedDuration = SignedDuration::from_hours(2);

/// What is known of a stored backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    pub taken_at: Timestamp,
    pub proof: Proof,
}

/// Whether a backup was restored for a test, and was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    NotAsked,
    /// It was to be, for an operator that did not write down yet how that went: it may be the only one that is proven.
    Unrecorded,
    /// It was to be, but either it has not been yet, or it turned out to be incomplete.
    Missing,
    Given,
}

/// The backups that no rule keeps, as indices into them, oldest first.
///
/// The newest is always kept, and so is the newest that is proven. One that was to be and is not known to be takes no other
/// one's place: each rule keeps what it would keep if all such were not there, besides what it keeps of all. What may be in the
/// middle of being proven stays until that is over. What was taken later than now is kept, too, and counts for no rule: a clock
/// is wrong, and nothing is lost for that. Rules that say nothing at all keep everything.
pub fn backups_to_delete(rules: &Retention, stored: &[Stored], now: Timestamp) -> Result<Vec<usize>, Failure> {
    let zone = time_zone(&rules.time_zone)?;
    if rules.says_nothing() {
        return Ok(Vec::new());
    }
    let mut newest_first: Vec<usize> = (0..stored.len()).filter(|&index| stored[index].taken_at <= now).collect();
    newest_first.sort_by_key(|&index| std::cmp::Reverse((stored[index].taken_at, index)));
    let is_reliable = |index: &usize| matches!(stored[*index].proof, Proof::NotAsked | Proof::Given);
    let reliable: Vec<usize> = newest_first.iter().copied().filter(is_reliable).collect();
    let being_proven = newest_first.iter().copied().filter(|&index| may_be_being_proven(&stored[index], now));
    let now = now.to_zoned(zone);
    let mut kept = kept_of(rules, stored, &newest_first, &now);
    kept.extend(kept_of(rules, stored, &reliable, &now));
    kept.extend(newest_proven(stored, &newest_first));
    kept.extend(being_proven);

    let mut may_go: Vec<usize> = newest_first.into_iter().filter(|index| !kept.contains(index)).collect();
    may_go.reverse();
    Ok(may_go)
}

/// The newest that is proven, and those after it that may be as well.
fn newest_proven(stored: &[Stored], newest_first: &[usize]) -> Vec<usize> {
    let newest = newest_first.iter().position(|&index| stored[index].proof == Proof::Given);
    let none_is_newer = newest_first.iter().take(newest.map_or(usize::MAX, |position| position + 1));
    let may_be = |index: &usize| matches!(stored[*index].proof, Proof::Given | Proof::Unrecorded);
    none_is_newer.copied().filter(may_be).collect()
}

fn may_be_being_proven(backup: &Stored, now: Timestamp) -> bool {
    backup.proof == Proof::Missing && now.duration_since(backup.taken_at) < PROOF_TAKES_AT_MOST
}

/// What the rules keep of some backups, the newest of which is first.
fn kept_of(rules: &Retention, stored: &[Stored], some: &[usize], now: &Zoned) -> HashSet<usize> {
    let times: Vec<Zoned> =
        some.iter().map(|&index| stored[index].taken_at.to_zoned(now.time_zone().clone())).collect();
    kept_by_rules(rules, &times, now).into_iter().map(|position| some[position]).collect()
}

fn time_zone(name: &str) -> Result<TimeZone, Failure> {
    if name.is_empty() {
        return Ok(TimeZone::UTC);
    }
    TimeZone::get(name).map_err(|e| Failure {
        reason: Reason::InvalidRequest,
        message: format!("nothing is deleted, because {name:?} is no time zone: {e}"),
    })
}

/// The backups that are kept, by their position. They are sorted, the newest first.
fn kept_by_rules(rules: &Retention, backups: &[Zoned], now: &Zoned) -> HashSet<usize> {
    let mut kept: HashSet<usize> = (0..count(rules.newest()).max(1)).take(backups.len()).collect();
    let ages = [
        (rules.keep_days, Span::new().try_days(rules.keep_days)),
        (rules.keep_weeks, Span::new().try_weeks(rules.keep_weeks)),
        (rules.keep_months, Span::new().try_months(rules.keep_months)),
    ];
    for (_, age) in ages.into_iter().filter(|(number, _)| *number > 0) {
        match age.and_then(|age| now.checked_sub(age)) {
            Ok(since) => kept.extend((0..backups.len()).take_while(|&position| backups[position] >= since)),
            // Longer than there is time.
            Err(_) => kept.extend(0..backups.len()),
        }
    }
    kept.extend(newest_of_each(backups, rules.keep_daily, |backup| backup.date()));
    kept.extend(newest_of_each(backups, rules.keep_weekly, |backup| {
        let week = backup.date().iso_week_date();
        (week.year(), week.week())
    }));
    kept.extend(newest_of_each(backups, rules.keep_monthly, |backup| (backup.year(), backup.month())));
    kept.extend(newest_of_days(backups, &rules.days_of_month, rules.months, now.date()));
    kept
}

/// The newest backup of each of the last days, weeks or months that have one.
fn newest_of_each<K: Eq + Hash>(backups: &[Zoned], periods: u32, period: impl Fn(&Zoned) -> K) -> Vec<usize> {
    let mut seen = HashSet::new();
    let is_newest = |&position: &usize| seen.len() < count(periods) && seen.insert(period(&backups[position]));
    (0..backups.len()).filter(is_newest).collect()
}

/// The newest backup of each of those days in this month and in as many before it.
fn newest_of_days(backups: &[Zoned], days: &[u8], months_before: u32, today: Date) -> Vec<usize> {
    let month_of = |date: Date| i32::from(date.year()) * 12 + i32::from(date.month());
    let mut seen = HashSet::new();
    let is_newest = |&position: &usize| {
        let date = backups[position].date();
        let months_ago = i64::from(month_of(today) - month_of(date));
        let is_meant = days.iter().any(|&day| i16::from(day) == i16::from(date.day()));
        is_meant && months_ago <= i64::from(months_before) && seen.insert(date)
    };
    (0..backups.len()).filter(is_newest).collect()
}

fn count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
