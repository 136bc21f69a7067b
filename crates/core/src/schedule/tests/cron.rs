//! What schedules mean, with time zones and clock changes.

use std::iter::successors;

use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::support::time;
use crate::schedule::cron::{Cron, parse};

fn cron(schedule: &str, zone: &str) -> Cron {
    parse(schedule, zone).unwrap_or_else(|error| panic!("{error}"))
}

/// The next times, as the clocks of the zone show them, with their offset from UTC.
fn next_times(schedule: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let cron = cron(schedule, zone);
    let times = successors(cron.next_after(time(after)), |last| cron.next_after(*last));
    let zone = TimeZone::get(zone).unwrap_or_else(|error| panic!("{error}"));
    times.take(count).map(|time| time.to_zoned(zone.clone()).strftime("%m-%d %H:%M%:z").to_string()).collect()
}

#[test]
fn fields_mean_what_they_mean_in_cron() {
    for (schedule, expected) in [
        ("* * * * *", ["11-16 10:31", "11-16 10:32", "11-16 10:33"]),
        ("*/20 * * * *", ["11-16 10:40", "11-16 11:00", "11-16 11:20"]),
        ("5-10/2 * * * *", ["11-16 11:05", "11-16 11:07", "11-16 11:09"]),
        ("50/5 10 * * *", ["11-16 10:50", "11-16 10:55", "11-17 10:50"]),
        ("0 9,17 * * *", ["11-16 17:00", "11-17 09:00", "11-17 17:00"]),
        ("0 3 * * MON-fri", ["11-17 03:00", "11-18 03:00", "11-19 03:00"]),
        ("0 3 * * 5-7", ["11-20 03:00", "11-21 03:00", "11-22 03:00"]),
        ("0 3 * * 7", ["11-22 03:00", "11-29 03:00", "12-06 03:00"]),
        ("0 3 * * 0", ["11-22 03:00", "11-29 03:00", "12-06 03:00"]),
        ("0 3 * * 4/2", ["11-19 03:00", "11-21 03:00", "11-26 03:00"]),
        ("0 0 31 * ?", ["12-31 00:00", "01-31 00:00", "03-31 00:00"]),
        ("0 0 29 Feb *", ["02-29 00:00", "02-29 00:00", "02-29 00:00"]),
        // If days of both kinds are restricted, either matches.
        ("0 0 20 * 2", ["11-17 00:00", "11-20 00:00", "11-24 00:00"]),
        ("@hourly", ["11-16 11:00", "11-16 12:00", "11-16 13:00"]),
        ("@daily", ["11-17 00:00", "11-18 00:00", "11-19 00:00"]),
        ("@midnight", ["11-17 00:00", "11-18 00:00", "11-19 00:00"]),
        ("@weekly", ["11-22 00:00", "11-29 00:00", "12-06 00:00"]),
        ("@monthly", ["12-01 00:00", "01-01 00:00", "02-01 00:00"]),
        ("@yearly", ["01-01 00:00", "01-01 00:00", "01-01 00:00"]),
        ("@annually", ["01-01 00:00", "01-01 00:00", "01-01 00:00"]),
        (" 0\t3 * *  * ", ["11-17 03:00", "11-18 03:00", "11-19 03:00"]),
    ] {
        let expected: Vec<String> = expected.iter().map(|time| format!("{time}+00:00")).collect();
        assert_eq!(next_times(schedule, "UTC", "2026-11-16T10:30:00Z", 3), expected, "{schedule}");
    }
}

