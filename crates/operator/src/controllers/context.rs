//! What the reconciles of all kinds share in one scope.

use std::sync::Arc;

use kube::Client;

use super::caches::Caches;
use super::cluster::memory::Memories;
use super::cluster::rollout_slots::RolloutSlots;
use crate::objects::containers::Settings;
use crate::runtime::events::Events;
use crate::runtime::metrics::Metrics;

pub struct Context {
    pub client: Client,
    pub caches: Caches,
    pub settings: Settings,
    /// The DNS domain of the Kubernetes cluster.
    pub domain: String,
    pub events: Events,
    pub metrics: Arc<Metrics>,
    /// What only this process knows about clusters.
    pub memories: Memories,
    /// Which clusters may restart members, in all scopes together.
    pub rollout_slots: Arc<RolloutSlots>,
}
