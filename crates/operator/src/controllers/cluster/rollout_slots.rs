//! Which clusters are restarting members. Their number is limited, so that a change to all of them (another image
//! repository configured for the operator, say) never restarts a fleet at once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// After how long without progress a cluster no longer occupies a slot: halted rollouts must not block all others.
const PATIENCE: Duration = Duration::from_secs(600);

/// By namespace and name of the cluster: how many of its members were up to date, and since when.
type Slots = HashMap<(String, String), (usize, Instant)>;

pub struct RolloutSlots {
    most: usize,
    slots: Mutex<Slots>,
}

impl RolloutSlots {
    pub fn at_most(most: usize) -> Self {
        RolloutSlots { most, slots: Mutex::default() }
    }

    /// Whether a cluster may restart members now. One with some updated members continues in any case: a finished
    /// rollout is safer than a partial one.
    pub fn take(&self, namespace: &str, cluster: &str, updated: usize) -> bool {
        let mut slots = self.slots();
        let key = (namespace.to_owned(), cluster.to_owned());
        let now = Instant::now();
        let getting_on = slots.values().filter(|(_, since)| now.duration_since(*since) < PATIENCE).count();
        if !slots.contains_key(&key) && getting_on >= self.most && updated == 0 {
            return false;
        }
        let slot = slots.entry(key).or_insert((updated, now));
        if slot.0 != updated {
            *slot = (updated, now);
        }
        true
    }

    /// Releases the slot of a cluster that has nothing left to roll out.
    pub fn give_back(&self, namespace: &str, cluster: &str) {
        self.slots().remove(&(namespace.to_owned(), cluster.to_owned()));
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_some_clusters_change_at_the_same_time() {
        let rollout_slots = RolloutSlots::at_most(2);
        assert!(rollout_slots.take("n", "a", 0) && rollout_slots.take("n", "b", 0));
        assert!(!rollout_slots.take("n", "c", 0), "two are enough");
        assert!(rollout_slots.take("n", "a", 1), "it goes on");
        rollout_slots.give_back("n", "a");
        assert!(rollout_slots.take("n", "c", 0));
        assert!(!rollout_slots.take("n", "a", 0));
    }

    #[test]
    fn cluster_with_updated_members_keeps_its_rollout_slot() {
        let rollout_slots = RolloutSlots::at_most(1);
        assert!(rollout_slots.take("n", "a", 0));
        assert!(rollout_slots.take("n", "b", 2), "two of its members have been changed already");
    }
}
