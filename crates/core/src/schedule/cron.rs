//! The five fields of cron, and their time zone.
//!
//! The crate `croner` (4.0.2) was tried with our tests and differs: `30 2 * * *` in a gap of the clock is run right after
//! the gap, `*/30 2 * * *` in an hour that comes twice is run in both, and before the day that Samoa skipped it finds no
//! next time. It knows no `@midnight`, and with its `sloppy_ranges`, which `50/5` needs, it accepts `1,,2` and `*/90`.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::cron_error::{CronError, ScheduleError};

const SHORTHANDS: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// One of the five fields: its name, its range, and the names of its numbers.
struct Field {
    name: &'static str,
    first: u8,
    last: u8,
    /// The largest number that is accepted: Sunday is 0 and 7.
    largest: u8,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: [Field; 5] = [
    Field { name: "a minute", first: 0, last: 59, largest: 59, names: &[] },
    Field { name: "an hour", first: 0, last: 23, largest: 23, names: &[] },
    Field { name: "a day of the month", first: 1, last: 31, largest: 31, names: &[] },
    Field { name: "a month", first: 1, last: 12, largest: 12, names: &MONTHS },
    Field { name: "a day of the week", first: 0, last: 6, largest: 7, names: &WEEKDAYS },
];

/// A set of numbers, each of them below 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers(u64);

impl Numbers {
    fn insert(&mut self, number: u8) {
        self.0 |= 1 << number;
    }

    fn contains(self, number: i8) -> bool {
        u32::try_from(number).is_ok_and(|number| self.0.checked_shr(number).is_some_and(|rest| rest & 1 == 1))
    }

    pub(super) fn iter(self) -> impl Iterator<Item = i8> {
        (0..64).filter(move |number| self.contains(*number))
    }
}

/// A recurring schedule.
#[derive(Clone, Debug)]
pub struct Cron {
    pub(super) minutes: Numbers,
    pub(super) hours: Numbers,
    days: Numbers,
    months: Numbers,
    weekdays: Numbers,
    /// Whether both kinds of days are restricted: then a day of either kind matches.
    either_day: bool,
    /// Whether it matches every hour. Then it follows elapsed time rather than the wall clock.
    pub(super) every_hour: bool,
    pub(super) zone: TimeZone,
}

pub fn parse(schedule: &str, time_zone: &str) -> Result<Cron, ScheduleError> {
    let wrong = |why: CronError| ScheduleError::Cron { schedule: schedule.to_owned(), why };
    let shorthand = SHORTHANDS.iter().find(|(name, _)| *name == schedule.trim());
    let fields: Vec<&str> = shorthand.map_or(schedule, |(_, fields)| fields).split_whitespace().collect();
    if schedule.trim().starts_with('@') && shorthand.is_none() {
        let names: Vec<&str> = SHORTHANDS.iter().map(|(name, _)| *name).collect();
        return Err(wrong(CronError::UnknownName { known: names.join(", ") }));
    }
    let [minute, hour, day, month, weekday] = fields[..] else {
        return Err(wrong(CronError::NotFiveFields(fields.len())));
    };
    let [of_minute, of_hour, of_day, of_month, of_weekday] = &FIELDS;
    let zone = TimeZone::get(time_zone).map_err(|_| ScheduleError::TimeZone(time_zone.to_owned()))?;
    let hours = of_hour.parse(hour).map_err(wrong)?;
    let cron = Cron {
        minutes: of_minute.parse(minute).map_err(wrong)?,
        hours,
        days: of_day.parse(day).map_err(wrong)?,
        months: of_month.parse(month).map_err(wrong)?,
        weekdays: of_weekday.parse(weekday).map_err(wrong)?,
        either_day: !is_any(day) && !is_any(weekday),
        every_hour: (0..24).all(|hour| hours.contains(hour)),
        zone,
    };
    // Any start will do: what matches at all matches within a few years, even 29 February.
    match cron.next_after(Timestamp::UNIX_EPOCH) {
        Some(_) => Ok(cron),
        None => Err(wrong(CronError::NoSuchDay)),
    }
}

impl Cron {
    pub(super) fn is_on(&self, date: Date) -> bool {
        let day = self.days.contains(date.day());
        let weekday = self.weekdays.contains(date.weekday().to_sunday_zero_offset());
        self.months.contains(date.month()) && if self.either_day { day || weekday } else { day && weekday }
    }
}

/// Whether a field matches everything.
fn is_any(field: &str) -> bool {
    field == "*" || field == "?"
}

impl Field {
    /// Parses a list of numbers, ranges and steps.
    fn parse(&self, text: &str) -> Result<Numbers, CronError> {
        let mut numbers = Numbers::default();
        for item in text.split(',') {
            let (range, step) = match item.split_once('/') {
                Some((range, step)) => (range, Some(self.step(step)?)),
                None => (item, None),
            };
            let (from, to) = self.range(range, step.is_some())?;
            for number in (from..=to).step_by(step.unwrap_or(1).into()) {
                // Sunday again.
                numbers.insert(if number > self.last { self.first } else { number });
            }
        }
        Ok(numbers)
    }

    fn range(&self, text: &str, has_step: bool) -> Result<(u8, u8), CronError> {
        if is_any(text) {
            return Ok((self.first, self.last));
        }
        let Some((from, to)) = text.split_once('-') else {
            let number = self.number(text)?;
            return Ok((number, if has_step { self.last.max(number) } else { number }));
        };
        let (from, to) = (self.number(from)?, self.number(to)?);
        if from > to {
            return Err(CronError::Backwards(text.to_owned()));
        }
        Ok((from, to))
    }

    fn number(&self, text: &str) -> Result<u8, CronError> {
        if let Some(index) = self.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
            return Ok(self.first + u8::try_from(index).unwrap_or_default());
        }
        let (name, first, largest) = (self.name, self.first, self.largest);
        digits(text).filter(|number| (first..=largest).contains(number)).ok_or_else(|| CronError::NotInField {
            text: text.to_owned(),
            name,
            first,
            largest,
        })
    }

    fn step(&self, text: &str) -> Result<u8, CronError> {
        // A longer step would never get beyond the first number, which no user means.
        let longest = self.last - self.first + 1;
        digits(text)
            .filter(|step| (1..=longest).contains(step))
            .ok_or_else(|| CronError::NotAStep { text: text.to_owned(), longest })
    }
}

/// A number as accepted here: without a sign.
fn digits(text: &str) -> Option<u8> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}
