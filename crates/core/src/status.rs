//! What to report about a cluster in its status.

use etcd_operator_api::EtcdClusterStatus;
use etcd_operator_api::labels::selector_of_cluster;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::conditions::{Statement, conditions_after};

/// What was observed of a cluster.
pub struct ObservedCluster<'a> {
    pub name: &'a str,
    /// `metadata.generation` of the EtcdCluster: which version of the user's wishes was read.
    pub generation: Option<i64>,
    /// How many EtcdPeers the cluster has.
    pub peers: usize,
    /// What was reported the last time.
    pub status: &'a EtcdClusterStatus,
}

/// The status to report. It equals the previous one if there is nothing new to say.
pub fn status_to_report(observed: &ObservedCluster, now: &Time) -> EtcdClusterStatus {
    let previous = observed.status;
    let available = Statement {
        type_: "Available",
        holds: false,
        reason: "NoMembers",
        message: "no etcd member of this cluster is running yet",
    };
    EtcdClusterStatus {
        replicas: i32::try_from(observed.peers).unwrap_or(i32::MAX),
        ready_replicas: 0,
        label_selector: Some(selector_of_cluster(observed.name)),
        observed_generation: observed.generation,
        conditions: conditions_after(&previous.conditions, &[available], observed.generation, now),
        ..previous.clone()
    }
}

#[cfg(test)]
mod tests {
    use etcd_operator_api::Member;
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn observed(status: &EtcdClusterStatus) -> ObservedCluster<'_> {
        ObservedCluster { name: "my-cluster", generation: Some(1), peers: 0, status }
    }

    #[test]
    fn a_new_cluster_is_not_available() {
        let status = status_to_report(&observed(&EtcdClusterStatus::default()), &at(100));
        assert_eq!(status.replicas, 0);
        assert_eq!(status.ready_replicas, 0);
        assert_eq!(status.observed_generation, Some(1));
        assert_eq!(
            status.label_selector.as_deref(),
            Some("app.kubernetes.io/name=etcd,etcd.improbable.io/cluster-name=my-cluster")
        );
        let [available] = &status.conditions[..] else { panic!("one condition expected: {:?}", status.conditions) };
        assert_eq!((available.type_.as_str(), available.status.as_str()), ("Available", "False"));
        assert_eq!(available.reason, "NoMembers");
        assert_eq!(available.message, "no etcd member of this cluster is running yet");
        assert_eq!(available.observed_generation, Some(1));
        assert_eq!(available.last_transition_time, at(100));
    }

    #[test]
    fn peers_are_counted() {
        let status = EtcdClusterStatus::default();
        let three_peers = ObservedCluster { peers: 3, ..observed(&status) };
        assert_eq!(status_to_report(&three_peers, &at(100)).replicas, 3);
    }

    #[test]
    fn nothing_new_is_the_same_status() {
        let first = status_to_report(&observed(&EtcdClusterStatus::default()), &at(100));
        assert_eq!(status_to_report(&observed(&first), &at(200)), first);
    }

    #[test]
    fn a_new_generation_is_observed_without_a_transition() {
        let first = status_to_report(&observed(&EtcdClusterStatus::default()), &at(100));
        let changed = ObservedCluster { generation: Some(2), ..observed(&first) };
        let second = status_to_report(&changed, &at(200));
        assert_eq!(second.observed_generation, Some(2));
        assert_eq!(second.conditions[0].observed_generation, Some(2));
        assert_eq!(second.conditions[0].last_transition_time, at(100));
    }

    #[test]
    fn a_transition_is_dated() {
        let mut first = status_to_report(&observed(&EtcdClusterStatus::default()), &at(100));
        first.conditions[0].status = "True".into();
        let second = status_to_report(&observed(&first), &at(200));
        assert_eq!(second.conditions[0].status, "False");
        assert_eq!(second.conditions[0].last_transition_time, at(200));
    }

    #[test]
    fn what_etcd_said_before_is_kept() {
        let known = EtcdClusterStatus {
            members: vec![Member { name: "my-cluster-0".into(), id: "8eca1236bfa86a0a".into(), ..Default::default() }],
            cluster_version: Some("3.6.0".into()),
            ..Default::default()
        };
        let status = status_to_report(&observed(&known), &at(100));
        assert_eq!(status.members, known.members);
        assert_eq!(status.cluster_version, known.cluster_version);
    }
}
