//! Rules on calendars that were looked at by hand, and random ones against a second opinion: what the rules say, written
//! down once more in another way.

use jiff::ToSpan;
use jiff::civil::{Date, date};
use proptest::prelude::*;

use super::*;

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

/// Three backups a day, at 2, 10 and 18 o'clock.
fn three_a_day(from: Date, to: Date, zone: &str) -> Vec<Timestamp> {
    let days = from.series(1.day()).take_while(|day| *day <= to);
    let times = days.flat_map(|day| [2, 10, 18].map(|hour| day.at(hour, 0, 0, 0).in_tz(zone).unwrap().timestamp()));
    times.collect()
}

/// Backups of which no proof was asked.
fn plain(taken_at: &[Timestamp]) -> Vec<Stored> {
    taken_at.iter().map(|&taken_at| Stored { taken_at, proof: Proof::NotAsked }).collect()
}

fn kept(rules: &Retention, taken_at: &[Timestamp], now: Timestamp) -> Vec<Timestamp> {
    kept_of_stored(rules, &plain(taken_at), now).into_iter().map(|it| it.taken_at).collect()
}

fn kept_of_stored(rules: &Retention, stored: &[Stored], now: Timestamp) -> Vec<Stored> {
    let may_go = backups_to_delete(rules, stored, now).unwrap();
    stored.iter().enumerate().filter(|(index, _)| !may_go.contains(index)).map(|(_, it)| *it).collect()
}

/// The days of the month that backups are kept of, of one a day whose proofs are these: `+` is given, `-` is missing, `?` was
/// not written down and `.` was not asked for.
fn days_kept(rules: &Retention, proofs: &str) -> Vec<i8> {
    let proof_of = |letter: char| match letter {
        '+' => Proof::Given,
        '-' => Proof::Missing,
        '?' => Proof::Unrecorded,
        _ => Proof::NotAsked,
    };
    let first = at("2026-01-01T00:00:00Z");
    let on_day = |day: usize| first + (24 * day as i64).hours();
    let stored =
        proofs.chars().enumerate().map(|(day, letter)| Stored { taken_at: on_day(day), proof: proof_of(letter) });
    let kept = kept_of_stored(rules, &stored.collect::<Vec<_>>(), on_day(proofs.len() - 1));
    kept.into_iter().map(|it| it.taken_at.to_zoned(TimeZone::UTC).day()).collect()
}

#[test]
fn newest_proven_backup_is_never_deleted() {
    let last = |keep_last| Retention { keep_last, ..Retention::default() };
    // One that is proven, one that is bad, and one that nobody knows of yet.
    assert_eq!(days_kept(&last(1), "+--"), [1, 3]);
    assert_eq!(days_kept(&last(1), "++--"), [2, 4]);
    assert_eq!(days_kept(&last(1), "+---------"), [1, 10]);
    // Only some are proven: those that were never asked for a proof are no proof that the next is good.
    assert_eq!(days_kept(&last(2), "+....."), [1, 5, 6]);
    assert_eq!(days_kept(&last(2), "++...-"), [2, 4, 5, 6]);
    let days = Retention { keep_days: 1, ..Retention::default() };
    assert_eq!(days_kept(&days, "+.......-"), [1, 8, 9]);
}

#[test]
fn unproven_backup_does_not_displace_a_kept_one() {
    let last = |keep_last| Retention { keep_last, ..Retention::default() };
    assert_eq!(days_kept(&last(1), "..-"), [2, 3]);
    assert_eq!(days_kept(&last(2), "+++-"), [2, 3, 4], "it is one of the last two, but two good ones are kept besides");
    assert_eq!(days_kept(&last(2), "++--+"), [2, 4, 5]);
    assert_eq!(days_kept(&last(3), "+++++"), [3, 4, 5], "if all are proven, there are as many as the rule says");
    let weekly = Retention { keep_weekly: 1, ..Retention::default() };
    // 5 January is a Monday.
    assert_eq!(days_kept(&weekly, "++++-"), [4, 5]);
}

#[test]
fn retention_without_any_proof_applies_as_without_verification() {
    let rules = Retention { keep_last: 2, ..Retention::default() };
    assert_eq!(days_kept(&rules, "-----"), [4, 5]);
    assert_eq!(days_kept(&rules, "....."), [4, 5]);
}

