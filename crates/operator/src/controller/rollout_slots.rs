//! Which clusters are restarting members. Only some do at the same time, so that a change to all of them (an operator that
//! is told another repository of images, say) never restarts a fleet together.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// After how long without getting on a cluster is not counted any more: what halts some must not hold up all.
const PATIENCE: Duration = Duration::from_secs(600);

/// By namespace and name of the cluster: how many of its members were as asked for, and since when that has been so.
type Slots = HashMap<(String, String), (usize, Instant)>;

pub struct RolloutSlots {
    most: usize,
    slots: Mutex<Slots>,
}

impl RolloutSlots {
    pub fn at_most(most: usize) -> Self {
        RolloutSlots { most, slots: Mutex::default() }
    }

    /// Whether a cluster may restart members now. One of which some members have been changed goes on in any case: it is
    /// better off when it has finished.
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

    /// Nothing is to be changed in a cluster any more.
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
