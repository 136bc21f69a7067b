//! What the agent is told to do for a backup.

use etcd_operator_api::{Compression, EtcdBackup, Retention, Verify};
use etcd_operator_protocol::manifest::Origin;
use etcd_operator_protocol::task::{self, Backup};

use super::observed::{JobKind, Observed, ObservedCluster};
use crate::agent_job::Progress;
use crate::locations;

/// Whether the agent can be told what to do.
pub enum Order {
    Ready(Box<Backup>),
    /// The task is not known yet.
    Wait(String),
    /// The backup is impossible, for this reason.
    Impossible(String),
}

/// Whether all is known that the Job which takes the backup needs, except the schedule.
pub fn awaits_schedule(observed: &Observed) -> bool {
    let is_not_begun = observed.job.progress == Progress::NotBegun && JobKind::of(observed.backup) == JobKind::Backup;
    is_not_begun && matches!(order(observed), Order::Ready(_))
}

pub fn order(observed: &Observed) -> Order {
    let spec = &observed.backup.spec;
    let to = match locations::of_backup(observed.backup) {
        Ok(location) => location,
        Err(error) => return Order::Impossible(error.to_string()),
    };
    let endpoints = match (&spec.source, &spec.cluster_name, &observed.cluster) {
        (Some(source), ..) => vec![source.cluster_url.clone()],
        (None, Some(_), ObservedCluster::Present { endpoints, .. }) if !endpoints.is_empty() => endpoints.clone(),
        (None, Some(name), ObservedCluster::Present { .. }) => {
            return Order::Wait(format!("waits for the EtcdCluster {name:?}, which has no members yet"));
        }
        (None, Some(name), _) => {
            return Order::Wait(format!("waits for the EtcdCluster {name:?}, which does not exist"));
        }
        (None, None, _) => return Order::Impossible("neither spec.clusterName nor spec.source is set".to_owned()),
    };
    let is_to_verify = spec.verify == Verify::Restore;
    let schedule = observed.schedule.as_ref().map(|it| it.schedule.as_ref());
    let retention = schedule.and_then(|it| Some((it.spec.retention.as_ref()?, &it.spec.time_zone)));
    Order::Ready(Box::new(Backup {
        to,
        endpoints,
        compress: spec.compression == Compression::Zstd,
        recipients: spec.recipients().to_vec(),
        hash_keys: is_to_verify,
        origin: origin_of(observed.backup, observed.schedule.as_ref().map(|it| it.identity.clone())),
        all_below: schedule.and_then(|schedule| locations::of_all(schedule).ok()),
        retention: retention.map(|(rules, time_zone)| retention_task(rules, time_zone, is_to_verify)),
    }))
}

fn origin_of(backup: &EtcdBackup, schedule: Option<String>) -> Origin {
    let namespace = backup.metadata.namespace.as_deref().unwrap_or_default();
    Origin {
        backup: format!("{namespace}/{}", backup.metadata.name.as_deref().unwrap_or_default()),
        uid: backup.metadata.uid.clone().unwrap_or_default(),
        cluster: backup.spec.cluster_name.as_ref().map(|name| format!("{namespace}/{name}")),
        schedule,
    }
}

fn retention_task(retention: &Retention, time_zone: &str, is_to_verify: bool) -> task::Retention {
    let days = retention.days_of_month.clone().unwrap_or_default();
    let rules = task::Retention {
        keep_last: retention.keep_last.unwrap_or_default(),
        keep_last_with_proofs: None,
        keep_days: retention.keep_days.unwrap_or_default(),
        keep_weeks: retention.keep_weeks.unwrap_or_default(),
        keep_months: retention.keep_months.unwrap_or_default(),
        keep_daily: retention.keep_daily.unwrap_or_default(),
        keep_weekly: retention.keep_weekly.unwrap_or_default(),
        keep_monthly: retention.keep_monthly.unwrap_or_default(),
        days_of_month: days.days,
        months: days.months,
        time_zone: time_zone.to_owned(),
        dry_run: retention.dry_run,
    };
    if is_to_verify && !rules.says_nothing() { with_one_before_the_unproven(rules) } else { rules }
}

/// The agent may be of an earlier version than the operator, which does not know about proofs. It must keep the backup
/// before one that is not verified yet: that may be the last good one.
fn with_one_before_the_unproven(rules: task::Retention) -> task::Retention {
    let keep_last = rules.keep_last;
    task::Retention { keep_last: keep_last.max(2), keep_last_with_proofs: Some(keep_last), ..rules }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn agents_that_know_nothing_of_proofs_keep_the_backup_before_an_unproven_one() {
        let sent = |retention: Value, is_to_verify: bool| {
            let retention: Retention = serde_json::from_value(retention).unwrap();
            let task = json!(retention_task(&retention, "UTC", is_to_verify));
            (task["keepLast"].clone(), task.get("keepLastWithProofs").cloned())
        };
        assert_eq!(sent(json!({"keepLast": 1}), true), (json!(2), Some(json!(1))));
        assert_eq!(sent(json!({"keepDays": 7}), true), (json!(2), Some(json!(0))));
        assert_eq!(sent(json!({"keepLast": 5}), true), (json!(5), Some(json!(5))));
        assert_eq!(sent(json!({"keepLast": 1}), false), (json!(1), None));
        assert_eq!(sent(json!({"dryRun": true}), true), (json!(0), None), "without rules nothing may go");
    }
}
