//! One cluster under load, and one fault or change after the other, as chance has it: no acknowledged write may be lost,
//! and in the end everything must be as asked for.
//!
//! `CHAOS_MINUTES` says for how long; without it, for as long as fits among other tests. `CHAOS_SEED` repeats the choices of an earlier run; what they meet
//! differs from run to run.

mod faults;
mod load;

use std::time::{Duration, Instant, SystemTime};

use e2e::etcd::{Etcd, manifest_with_quick_replacement};
use e2e::{Namespace, SAFETY};
use serde_json::json;

use faults::Chaos;
use load::Load;

/// A few faults. `make soak ONLY=chaos` takes an hour.
const AMONG_OTHER_TESTS: Duration = Duration::from_secs(20);

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

#[test]
fn no_acknowledged_write_is_lost_under_random_faults() {
    let time = setting("CHAOS_MINUTES").map_or(AMONG_OTHER_TESTS, |minutes| Duration::from_secs(60 * minutes));
    let seed = setting("CHAOS_SEED").unwrap_or_else(|| {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("the clock is right").as_secs()
    });
    println!("chaos for {time:?} with CHAOS_SEED={seed}");
    let namespace = Namespace::create("chaos");
    let mut cluster = manifest_with_quick_replacement("c", 3);
    cluster["spec"]["maintenance"] = json!({"corruptionCheck": {"interval": "10s"}});
    let etcd = Etcd::create(&namespace, &cluster);
    let id = etcd.status()["clusterID"].clone();

    let load = Load::start(&namespace, "c");
    let mut chaos = Chaos::new(&etcd, 3, seed);
    let end = Instant::now() + time;
    while Instant::now() < end {
        chaos.inject();
        assert_eq!(load.complaints(), Vec::<String>::new(), "{SAFETY}CHAOS_SEED={seed}");
    }
    chaos.say("no more faults");
    chaos.wait_until_whole();
    let outcome = load.finish();

    println!("faults: {:?}", chaos.done);
    println!("{} acknowledged writes, {} reads", outcome.acknowledged, outcome.reads);
    let (gap, began) = (outcome.longest_gap.as_secs_f64(), outcome.gap_began.as_secs_f64());
    println!("the longest time without a successful write: {gap:.1}s, from {began:.1}s on");
    outcome.assert_kept(&etcd);
    etcd.assert_same_data(chaos.size as usize);
    etcd.assert_voters(chaos.size);
    etcd.assert_objects(chaos.size);
    etcd.wait_until_runs(chaos.size, chaos.version);
    assert_eq!(etcd.status()["clusterID"], id, "{SAFETY}it is still the same cluster");
}
