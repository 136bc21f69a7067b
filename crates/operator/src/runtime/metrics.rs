//! The metrics that the operator exposes to Prometheus.

use std::time::Duration;

use anyhow::Context;
use etcd_operator_core::cluster::observed::{Member, Observed};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

pub struct Metrics {
    registry: Registry,
    /// 1 while this process is the leader, else 0.
    pub leader: Gauge,
    /// How many EtcdClusters are in the cache.
    pub clusters: Gauge,
    /// How many members each cluster has, by state.
    members: Family<MemberLabels, Gauge>,
    /// How many reconciles are in progress, and how many are queued.
    pub active: Gauge,
    pub queued: Gauge,
    reconciles: Family<ReconcileLabels, Counter>,
    reconcile_durations: Family<ControllerLabels, Histogram>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ControllerLabels {
    controller: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReconcileLabels {
    controller: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct MemberLabels {
    namespace: String,
    cluster: String,
    state: &'static str,
}

/// The states that members are counted by.
const MEMBER_STATES: [&str; 3] = ["healthy", "unhealthy", "learner"];

impl Metrics {
    pub fn new() -> Self {
        let metrics = Self {
            registry: Registry::default(),
            leader: Gauge::default(),
            clusters: Gauge::default(),
            members: Family::default(),
            active: Gauge::default(),
            queued: Gauge::default(),
            reconciles: Family::default(),
            // From 1 ms to a little over the deadline of a reconcile.
            reconcile_durations: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 4.0, 9))),
        };
        metrics.registered()
    }

    // Without the suffixes `_info` and `_total`, which the registry adds.
    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register(
            "etcd_operator_build",
            "The version of the operator",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        registry.register("etcd_operator_leader", "1 while this process leads, else 0", self.leader.clone());
        registry.register("etcd_operator_clusters", "The number of EtcdClusters", self.clusters.clone());
        registry.register("etcd_operator_members", "The members of a cluster, by state", self.members.clone());
        registry.register("etcd_operator_reconciles_active", "The reconciles under way", self.active.clone());
        registry.register("etcd_operator_reconciles_queued", "The reconciles that wait", self.queued.clone());
        registry.register(
            "etcd_operator_reconcile",
            "The reconciles that have ended, by result",
            self.reconciles.clone(),
        );
        registry.register(
            "etcd_operator_reconcile_duration_seconds",
            "How long that took",
            self.reconcile_durations.clone(),
        );
        self
    }

    /// Counts the members of a cluster as etcd lists them. If it can't be queried, none of them is healthy.
    pub fn record_members(&self, observed: &Observed) {
        let names = &observed.names;
        let set = |state, count: usize| {
            self.members.get_or_create(&labels_of(&names.namespace, &names.cluster, state)).set(count as i64);
        };
        let Some(membership) = &observed.etcd.membership else {
            for (state, count) in [("healthy", 0), ("unhealthy", observed.objects.peers.len()), ("learner", 0)] {
                set(state, count);
            }
            return;
        };
        for state in MEMBER_STATES {
            let is_in_state = |member: &&Member| match state {
                "learner" => member.learner,
                "healthy" => !member.learner && observed.is_healthy(member),
                _ => !member.learner && !observed.is_healthy(member),
            };
            set(state, membership.members.iter().filter(is_in_state).count());
        }
    }

    /// Forgets a cluster that is gone.
    pub fn forget_members(&self, namespace: &str, cluster: &str) {
        for state in MEMBER_STATES {
            self.members.remove(&labels_of(namespace, cluster, state));
        }
    }

    pub fn record_reconcile(&self, controller: &'static str, succeeded: bool, took: Duration) {
        let result = if succeeded { "ok" } else { "error" };
        self.reconciles.get_or_create(&ReconcileLabels { controller, result }).inc();
        self.reconcile_durations.get_or_create(&ControllerLabels { controller }).observe(took.as_secs_f64());
    }

    /// Every metric in the same format, with a sample: those with labels are not exposed before they are counted.
    pub fn one_of_each() -> anyhow::Result<String> {
        let metrics = Self::new();
        metrics.members.get_or_create(&labels_of("", "", MEMBER_STATES[0])).set(0);
        metrics.record_reconcile("", true, Duration::ZERO);
        metrics.as_text()
    }

    /// All metrics in the text format that Prometheus reads.
    pub fn as_text(&self) -> anyhow::Result<String> {
        let mut text = String::new();
        encode(&mut text, &self.registry).context("writing the metrics as text")?;
        Ok(text)
    }
}

fn labels_of(namespace: &str, cluster: &str, state: &'static str) -> MemberLabels {
    MemberLabels { namespace: namespace.to_owned(), cluster: cluster.to_owned(), state }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_their_documented_names() {
        let metrics = Metrics::new();
        metrics.leader.set(1);
        metrics.clusters.set(7);
        metrics.record_reconcile("etcdcluster", true, Duration::from_millis(2));
        metrics.record_reconcile("etcdcluster", false, Duration::from_millis(2));
        let text = metrics.as_text().unwrap();
        for line in [
            concat!("etcd_operator_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
            "etcd_operator_leader 1",
            "etcd_operator_clusters 7",
            "etcd_operator_reconcile_total{controller=\"etcdcluster\",result=\"ok\"} 1",
            "etcd_operator_reconcile_total{controller=\"etcdcluster\",result=\"error\"} 1",
            "etcd_operator_reconcile_duration_seconds_count{controller=\"etcdcluster\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line:?} in\n{text}");
        }
    }
}
