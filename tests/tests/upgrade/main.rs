//! The operator itself is upgraded from an earlier release, with its CRDs and its rights, while clusters run that the
//! earlier one has made. There is one operator for the whole lab, so this is one test, and no other may run beside it.

mod at_rest;
mod crash;
mod rollout;
mod schedule;

use e2e::Namespace;
use e2e::etcd::{Etcd, manifest};
use e2e::release::EarlierRelease;
use serde_json::{Value, json};

use at_rest::AtRest;
use crash::Crash;
use rollout::Rollout;
use schedule::Backups;

/// The clusters of the test. Only what both operators know is asked for.
fn manifests() -> [Value; 4] {
    let mut ephemeral = manifest("ephemeral", 1);
    ephemeral["spec"]["storage"] = json!({"ephemeral": {}});
    let mut rolling = manifest("rolling", 3);
    rolling["spec"]["version"] = json!(rollout::OLD_VERSION);
    let mut durable = manifest("durable", 3);
    durable["spec"]["etcd"] = json!({"heartbeatInterval": 200, "electionTimeout": 2000});
    [manifest("scheduled", 1), durable, ephemeral, rolling]
}

#[test]
fn clusters_and_schedules_are_unaffected_by_an_operator_upgrade() {
    let earlier = EarlierRelease::install();
    let namespace = Namespace::create("upgrade");
    let manifests = manifests();
    // They come up side by side. Creating one again just waits for it.
    for manifest in &manifests {
        namespace.apply(&manifest.to_string()).unwrap();
    }
    let scheduled = Etcd::create(&namespace, &manifests[0]);
    // From here on the schedule waits for the clock, so it comes first.
    let backups = Backups::order(&namespace, &scheduled.name);
    let [durable, ephemeral, rolling] = [1, 2, 3].map(|number| Etcd::create(&namespace, &manifests[number]));
    crash::prepare(&durable);
    crash::prepare(&ephemeral);
    let rollout = Rollout::begin(&rolling);
    let taken = backups.wait_for_first();
    let at_rest = [&scheduled, &durable, &ephemeral].map(AtRest::note);
    rollout.assert_is_held();

    earlier.upgrade();
    at_rest.iter().for_each(AtRest::have_it_looked_at);
    rollout.assert_is_held();
    at_rest.iter().for_each(AtRest::assert_goes_on);
    rollout.finish();
    // Restarts that come late are restarts too.
    at_rest.iter().for_each(AtRest::assert_goes_on);
    // The same as before, as it is written today.
    at_rest[1]
        .assert_no_restart_after(&json!({"spec": {"etcd": {"heartbeatInterval": "200ms", "electionTimeout": "2s"}}}));
    let crashes = [Crash::cause(&durable, "durable-1"), Crash::cause(&ephemeral, "ephemeral-0")];
    crashes.iter().for_each(Crash::assert_survived);
    backups.assert_go_on(&taken);
}
