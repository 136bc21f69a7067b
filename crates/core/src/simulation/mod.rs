//! The simulation: a small world in which plans are executed step by step while faults strike between any two steps.
//! The rules must hold after every event; and once no more faults occur, the cluster must reach the desired state, or
//! report that it can't.
//!
//! `world` is the state, `kubernetes` and `etcd` what those do by themselves, `observe` what the operator sees of it;
//! `operator` plans and reports, `steps` takes the steps, `effects` and `in_place` have what a step does, and `templates` what members are created
//! from; `faults` may happen, `strangers` get in the way, `rules` must hold, `mutants` are operators that break them, and
//! `coverage` counts what was met; `random` makes chance repeatable, `shared` makes copies cheap, and `trace` describes
//! the steps. No decision is made here: the planner is the one that the operator uses. The same seed always gives the same
//! run:
//!
//! ```text
//! make simulate SEEDS=1000000     as many runs as you like, on all cores
//! make simulate SEED=4711         one of them, traced step by step
//! ```

mod coverage;
mod effects;
mod etcd;
mod faults;
mod in_place;
mod kubernetes;
mod mutants;
mod observe;
mod operator;
mod random;
mod rules;
mod shared;
mod steps;
mod strangers;
mod templates;
mod trace;
mod world;

use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use coverage::Coverage;
use mutants::Mutant;
use operator::Operator;
use random::Random;
use world::{Broken, World};

use crate::cluster::tests::support::seconds;

/// The number of runs in `cargo test`: some seconds' worth.
const SEEDS: u64 = 4000;
/// The number of runs that a mutant may survive.
const SEEDS_FOR_MUTANTS: u64 = 40_000;

/// The number of runs after which a long simulation reports its progress.
const REPORT_EVERY: u64 = 50_000;

/// A run that broke a rule.
struct Failure {
    seed: u64,
    broken: Broken,
    trace: Vec<String>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in &self.trace {
            writeln!(formatter, "{line}")?;
        }
        writeln!(formatter, "BROKEN: {}", self.broken)?;
        write!(formatter, "This was seed {0}: make simulate SEED={0}", self.seed)
    }
}

/// Simulates the run of a seed, with a trace of every step if `traced`.
fn tell(seed: u64, mutant: Option<Mutant>, traced: bool, coverage: &Rc<Coverage>) -> Result<Vec<String>, Failure> {
    let mut world = World::new(Random::seeded(seed), Rc::clone(coverage));
    world.trace = traced.then(Vec::new);
    let (storage, replicas, nodes) = (world.storage, world.api.cluster.replicas, world.machines.len());
    world.note(|| format!("{replicas} members on {nodes} nodes, storage {storage:?}"));
    let mut operator = Operator::new(&world, mutant);
    let outcome = live(&mut world, &mut operator);
    let trace = world.trace.take().unwrap_or_default();
    outcome.map(|()| trace.clone()).map_err(|broken| Failure { seed, broken, trace })
}

fn live(world: &mut World, operator: &mut Operator) -> Result<(), Broken> {
    // Most runs start with a healthy cluster.
    if world.random.percent(80) {
        for _ in 0..8 {
            operator.cache = world.api.clone();
            operator.reconcile(world)?;
            world.settle()?;
            world.now += seconds(5);
        }
    }
    for _ in 0..world.random.below(150) {
        faults::strike(world, operator)?;
        rules::check(world)?;
    }
    rules::stop_faults(world, operator)
}

/// The first seed that breaks a rule, with its trace; for a mutant, one that breaks the rule that it should. If there is
/// none, what the runs met.
fn run_all(seeds: std::ops::Range<u64>, mutant: Option<Mutant>) -> Result<Coverage, Failure> {
    let is_meant = |failure: &Failure| mutant.is_none_or(|mutant| failure.broken.contains(mutant.expected_violation()));
    let next = AtomicU64::new(seeds.start);
    let failed: Mutex<Option<u64>> = Mutex::new(None);
    let total = Mutex::new(Coverage::default());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let coverage = Rc::new(Coverage::default());
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let earlier = *failed.lock().unwrap();
                    if seed >= seeds.end || earlier.is_some_and(|failed| failed < seed) {
                        break;
                    }
                    if seed > 0 && seed.is_multiple_of(REPORT_EVERY) {
                        println!("{seed} seeds so far");
                    }
                    if tell(seed, mutant, false, &coverage).is_err_and(|failure| is_meant(&failure)) {
                        let mut failed = failed.lock().unwrap();
                        *failed = Some(failed.map_or(seed, |earlier| earlier.min(seed)));
                    }
                }
                total.lock().unwrap().add(&coverage);
            });
        }
    });
    match failed.into_inner().unwrap() {
        None => Ok(total.into_inner().unwrap()),
        Some(seed) => Err(tell(seed, mutant, true, &Rc::default()).expect_err("a seed fails every time")),
    }
}

fn number_from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text}")))
}

#[test]
fn no_rule_breaks_and_every_cluster_becomes_what_was_asked_for() {
    if let Some(seed) = number_from_environment("SIMULATE_SEED") {
        match tell(seed, None, true, &Rc::default()) {
            Ok(trace) => println!("{}\nNo rule was broken.", trace.join("\n")),
            Err(failure) => panic!("{failure}"),
        }
        return;
    }
    let seeds = number_from_environment("SIMULATE_SEEDS").unwrap_or(SEEDS);
    let started = Instant::now();
    let coverage = run_all(0..seeds, None).unwrap_or_else(|failure| panic!("{failure}"));
    let (seconds, events) = (started.elapsed().as_secs_f64(), coverage.checked());
    println!("{coverage}");
    let (seeds_per_second, events_per_second) = (seeds as f64 / seconds, events as f64 / seconds);
    println!(
        "{seeds} seeds, {events} events checked, no rule broken, in {seconds:.1} s: {seeds_per_second:.0} seeds and \
         {events_per_second:.0} events per second"
    );
    // A few seeds can't meet everything.
    if seeds >= SEEDS {
        assert_eq!(coverage.missing(), Vec::<String>::new(), "never met in {seeds} seeds");
    }
}

#[test]
fn every_mutant_is_caught() {
    for mutant in Mutant::ALL {
        let Err(failure) = run_all(0..SEEDS_FOR_MUTANTS, Some(mutant)) else {
            panic!("{mutant:?} breaks no rule in {SEEDS_FOR_MUTANTS} seeds");
        };
        println!("{mutant:?} is caught by seed {}: {}", failure.seed, failure.broken);
    }
}

#[test]
fn the_same_seed_tells_the_same_story() {
    for seed in 0..20 {
        let stories =
            [(); 2].map(|()| tell(seed, None, true, &Rc::default()).unwrap_or_else(|failure| panic!("{failure}")));
        assert_eq!(stories[0], stories[1]);
        assert!(stories[0].len() > 1, "a story has more to tell than its beginning");
    }
}