#[test]
fn backup_with_unrecorded_proof_is_kept_until_a_newer_one_is_proven() {
    let last = |keep_last| Retention { keep_last, ..Retention::default() };
    assert_eq!(days_kept(&last(1), "??-"), [1, 2, 3]);
    assert_eq!(days_kept(&last(1), "??."), [1, 2, 3]);
    assert_eq!(days_kept(&last(1), "+?-"), [1, 2, 3], "nobody knows whether the second is good");
    assert_eq!(days_kept(&last(1), "??+"), [3]);
    assert_eq!(days_kept(&last(1), "?+?-"), [2, 3, 4]);
    assert_eq!(days_kept(&last(1), ".?"), [1, 2], "it takes no other one's place");
    assert_eq!(days_kept(&last(2), "???+"), [3, 4], "then it goes as the rules say");
}

#[test]
fn backup_that_may_be_in_verification_is_kept() {
    let rules = Retention { keep_last: 1, ..Retention::default() };
    let now = at("2026-01-02T00:00:00Z");
    let minutes_kept = |backups: &[(i64, Proof)]| {
        let stored = backups.iter().map(|&(ago, proof)| Stored { taken_at: now - ago.minutes(), proof });
        let kept = kept_of_stored(&rules, &stored.collect::<Vec<_>>(), now);
        kept.into_iter().map(|it| now.duration_since(it.taken_at).as_mins()).collect::<Vec<_>>()
    };
    let (missing, given, plain) = (Proof::Missing, Proof::Given, Proof::NotAsked);
    assert_eq!(minutes_kept(&[(5, missing), (0, missing)]), [5, 0]);
    assert_eq!(minutes_kept(&[(300, missing), (0, missing)]), [0]);
    assert_eq!(minutes_kept(&[(900, given), (600, given), (300, missing), (0, missing)]), [600, 0]);
    // One before an upgrade, of which no proof is asked.
    assert_eq!(minutes_kept(&[(60, given), (5, missing), (0, plain)]), [60, 5, 0]);
    // Proofs take longer than it is to the next backup, and the second is through first.
    assert_eq!(minutes_kept(&[(40, missing), (30, given), (20, missing), (0, missing)]), [40, 30, 20, 0]);
    assert_eq!(minutes_kept(&[(120, missing), (119, missing), (0, given)]), [119, 0]);
}

#[test]
fn days_of_month_keep_one_backup_of_the_1st_and_the_15th_of_the_previous_month() {
    let rules = Retention { days_of_month: vec![1, 15], months: 1, keep_days: 2, ..Retention::default() };
    let backups = three_a_day(date(2026, 7, 20), date(2026, 9, 10), "UTC");
    let expected = [
        "2026-08-01T18:00:00Z",
        "2026-08-15T18:00:00Z",
        "2026-09-01T18:00:00Z",
        // The last two days.
        "2026-09-08T18:00:00Z",
        "2026-09-09T02:00:00Z",
        "2026-09-09T10:00:00Z",
        "2026-09-09T18:00:00Z",
        "2026-09-10T02:00:00Z",
        "2026-09-10T10:00:00Z",
        "2026-09-10T18:00:00Z",
    ];
    assert_eq!(kept(&rules, &backups, at("2026-09-10T18:00:00Z")), expected.map(at));
}

#[test]
fn day_of_a_backup_is_that_of_the_time_zone() {
    let rules =
        |time_zone: &str| Retention { days_of_month: vec![1], time_zone: time_zone.into(), ..Retention::default() };
    // In Tokyo it is the 1st already.
    let backups = ["2026-08-31T16:00:00Z", "2026-09-01T16:00:00Z", "2026-09-02T16:00:00Z"].map(at);
    let now = at("2026-09-03T00:00:00Z");
    assert_eq!(kept(&rules("Asia/Tokyo"), &backups, now), [backups[0], backups[2]]);
    assert_eq!(kept(&rules("UTC"), &backups, now), [backups[1], backups[2]]);
    assert_eq!(kept(&rules(""), &backups, now), [backups[1], backups[2]]);
}

