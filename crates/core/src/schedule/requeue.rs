//! When to reconcile a schedule again, if nothing happens before.

use std::time::Duration;

use etcd_operator_api::EtcdBackupSchedule;
use jiff::{SignedDuration, Timestamp};

/// The longest requeue: clocks are adjusted, and machines are suspended and resumed.
const AT_MOST: Duration = Duration::from_secs(3600);
const WHILE_THE_CLUSTER_MAY_GO: Duration = Duration::from_secs(30);
const AT_LEAST: Duration = Duration::from_millis(100);

/// `again` is when the plan has something to do.
pub fn requeue_after(schedule: &EtcdBackupSchedule, again: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    // The cluster is not watched for every schedule, so its deletion is not always noticed by itself.
    let watches_cluster = schedule.spec.delete_with_cluster;
    let at_most = if watches_cluster { WHILE_THE_CLUSTER_MAY_GO } else { AT_MOST };
    let until = |time: Timestamp| time.duration_since(now).max(SignedDuration::ZERO).unsigned_abs();
    again.map(|time| until(time).clamp(AT_LEAST, at_most)).or(watches_cluster.then_some(at_most))
}
