//! A schedule is changed while it is in force.

use std::time::Duration;

use e2e::backup::condition;
use e2e::schedule::{Schedule, begun, every_minute, minute, wait_for_minute};
use e2e::stores::{Bucket, Store};
use e2e::watch::Watch;
use e2e::{Namespace, is, stays};
use serde_json::json;

use crate::small_cluster;

#[test]
fn schedule_edits_take_effect_at_once_and_suspended_schedule_starts_nothing() {
    let namespace = Namespace::create("backups-edits");
    let bucket = Bucket::create(Store::Azure, "edits", &namespace);
    let _etcd = small_cluster(&namespace);
    let backups = Watch::start(&namespace, "etcdbackups");
    namespace.apply(&every_minute("s", bucket.destination("{{ .Name }}.db")).to_string()).unwrap();
    let schedule = Schedule { namespace: &namespace, name: "s" };
    schedule.first_backup(&backups);

    schedule.patch(json!({"schedule": "0 0 29 2 *"}));
    schedule.soon("another time is next", |status| {
        let next = status["nextScheduleTime"].as_str().unwrap_or_default();
        status["schedule"] == "0 0 29 2 * UTC" && next.ends_with("-02-29T00:00:00Z")
    });
    schedule.patch(json!({"schedule": "* * * * *", "suspend": true}));
    schedule.soon("it is suspended", |status| {
        status["nextScheduleTime"].is_null() && condition(status, "Ready")["reason"] == "Suspended"
    });
    let all = begun(&backups, "s");

    wait_for_minute(minute() + 1);
    stays("nothing begins while it is suspended", Duration::from_secs(5), || is(begun(&backups, "s"), all.clone()));
    schedule.patch(json!({"suspend": false}));
    schedule.soon("it goes on", |status| !status["nextScheduleTime"].is_null());
    assert_eq!(begun(&backups, "s"), all, "what was due meanwhile is not made up for");
}
