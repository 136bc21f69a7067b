//! What the tests of controllers share: a mocked API server, which gives the answers that a test gives it, and a context
//! with nothing in its caches.

pub mod api_server;
mod report;

use std::sync::Arc;

use kube::Client;

use super::caches::Caches;
use super::cluster::memory::Memories;
use super::cluster::rollout_slots::RolloutSlots;
use super::context::Context;
use crate::objects::containers::Settings;
use crate::runtime::events::Events;
use crate::runtime::metrics::Metrics;
use crate::runtime::watch::Cache;

pub fn context(client: Client) -> Context {
    Context {
        events: Events::new(client.clone()),
        client,
        caches: Caches {
            clusters: Cache::empty(),
            peers: Cache::empty(),
            pods: Cache::empty(),
            claims: Cache::empty(),
            services: Cache::empty(),
            budgets: Cache::empty(),
            nodes: Cache::empty(),
            backups: Cache::empty(),
            schedules: Cache::empty(),
            restores: Cache::empty(),
            jobs: Cache::empty(),
            job_pods: Cache::empty(),
        },
        settings: Settings { agent_image: "operator".into(), etcd_repository: "etcd".into(), pull_policy: None },
        domain: "cluster.local".into(),
        metrics: Arc::new(Metrics::new()),
        memories: Memories::default(),
        rollout_slots: Arc::new(RolloutSlots::at_most(1)),
    }
}