#[test]
fn invalid_cron_expression_is_explained_in_a_sentence() {
    for (schedule, zone, expected) in [
        ("60 * * * *", "UTC", r#""60" is not a minute; there are 0 to 59"#),
        ("0 25 * * *", "UTC", r#""25" is not an hour; there are 0 to 23"#),
        ("0 0 0 * *", "UTC", r#""0" is not a day of the month; there are 1 to 31"#),
        ("0 0 * 13 *", "UTC", r#""13" is not a month; there are 1 to 12"#),
        ("0 0 * * 8", "UTC", r#""8" is not a day of the week; there are 0 to 7"#),
        ("0 0 * * +1", "UTC", r#""+1" is not a day of the week"#),
        ("1,,2 * * * *", "UTC", r#""" is not a minute"#),
        ("0 0 * * monday", "UTC", r#""monday" is not a day of the week"#),
        ("30-10 * * * *", "UTC", r#"the range "30-10" goes backwards; write the smaller number first"#),
        ("*/0 * * * *", "UTC", r#""0" is not a step here; there are 1 to 60"#),
        ("*/90 * * * *", "UTC", r#""90" is not a step here; there are 1 to 60"#),
        ("*/x * * * *", "UTC", r#""x" is not a step here"#),
        ("* * * *", "UTC", "it has 4 fields instead of five"),
        ("0 0 0 * * *", "UTC", "it has 6 fields instead of five"),
        ("", "UTC", "it has 0 fields instead of five"),
        ("0 0 31 2 *", "UTC", "there is no such day in any year"),
        ("@reboot", "UTC", "of the names that begin with @ there are @hourly, @daily"),
        ("0 0 * * *", "Mars/Olympus", r#"spec.timeZone "Mars/Olympus" is not the name of a time zone"#),
        ("0 0 * * *", "", r#"spec.timeZone "" is not the name of a time zone"#),
    ] {
        let error = parse(schedule, zone).map(|_| ()).expect_err(schedule);
        assert!(error.to_string().contains(expected), "{schedule}: {error}");
    }
}

#[test]
fn a_time_that_the_clock_leaves_out_is_moved_by_as_much_as_the_clock_is() {
    let spring = |schedule| next_times(schedule, "Europe/Berlin", "2026-03-28T12:00:00Z", 2);
    assert_eq!(spring("30 2 * * *"), ["03-29 03:30+02:00", "03-30 02:30+02:00"]);
    // Two that coincide are one.
    assert_eq!(spring("30 2,3 * * *"), ["03-29 03:30+02:00", "03-30 02:30+02:00"]);
    assert_eq!(next_times("0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z", 1), ["09-06 01:00-03:00"]);
    // Samoa skipped a whole day.
    let samoa = next_times("0 3 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", 3);
    assert_eq!(samoa, ["12-29 03:00-10:00", "12-31 03:00+14:00", "01-01 03:00+14:00"]);
    let left_out_day = next_times("0 3 30 12 *", "Pacific/Apia", "2011-12-30T10:30:00Z", 1);
    assert_eq!(left_out_day, ["12-31 03:00+14:00"]);
}

#[test]
fn a_time_that_the_clock_shows_twice_is_taken_once() {
    let autumn = |schedule| next_times(schedule, "Europe/Berlin", "2026-10-24T12:00:00Z", 4);
    assert_eq!(
        autumn("30 2 * * *"),
        ["10-25 02:30+02:00", "10-26 02:30+01:00", "10-27 02:30+01:00", "10-28 02:30+01:00"]
    );
    assert_eq!(
        autumn("*/30 2 * * *"),
        ["10-25 02:00+02:00", "10-25 02:30+02:00", "10-26 02:00+01:00", "10-26 02:30+01:00"]
    );
    // After the first of the two, the second is not one more.
    let second = next_times("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", 1);
    assert_eq!(second, ["10-26 02:30+01:00"]);
}

#[test]
fn every_hour_is_every_hour_also_when_clocks_are_changed() {
    let spring = next_times("0 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 3);
    assert_eq!(spring, ["03-29 03:00+02:00", "03-29 04:00+02:00", "03-29 05:00+02:00"]);
    let autumn = next_times("*/30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", 4);
    assert_eq!(autumn, ["10-25 02:30+02:00", "10-25 02:00+01:00", "10-25 02:30+01:00", "10-25 03:00+01:00"]);
    let half_an_hour = next_times("15 * * * *", "Australia/Lord_Howe", "2026-10-03T15:00:00Z", 2);
    assert_eq!(half_an_hour, ["10-04 03:15+11:00", "10-04 04:15+11:00"]);
    let havana = next_times("*/30 * * * *", "America/Havana", "2026-11-01T04:00:00Z", 4);
    assert_eq!(havana, ["11-01 00:30-04:00", "11-01 00:00-05:00", "11-01 00:30-05:00", "11-01 01:00-05:00"]);
}

#[test]
fn where_clocks_are_put_back_after_midnight_days_overlap() {
    let twice = next_times("*/30 * * * *", "America/St_Johns", "2010-11-07T02:00:00Z", 3);
    assert_eq!(twice, ["11-07 00:00-02:30", "11-06 23:30-03:30", "11-07 00:00-03:30"]);
    let hourly = cron("0 * * * *", "America/St_Johns");
    assert_eq!(hourly.last_until(time("2010-11-07T02:45:00Z")), Some(time("2010-11-07T02:30:00Z")));
    let nightly = cron("0 0 * * *", "America/St_Johns");
    assert_eq!(nightly.next_after(time("2010-11-06T12:00:00Z")), Some(time("2010-11-07T02:30:00Z")));
    assert_eq!(nightly.last_until(time("2010-11-07T12:00:00Z")), Some(time("2010-11-07T02:30:00Z")));
}

#[test]
fn the_last_time_is_found_however_long_ago_it_was() {
    let last = |schedule: &str, until: &str| cron(schedule, "UTC").last_until(time(until)).map(|it| it.to_string());
    assert_eq!(last("0 3 * * *", "2026-11-16T02:59:59Z").as_deref(), Some("2026-11-15T03:00:00Z"));
    assert_eq!(last("0 3 * * *", "2026-11-16T03:00:00Z").as_deref(), Some("2026-11-16T03:00:00Z"));
    assert_eq!(last("0 0 29 2 *", "2103-01-01T00:00:00Z").as_deref(), Some("2096-02-29T00:00:00Z"));
}

/// The minutes of five days that match a schedule, found independently of the code under test: by checking the clock
/// each minute.
fn times_by_the_clock(minutes: &[i8], hours: Option<&[i8]>, zone: &TimeZone, from: Timestamp) -> Vec<Timestamp> {
    let all: Vec<Timestamp> = (0..5 * 24 * 60).map(|minute| from + SignedDuration::from_mins(minute)).collect();
    let offset = |time: Timestamp| zone.to_offset(time);
    // In five days, clocks are changed at most once.
    let (before, change) = (offset(from), all.iter().copied().find(|time| offset(*time) != offset(from)));
    let shift = change.map_or(SignedDuration::ZERO, |change| {
        SignedDuration::from_secs(i64::from(offset(change).seconds() - before.seconds()))
    });
    let within = |time: Timestamp, length: SignedDuration| {
        change.is_some_and(|change| (change..change + length).contains(&time))
    };
    let fits = |time: Timestamp, offset: Offset| {
        let clock = offset.to_datetime(time);
        minutes.contains(&clock.minute()) && hours.is_none_or(|hours| hours.contains(&clock.hour()))
    };
    let is_time = |time: &Timestamp| {
        let repeated = hours.is_some() && within(*time, -shift);
        let moved = hours.is_some() && within(*time, shift) && fits(*time, before);
        moved || fits(*time, offset(*time)) && !repeated
    };
    all.iter().copied().filter(is_time).collect()
}

fn field(numbers: &[i8]) -> String {
    numbers.iter().map(i8::to_string).collect::<Vec<_>>().join(",")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn looking_forward_and_looking_back_find_what_the_clock_shows(
        minutes in subsequence((0..60).collect::<Vec<i8>>(), 1..4),
        hours in prop::option::of(subsequence((0..24).collect::<Vec<i8>>(), 1..5)),
        name in select(vec!["UTC", "Europe/Berlin", "America/Havana", "Australia/Lord_Howe", "Asia/Kathmandu"]),
        // Half of the days are around those on which clocks are changed.
        day in prop_oneof![0_i64..365, select(vec![66_i64, 87, 93, 276, 297, 304])],
    ) {
        let schedule = format!("{} {} * * *", field(&minutes), hours.as_deref().map_or("*".to_owned(), field));
        let (cron, zone) = (cron(&schedule, name), TimeZone::get(name).expect("a time zone"));
        let from = time("2026-01-01T00:00:00Z") + SignedDuration::from_hours(24 * (day - 2));
        let expected = times_by_the_clock(&minutes, hours.as_deref(), &zone, from);
        let until = from + SignedDuration::from_hours(5 * 24);

        let forward = successors(cron.next_after(from - 1.second()), |last| cron.next_after(*last));
        let forward: Vec<Timestamp> = forward.take_while(|time| *time < until).collect();
        prop_assert_eq!(&forward, &expected, "{} in {}", schedule, name);

        let backward = successors(cron.last_until(until - 1.second()), |next| cron.last_until(*next - 1.second()));
        let mut backward: Vec<Timestamp> = backward.take_while(|time| *time >= from).collect();
        backward.reverse();
        prop_assert_eq!(backward, expected, "{} in {}", schedule, name);
    }
}
