//! Weeks of a schedule: an operator that is down for a while or crashes between two steps, users who change their
//! minds, and backups that take long and fail. Whatever happens, no time is backed up twice and none is forgotten.

use std::collections::BTreeMap;

use etcd_operator_api::{ConcurrencyPolicy, EtcdBackupSchedule, EtcdBackupScheduleStatus};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;
use proptest::sample::select;

use super::support::{CLUSTER, nightly, time};
use crate::schedule::cron::{Cron, parse};
use crate::schedule::plan::{Begin, Deletion, Observed, ObservedCluster, Plan, plan};
use crate::schedule::scheduled_backup::{End, Run, ScheduledBackup};

/// Schedules that users switch between, in runs of two kinds.
const SPARSE: [(&str, &str); 4] =
    [("0 3 * * *", "UTC"), ("30 2 * * *", "Europe/Berlin"), ("0 */6 * * 1-5", "America/Havana"), ("@hourly", "UTC")];
const DENSE: [(&str, &str); 3] = [("* * * * *", "UTC"), ("*/5 * * * *", "Europe/Berlin"), ("7-59/13 * * * *", "UTC")];

#[derive(Clone, Debug)]
enum Event {
    /// Time passes, and the operator reconciles when it planned to.
    Pass(SignedDuration),
    /// The operator is down.
    Absence(SignedDuration),
    /// The operator stops after so many of the steps that it takes the next time it has anything to do, and restarts.
    Crash(usize, SignedDuration),
    Change(usize),
    Suspend,
    Resume,
}

#[derive(Clone, Debug)]
struct Story {
    dense: bool,
    policy: ConcurrencyPolicy,
    deadline: Option<i64>,
    limits: (i32, i32),
    events: Vec<Event>,
    /// How long backups take, and whether they succeed.
    ends: Vec<(SignedDuration, bool)>,
}

fn stories() -> impl Strategy<Value = Story> {
    any::<bool>().prop_flat_map(|dense| {
        // Times between reconciles, and how long backups take: from seconds to several times the interval of the
        // schedule.
        let longest: i64 = if dense { 40 * 60 } else { 3 * 86_400 };
        let length = || (1..longest).prop_map(SignedDuration::from_secs);
        let event = prop_oneof![
            4 => length().prop_map(Event::Pass),
            2 => length().prop_map(Event::Absence),
            3 => (0_usize..5, 1_i64..600).prop_map(|(steps, away)| Event::Crash(steps, SignedDuration::from_secs(away))),
            1 => (0_usize..4).prop_map(Event::Change),
            1 => Just(Event::Suspend),
            1 => Just(Event::Resume),
        ];
        let ends = (1..longest / 4).prop_map(SignedDuration::from_secs).boxed();
        (
            select(vec![ConcurrencyPolicy::Allow, ConcurrencyPolicy::Forbid, ConcurrencyPolicy::Replace]),
            prop::option::of(10..longest / 2),
            (0..4, 0..4),
            prop::collection::vec(event, 1..40),
            prop::collection::vec((ends, any::<bool>()), 1..20),
        )
            .prop_map(move |(policy, deadline, limits, events, ends)| Story {
                dense,
                policy,
                deadline,
                limits,
                events,
                ends,
            })
    })
}

/// The whole state, and what actually happened.
struct World {
    now: Timestamp,
    schedule: EtcdBackupSchedule,
    backups: BTreeMap<String, ScheduledBackup>,
    /// When the running backups will end, and how.
    to_end: BTreeMap<String, End>,
    ends: Vec<(SignedDuration, bool)>,
    made: Vec<Begin>,
    /// The results of backups that were not stopped, by number.
    outcomes: BTreeMap<i64, End>,
    /// Since when the current schedule has been in effect.
    in_force_since: Timestamp,
    in_force: Option<String>,
    /// The steps left until the operator crashes.
    steps_left: Option<usize>,
    next_look: Option<Timestamp>,
}

struct Crashed;

impl World {
    fn new(story: &Story) -> Self {
        let mut schedule = nightly();
        // A week before clocks are set back in Europe, and two before they are in America.
        let now = time("2026-10-18T12:00:00Z");
        schedule.metadata.creation_timestamp = Some(Time(now));
        schedule.spec.concurrency_policy = story.policy;
        schedule.spec.starting_deadline_seconds = story.deadline;
        (schedule.spec.successful_backups_history_limit, schedule.spec.failed_backups_history_limit) = story.limits;
        let mut world = World {
            now,
            schedule,
            backups: BTreeMap::new(),
            to_end: BTreeMap::new(),
            ends: story.ends.clone(),
            made: Vec::new(),
            outcomes: BTreeMap::new(),
            in_force_since: now,
            in_force: None,
            steps_left: None,
            next_look: Some(now),
        };
        world.change(story.dense, 0);
        world
    }

