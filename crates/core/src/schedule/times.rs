//! The times of a schedule, in its time zone.
//!
//! When clocks are changed, a schedule for certain hours keeps its number of times a day: a time that the clock skips
//! is moved by as much as the clock is, and one that it shows twice is used the first time. A schedule for every hour
//! follows elapsed time instead: half-hourly stays half-hourly, also in the hour that comes twice.

use std::iter::successors;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::AmbiguousOffset;

use super::cron::Cron;

/// How far to search for a matching day: 29 February is up to eight years away.
const DAYS: usize = 366 * 8 + 1;

impl Cron {
    /// The first time after this one.
    pub fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        // Times of yesterday may be today: a zone can skip a whole day.
        let from = self.date_of(time).yesterday().ok()?;
        let dates = successors(Some(from), |date| date.tomorrow().ok()).take(DAYS);
        nearest(dates, |date| self.times_on(date).filter(|it| *it > time.as_second()).min(), Ord::min)
    }

    /// The last time that is not after this one.
    pub fn last_until(&self, time: Timestamp) -> Option<Timestamp> {
        // Times of tomorrow may have passed: where clocks are set back after midnight, it is today again.
        let from = self.date_of(time).tomorrow().ok()?;
        let dates = successors(Some(from), |date| date.yesterday().ok()).take(DAYS);
        nearest(dates, |date| self.times_on(date).filter(|it| *it <= time.as_second()).max(), Ord::max)
    }

    fn date_of(&self, time: Timestamp) -> Date {
        self.zone.to_datetime(time).date()
    }

    /// The times of one day, in seconds, and not quite in order if clocks are changed.
    fn times_on(&self, date: Date) -> impl Iterator<Item = i64> {
        let is_on = self.is_on(date);
        let steady = if is_on { self.midnight_of_steady(date) } else { None };
        let hours = self.hours.iter().filter(move |_| is_on);
        let clock = hours.flat_map(move |hour| self.minutes.iter().map(move |minute| (hour, minute)));
        let times = clock.map(move |(hour, minute)| match steady {
            Some(midnight) => [Some(midnight + i64::from(hour) * 3600 + i64::from(minute) * 60), None],
            None => self.times_at(date.at(hour, minute, 0, 0)).map(|time| Some(time?.as_second())),
        });
        times.flat_map(|times| times.into_iter().flatten())
    }

    /// When a day starts, in seconds, if clocks are not changed on it. All but two days a year are like that.
    fn midnight_of_steady(&self, date: Date) -> Option<i64> {
        let midnights = [date, date.tomorrow().ok()?].map(|date| self.zone.to_ambiguous_timestamp(date.at(0, 0, 0, 0)));
        let [AmbiguousOffset::Unambiguous { offset: before }, AmbiguousOffset::Unambiguous { offset: after }] =
            midnights.map(|midnight| midnight.offset())
        else {
            return None;
        };
        let [midnight, _] = midnights;
        midnight.unambiguous().ok().map(Timestamp::as_second).filter(|_| before == after)
    }

    /// The times at which the clock shows this, as far as they count.
    fn times_at(&self, clock: DateTime) -> [Option<Timestamp>; 2] {
        let ambiguous = self.zone.to_ambiguous_timestamp(clock);
        match ambiguous.offset() {
            AmbiguousOffset::Gap { .. } if self.every_hour => [None, None],
            AmbiguousOffset::Fold { .. } if self.every_hour => [ambiguous.earlier().ok(), ambiguous.later().ok()],
            _ => [ambiguous.compatible().ok(), None],
        }
    }
}

/// The best time of the first day that has any. Its neighbour counts too: where clocks are set back after midnight,
/// days overlap.
fn nearest(
    mut dates: impl Iterator<Item = Date>,
    best_on: impl Fn(Date) -> Option<i64>,
    better: fn(i64, i64) -> i64,
) -> Option<Timestamp> {
    let best = dates.find_map(&best_on)?;
    let neighbour = dates.next().and_then(best_on);
    Timestamp::from_second(neighbour.map_or(best, |other| better(best, other))).ok()
}
