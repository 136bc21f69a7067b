//! Each benchmark measures two things in turns in the same run, with the same question, because only the ratio means
//! anything on a machine that others use too. `make bench` runs all of them, `make bench ONLY=rollout` one.

mod answers;
mod backup;
mod bootstrap;
mod client;
mod filling;
mod memory;
mod rollout;
mod sightings;
mod stateful_set;
mod timeline;

use std::time::Duration;

const ROUNDS: usize = 3;

fn main() {
    let only = std::env::args().nth(1);
    let benchmarks: [(&str, fn()); 3] =
        [("bootstrap", bootstrap::run), ("rollout", rollout::run), ("backup", backup::run)];
    if let Some(unknown) = only.as_ref().filter(|only| benchmarks.iter().all(|(name, _)| name != only)) {
        let names = benchmarks.map(|(name, _)| name).join(", ");
        panic!("there is no benchmark {unknown}; there are: {names}");
    }
    for (_, run) in benchmarks.iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name)) {
        run();
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