#[test]
fn day_with_a_clock_change_is_one_day() {
    let zone = "Europe/Berlin";
    let rules =
        |keep_days, keep_daily| Retention { keep_days, keep_daily, time_zone: zone.into(), ..Retention::default() };
    let on = |time: &str| format!("{time}[{zone}]").parse::<Zoned>().unwrap().timestamp();
    // 25 hours long: 2:30 comes twice.
    let long = [
        on("2026-10-24T12:00"),
        at("2026-10-25T00:30:00Z"),
        at("2026-10-25T01:30:00Z"),
        on("2026-10-25T12:00"),
        on("2026-10-26T12:00"),
    ];
    assert_eq!(kept(&rules(0, 2), &long, on("2026-10-26T13:00")), [long[3], long[4]]);
    assert_eq!(kept(&rules(2, 0), &long, on("2026-10-26T12:00")), long, "two days are 49 hours");
    // 23 hours long.
    let short = [on("2026-03-28T12:00"), on("2026-03-29T12:00"), on("2026-03-30T12:00")];
    assert_eq!(kept(&rules(1, 0), &short, on("2026-03-30T12:00")), [short[1], short[2]]);
    assert_eq!(kept(&rules(1, 0), &short, on("2026-03-30T12:01")), [short[2]]);
}

#[test]
fn newest_of_each_week_and_month_is_kept_despite_gaps() {
    let backups =
        ["2026-01-04T10:00:00Z", "2026-01-05T10:00:00Z", "2026-01-11T10:00:00Z", "2026-03-31T10:00:00Z"].map(at);
    let now = at("2026-04-02T00:00:00Z");
    let weekly = Retention { keep_weekly: 3, ..Retention::default() };
    assert_eq!(kept(&weekly, &backups, now), [backups[0], backups[2], backups[3]], "weeks begin on Mondays");
    let monthly = Retention { keep_monthly: 2, ..Retention::default() };
    assert_eq!(kept(&monthly, &backups, now), [backups[2], backups[3]]);
    // The first days of 2027 are in the last week of 2026.
    let turn = ["2026-12-31T10:00:00Z", "2027-01-02T10:00:00Z", "2027-01-04T10:00:00Z"].map(at);
    let two = Retention { keep_weekly: 2, ..Retention::default() };
    assert_eq!(kept(&two, &turn, at("2027-01-05T00:00:00Z")), [turn[1], turn[2]]);
}

#[test]
fn month_before_the_31st_is_the_last_day_of_a_shorter_month() {
    let rules = Retention { keep_months: 1, ..Retention::default() };
    let backups = ["2026-02-27T12:00:00Z", "2026-02-28T12:00:00Z", "2026-03-31T12:00:00Z"].map(at);
    assert_eq!(kept(&rules, &backups, at("2026-03-31T12:00:00Z")), [backups[1], backups[2]]);
}

#[test]
fn newest_backup_is_kept_at_any_age() {
    let rules = Retention { keep_days: 1, ..Retention::default() };
    let backups = ["2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z"].map(at);
    assert_eq!(kept(&rules, &backups, at("2026-01-01T00:00:00Z")), [backups[1]]);
}

#[test]
fn backup_from_the_future_is_kept() {
    let rules = Retention { keep_last: 1, ..Retention::default() };
    // The second was taken while the clock was ahead.
    let backups = ["2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", "2026-01-03T00:00:00Z"].map(at);
    assert_eq!(kept(&rules, &backups, at("2026-01-03T00:00:01Z")), [backups[1], backups[2]]);
}

#[test]
fn backups_of_the_same_time_are_kept_only_up_to_the_limit() {
    let backups = [at("2026-01-01T00:00:00Z"); 5];
    let may_go = |rules| backups_to_delete(&rules, &plain(&backups), at("2026-01-02T00:00:00Z")).unwrap();
    assert_eq!(may_go(Retention { keep_last: 2, ..Retention::default() }), [0, 1, 2]);
    assert_eq!(may_go(Retention { keep_daily: 3, ..Retention::default() }), [0, 1, 2, 3]);
}

#[test]
fn empty_retention_keeps_everything() {
    let backups = three_a_day(date(2026, 1, 1), date(2026, 1, 3), "UTC");
    assert_eq!(kept(&Retention::default(), &backups, at("2026-02-01T00:00:00Z")), backups);
}