    fn change(&mut self, dense: bool, choice: usize) {
        let (schedule, zone) = if dense { DENSE[choice % DENSE.len()] } else { SPARSE[choice] };
        (self.schedule.spec.schedule, self.schedule.spec.time_zone) = (schedule.to_owned(), zone.to_owned());
        self.next_look = Some(self.now);
    }

    fn written_form(&self) -> String {
        format!("{} {}", self.schedule.spec.schedule, self.schedule.spec.time_zone)
    }

    fn cron(&self) -> Cron {
        parse(&self.schedule.spec.schedule, &self.schedule.spec.time_zone).unwrap_or_else(|error| panic!("{error}"))
    }

    fn plan(&self) -> Plan {
        let taken: Vec<ScheduledBackup> = self.backups.values().cloned().collect();
        let cluster = ObservedCluster::Present { uid: CLUSTER.to_owned() };
        plan(&Observed {
            schedule: &self.schedule,
            taken: &taken,
            cluster,
            deletion: Deletion::NotBegun,
            now: self.now,
        })
    }

    /// Before each step the operator may crash.
    fn step(&mut self) -> Result<(), Crashed> {
        match &mut self.steps_left {
            Some(0) => Err(Crashed),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// What the operator does in each reconcile: the same steps in the same order, each of which may be its last.
    fn observed(&mut self) -> Result<(), Crashed> {
        for _ in 0..20 {
            let planned = self.plan();
            if let Some(begin) = &planned.begin {
                for name in &planned.stop {
                    self.step()?;
                    self.backups.remove(name);
                    self.to_end.remove(name);
                }
                self.step()?;
                self.make(begin);
            }
            if self.schedule.status.as_ref() == Some(&planned.status) {
                for name in &planned.beyond_history_limits {
                    self.step()?;
                    let gone = self.backups.remove(name);
                    assert!(gone.is_some_and(|it| it.end.is_some()), "{name} ran, or was not there");
                }
            }
            let planned = self.plan();
            assert_eq!(planned.begin.as_ref().filter(|_| planned.stop.is_empty()), None, "one was begun just now");
            if self.schedule.status.as_ref() == Some(&planned.status) && planned.beyond_history_limits.is_empty() {
                self.next_look = planned.again;
                self.check_that_nothing_is_forgotten();
                return Ok(());
            }
            // A new status triggers another reconcile.
            self.step()?;
            self.write_status(planned.status);
        }
        panic!("it never comes to rest: {:?}", self.plan());
    }

    /// A change counts from when its observation is recorded; before the first time, from the creation.
    fn write_status(&mut self, status: EtcdBackupScheduleStatus) {
        let in_force = Some(self.written_form()).filter(|_| !self.schedule.spec.suspend);
        let is_first = self.schedule.status.is_none() && in_force.is_some();
        if self.in_force != in_force && !is_first {
            self.in_force_since = self.now;
        }
        self.in_force = in_force;
        self.schedule.status = Some(status);
    }

    fn make(&mut self, begin: &Begin) {
        assert!(!self.schedule.spec.suspend, "{begin:?} was begun while suspended");
        let is_known = self.schedule.status.is_none() || self.in_force == Some(self.written_form());
        assert!(is_known, "{begin:?} was begun by a schedule that had just been changed");
        let cron = self.cron();
        assert_eq!(cron.last_until(self.now), Some(begin.at), "{begin:?} is not the latest time");
        assert!(begin.at > self.in_force_since, "{begin:?} was due before the schedule was in force");
        let late = self.now.duration_since(begin.at).as_secs();
        let deadline = self.schedule.spec.starting_deadline_seconds;
        assert!(deadline.is_none_or(|deadline| late <= deadline), "{begin:?} is {late} s late");
        if self.schedule.spec.concurrency_policy != ConcurrencyPolicy::Allow {
            assert_eq!(self.to_end.len(), 0, "{begin:?} was begun while another one ran");
        }
        // The API server rejects a second one of the same name; creating one for the same time must not even be
        // attempted.
        assert!(self.made.iter().all(|it| it.at != begin.at), "{begin:?} was begun before");
        assert_eq!(
            begin.number,
            1 + self.made.last().map_or(0, |it| it.number),
            "a number was left out or given twice"
        );
        let (length, succeeded) = self.ends[self.made.len() % self.ends.len()];
        let run = Some(Run { at: begin.at, number: begin.number });
        let taken = ScheduledBackup { name: begin.name.clone(), run, end: None, deleting: false };
        self.to_end.insert(begin.name.clone(), End { at: self.now + length, succeeded });
        self.backups.insert(begin.name.clone(), taken);
        self.made.push(begin.clone());
    }

    /// The latest time was backed up, or there is a good reason why not. This holds at each reconcile, so for all
    /// times.
    fn check_that_nothing_is_forgotten(&self) {
        let latest = self.cron().last_until(self.now).filter(|latest| *latest > self.in_force_since);
        let Some(latest) = latest.filter(|_| self.in_force.is_some()) else { return };
        // One for a later time makes up for it: a schedule that was in effect before, and never recorded, may have
        // started that.
        let made = self.made.iter().any(|it| it.at >= latest);
        let late = self.now.duration_since(latest).as_secs();
        let too_late = self.schedule.spec.starting_deadline_seconds.is_some_and(|deadline| late > deadline);
        let waits = self.schedule.spec.concurrency_policy == ConcurrencyPolicy::Forbid && !self.to_end.is_empty();
        assert!(made || too_late || waits, "{latest} is forgotten at {}", self.now);
    }

    /// Lets time pass until something happens: a backup ends, or the operator wants to reconcile.
    fn pass(&mut self, until: Timestamp, is_up: bool) -> Result<(), Crashed> {
        loop {
            let observed = self.next_look.filter(|_| is_up).map(|observed| observed.max(self.now));
            let end = self.to_end.values().map(|end| end.at).min();
            let Some(next) = observed.into_iter().chain(end).min().filter(|next| *next <= until) else {
                self.now = until;
                return Ok(());
            };
            let before = (self.now, self.in_force.clone());
            self.now = next;
            let ended: Vec<String> =
                self.to_end.iter().filter(|(_, end)| end.at <= next).map(|(name, _)| name.clone()).collect();
            for name in ended {
                let end = self.to_end.remove(&name);
                let taken = self.backups.get_mut(&name).expect("what runs is there");
                taken.end = end;
                self.outcomes.extend(taken.run.map(|run| run.number).zip(end));
            }
            if is_up {
                // While the operator is up, it reconciles at each time of the schedule.
                let slept_through = self.cron().next_after(before.0).filter(|time| *time < next);
                let asleep =
                    slept_through.filter(|_| before.1 == Some(self.written_form()) && self.next_look.is_some());
                assert_eq!(asleep, None, "nobody looked");
                self.observed()?;
            }
        }
    }

    fn live_through(&mut self, event: &Event, dense: bool) {
        match event {
            Event::Pass(length) => self.pass_until_crash(self.now + *length),
            Event::Absence(length) => self.be_away(*length),
            Event::Crash(steps, away) => {
                self.steps_left = Some(*steps);
                self.pass_until_crash(self.now + SignedDuration::from_hours(if dense { 1 } else { 48 }));
                self.be_away(*away);
            }
            Event::Change(choice) => self.change(dense, *choice),
            Event::Suspend | Event::Resume => {
                self.schedule.spec.suspend = matches!(event, Event::Suspend);
                self.next_look = Some(self.now);
            }
        }
    }

    fn pass_until_crash(&mut self, until: Timestamp) {
        // It is down at once, and restarts after a while.
        if self.pass(until, true).is_err() {
            self.be_away(SignedDuration::from_secs(1));
        }
        self.steps_left = None;
    }

    fn be_away(&mut self, length: SignedDuration) {
        self.steps_left = None;
        assert!(self.pass(self.now + length, false).is_ok(), "nobody is there who could crash");
        self.next_look = Some(self.now);
    }

    /// At the end, when nothing runs any more, everything is counted.
    fn check_the_end(&mut self) {
        self.schedule.spec.suspend = true;
        let last = self.to_end.values().map(|end| end.at).max().unwrap_or(self.now);
        self.next_look = Some(self.now);
        self.pass_until_crash(last.max(self.now));
        let status = self.schedule.status.clone().expect("it was looked at");
        let failures = self.outcomes.values().rev().take_while(|end| !end.succeeded).count();
        assert_eq!(usize::try_from(status.consecutive_failures), Ok(failures));
        let last_success = self.outcomes.values().filter(|end| end.succeeded).map(|end| end.at).max();
        assert_eq!(status.last_successful_time.map(|it| it.0), last_success);
        assert_eq!(usize::try_from(status.backups_taken), Ok(self.made.len()));
        assert_eq!(status.active, Vec::<String>::new());
        let kept = |succeeded: bool| {
            let ends = self.backups.values().filter_map(|it| it.end).filter(|end| end.succeeded == succeeded);
            i32::try_from(ends.count()).expect("a small number")
        };
        assert!(kept(true) <= self.schedule.spec.successful_backups_history_limit);
        assert!(kept(false) <= self.schedule.spec.failed_backups_history_limit);
    }
}

/// Executes a story from start to end.
fn tell(story: &Story) {
    let mut world = World::new(story);
    for event in &story.events {
        world.live_through(event, story.dense);
    }
    world.check_the_end();
}

#[test]
fn change_after_a_crash_before_the_first_status_begins_nothing_for_an_earlier_time() {
    let second = SignedDuration::from_secs(1);
    let away = Event::Absence(SignedDuration::from_hours(15));
    tell(&Story {
        dense: false,
        policy: ConcurrencyPolicy::Allow,
        deadline: None,
        limits: (0, 0),
        events: vec![away, Event::Crash(1, second), Event::Change(1), Event::Crash(1, second)],
        ends: vec![(second * 3, false)],
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_time_is_backed_up_twice_and_none_is_forgotten(story in stories()) {
        tell(&story);
    }
}
