//! When a schedule is reconciled again.

use std::time::Duration;

use super::support::{at, nightly, time};
use crate::schedule::requeue::requeue_after;

#[test]
fn schedule_with_a_time_ahead_is_reconciled_then_but_at_least_hourly() {
    let now = at("16T02:30");
    assert_eq!(requeue_after(&nightly(), Some(at("16T03:00")), now), Some(Duration::from_secs(1800)));
    assert_eq!(requeue_after(&nightly(), Some(at("17T03:00")), now), Some(Duration::from_secs(3600)));
    assert_eq!(requeue_after(&nightly(), None, now), None, "nothing is ahead");
}

#[test]
fn schedule_whose_time_has_come_meanwhile_is_reconciled_almost_at_once() {
    for past in [at("16T02:30"), time("2026-11-16T02:29:59Z")] {
        assert_eq!(requeue_after(&nightly(), Some(past), at("16T02:30")), Some(Duration::from_millis(100)));
    }
}

#[test]
fn schedule_that_deletes_with_its_cluster_is_reconciled_every_half_minute() {
    let mut schedule = nightly();
    schedule.spec.delete_with_cluster = true;
    let now = at("16T02:30");
    assert_eq!(requeue_after(&schedule, None, now), Some(Duration::from_secs(30)));
    assert_eq!(requeue_after(&schedule, Some(at("16T03:00")), now), Some(Duration::from_secs(30)));
}
