//! The second stage of a reconcile: what this process remembers of earlier observations is brought up to date with the
//! new one, and added to it.

use etcd_operator_core::cluster::corruption_history::Occasion;
use tracing::warn;

use super::memory::Memory;
use super::observe::Observation;

pub fn remember(observation: &mut Observation, occasion: Occasion, memory: &Memory) {
    let Observation { observed, hashes, .. } = observation;
    memory.health_history().keep(observed);
    memory.corruption_history().keep(occasion, hashes.as_ref(), observed);
    if hashes.is_some() && !observed.remembered.differing.is_empty() {
        warn!(differing = ?observed.remembered.differing, "members differ from the majority");
    }
}