#[test]
fn retention_with_unknown_time_zone_deletes_nothing() {
    let rules = Retention { keep_last: 1, time_zone: "Mars/Olympus".into(), ..Retention::default() };
    let failure =
        backups_to_delete(&rules, &plain(&[at("2026-01-01T00:00:00Z")]), at("2026-02-01T00:00:00Z")).unwrap_err();
    assert_eq!(failure.reason, Reason::InvalidRequest);
    assert!(failure.message.contains("Mars/Olympus"), "{failure:?}");
}

#[test]
fn keep_last_for_earlier_agents_is_ignored_by_current_ones() {
    let read = |task: &str| serde_json::from_str::<Retention>(task).unwrap();
    assert_eq!(days_kept(&read(r#"{"keepLast": 2, "keepLastWithProofs": 1}"#), "+++"), [3]);
    assert_eq!(days_kept(&read(r#"{"keepLast": 2, "keepLastWithProofs": 0, "keepDays": 1}"#), "++++"), [3, 4]);
    assert_eq!(days_kept(&read(r#"{"keepLast": 2}"#), "+++"), [2, 3], "the operator is of an earlier version");
}

#[test]
fn retention_rules_without_end_keep_everything() {
    let backups = three_a_day(date(2026, 1, 1), date(2026, 1, 3), "UTC");
    for rules in [
        Retention { keep_last: u32::MAX, ..Retention::default() },
        Retention { keep_days: u32::MAX, ..Retention::default() },
        Retention { keep_weeks: u32::MAX, ..Retention::default() },
        Retention { keep_months: u32::MAX, ..Retention::default() },
    ] {
        assert_eq!(kept(&rules, &backups, at("2026-02-01T00:00:00Z")), backups, "{rules:?}");
    }
}

/// The second opinion: asks of one backup whether it stays, by looking at all the others.
fn stays(rules: &Retention, all: &[Timestamp], index: usize, now: Timestamp) -> bool {
    let zone = TimeZone::get(&rules.time_zone).unwrap();
    let local = |index: usize| all[index].to_zoned(zone.clone());
    let is_newer = |a: usize, b: usize| (all[a], a) > (all[b], b);
    let past: Vec<usize> = (0..all.len()).filter(|&other| all[other] <= now).collect();
    let newer = |index: usize| past.iter().copied().filter(|&other| is_newer(other, index)).collect::<Vec<_>>();
    if all[index] > now || newer(index).is_empty() {
        return true;
    }
    let now = now.to_zoned(zone.clone());
    let is_within = |number: u32, span: Span| number > 0 && local(index) >= &now - span;
    // The names of the days, weeks and months sort like time does.
    let is_newest_of = |format: &str, periods: u32| {
        let name = |index: usize| local(index).strftime(format).to_string();
        let mut newer_names: Vec<_> = newer(index).into_iter().map(name).collect();
        newer_names.sort();
        newer_names.dedup();
        newer_names.len() < periods as usize && !newer_names.contains(&name(index))
    };
    let is_of_a_day = || {
        let day = local(index).date();
        let first_of_month = now.date().first_of_month();
        let earliest = first_of_month - i64::from(rules.months).months();
        let is_newest = !newer(index).into_iter().any(|other| local(other).date() == day);
        rules.days_of_month.contains(&(day.day() as u8)) && day >= earliest && is_newest
    };
    newer(index).len() < rules.keep_last as usize
        || is_within(rules.keep_days, i64::from(rules.keep_days).days())
        || is_within(rules.keep_weeks, (7 * i64::from(rules.keep_weeks)).days())
        || is_within(rules.keep_months, i64::from(rules.keep_months).months())
        || is_newest_of("%Y-%m-%d", rules.keep_daily)
        || is_newest_of("%G-%V", rules.keep_weekly)
        || is_newest_of("%Y-%m", rules.keep_monthly)
        || is_of_a_day()
}

/// The same with proofs: it stays if it would among all, or among those that can be relied on, or if it is or may be proven and none
/// that is newer is, or if it may still be proven.
fn stays_with_proofs(rules: &Retention, all: &[Stored], index: usize, now: Timestamp) -> bool {
    let times = |some: &[usize]| some.iter().map(|&it| all[it].taken_at).collect::<Vec<_>>();
    let is_among = |some: &[usize]| {
        some.iter().position(|&it| it == index).is_some_and(|position| stays(rules, &times(some), position, now))
    };
    let of = |wanted: &dyn Fn(Proof) -> bool| (0..all.len()).filter(|&it| wanted(all[it].proof)).collect::<Vec<_>>();
    let is_newer = |it: usize| (all[it].taken_at, it) > (all[index].taken_at, index) && all[it].taken_at <= now;
    let none_newer_is_proven = !of(&|proof| proof == Proof::Given).into_iter().any(is_newer);
    is_among(&of(&|_| true))
        || is_among(&of(&|proof| proof != Proof::Missing && proof != Proof::Unrecorded))
        || match all[index].proof {
            Proof::Given | Proof::Unrecorded => none_newer_is_proven,
            Proof::Missing => all[index].taken_at + 2.hours() > now,
            Proof::NotAsked => false,
        }
}

fn any_proof() -> impl Strategy<Value = Proof> {
    prop::sample::select(vec![Proof::NotAsked, Proof::Unrecorded, Proof::Missing, Proof::Given])
}

prop_compose! {
    fn any_rules()(
        numbers in prop::array::uniform7(prop_oneof![2 => Just(0u32), 1 => 1u32..10]),
        days_of_month in prop::collection::vec(1u8..=31, 0..3),
        months in 0u32..4,
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Auckland", "Australia/Lord_Howe"]),
    ) -> Retention {
        let [keep_last, keep_days, keep_weeks, keep_months, keep_daily, keep_weekly, keep_monthly] = numbers;
        let time_zone = zone.to_owned();
        Retention {
            keep_last, keep_days, keep_weeks, keep_months, keep_daily, keep_weekly, keep_monthly, days_of_month, months,
            time_zone, ..Retention::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// Somebody who sees only some of the backups lets none of them go that would stay if all were seen.
    #[test]
    fn retention_with_a_partial_listing_deletes_nothing_more(
        rules in any_rules(),
        proofs in prop::collection::vec(any_proof(), 120),
        seen in prop::collection::vec(any::<bool>(), 120),
    ) {
        let times = three_a_day(date(2026, 9, 20), date(2026, 10, 29), &rules.time_zone);
        let now = *times.last().unwrap();
        let all: Vec<_> = times.into_iter().zip(proofs).map(|(taken_at, proof)| Stored { taken_at, proof }).collect();
        let some: Vec<_> = all.iter().zip(&seen).filter(|(_, seen)| **seen).map(|(it, _)| *it).collect();
        let stay = kept_of_stored(&rules, &all, now);
        let stay_of_some = kept_of_stored(&rules, &some, now);
        prop_assert!(some.iter().filter(|it| stay.contains(it)).all(|it| stay_of_some.contains(it)));
    }

    /// Three backups a day for more than sixty days, some of them late, missed, in disorder, or under a clock that went
    /// wrong. After each day, those go that may.
    #[test]
    fn daily_pruning_keeps_what_the_rules_specify(
        rules in any_rules(),
        first in prop::sample::select(vec![date(2026, 1, 20), date(2026, 3, 1), date(2026, 8, 31), date(2026, 10, 1), date(2026, 12, 1)]),
        faults in prop::collection::vec((0usize..190, -5000i64..5000), 0..40),
        proofs in prop::collection::vec(any_proof(), 190),
    ) {
        let mut plan = three_a_day(first, first + 62.days(), &rules.time_zone);
        for (index, minutes) in &faults {
            let index = index % plan.len();
            plan[index] += minutes.minutes();
        }
        let mut there: Vec<Stored> = Vec::new();
        for (index, (&taken_at, &proof)) in plan.iter().zip(&proofs).enumerate() {
            there.push(Stored { taken_at, proof });
            if index % 3 < 2 {
                continue;
            }
            let now = taken_at;
            let may_go = backups_to_delete(&rules, &there, now).unwrap();
            if rules.says_nothing() {
                prop_assert!(may_go.is_empty());
                continue;
            }
            for index in 0..there.len() {
                let stays = stays_with_proofs(&rules, &there, index, now);
                prop_assert_eq!(!may_go.contains(&index), stays, "{:?} of {:?} at {}", there[index], there, now);
            }
            there = kept_of_stored(&rules, &there, now);
            prop_assert!(!there.is_empty());
        }
    }
}
