//! The rollout slots of the fleet, shared by all reconciles. Who gets one is decided in
//! `etcd_operator_core::cluster::rollout_slots`.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use etcd_operator_core::cluster::observed::Observed;
use etcd_operator_core::cluster::plan::Plan;
use etcd_operator_core::cluster::rollout_slots;

pub struct RolloutSlots {
    started: Instant,
    slots: Mutex<rollout_slots::RolloutSlots>,
}

impl RolloutSlots {
    pub fn at_most(most: usize) -> Self {
        RolloutSlots { started: Instant::now(), slots: Mutex::new(rollout_slots::RolloutSlots::at_most(most)) }
    }

    /// Whether a cluster may carry out its plan now. Takes or releases its slot.
    pub fn may_carry_out(&self, plan: &Plan, observed: &Observed) -> bool {
        self.slots().may_carry_out(plan, observed, self.started.elapsed())
    }

    /// Releases the slot of a cluster that is gone.
    pub fn give_back(&self, namespace: &str, cluster: &str) {
        self.slots().give_back(namespace, cluster);
    }

    fn slots(&self) -> MutexGuard<'_, rollout_slots::RolloutSlots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
