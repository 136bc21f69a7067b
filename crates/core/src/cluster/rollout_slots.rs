//! Which clusters may restart members now. Their number is limited, so that a change to all of them (another image
//! repository configured for the operator, say) never restarts a fleet at once.

use std::collections::HashMap;
use std::time::Duration;

use etcd_operator_api::WaitReason;

use crate::cluster::observed::Observed;
use crate::cluster::progress::updated;
use crate::cluster::step::{MemberStep, Plan, Step, Waiting};

/// After how long without progress a cluster no longer occupies a slot: halted rollouts must not block all others.
const PATIENCE: Duration = Duration::from_secs(600);

/// The slots of the whole fleet. Times are measured from any moment that stays the same.
pub struct RolloutSlots {
    most: usize,
    /// By namespace and name of the cluster.
    taken: HashMap<(String, String), Slot>,
}

/// A cluster that restarts members.
struct Slot {
    /// How many of its members were up to date, and since when that many.
    updated: usize,
    since: Duration,
}

impl RolloutSlots {
    pub fn at_most(most: usize) -> Self {
        RolloutSlots { most, taken: HashMap::new() }
    }

    /// Whether a cluster may carry out its plan, which was made as if it had a slot. It holds one from then on if the
    /// plan needs one, and releases it if not.
    pub fn may_carry_out(&mut self, plan: &Plan, observed: &Observed, now: Duration) -> bool {
        let (namespace, cluster) = (&observed.names.namespace, &observed.names.cluster);
        if !needs_rollout_slot(plan, observed) {
            self.give_back(namespace, cluster);
            return true;
        }
        self.take(namespace, cluster, updated(observed), now)
    }

    /// Whether a cluster may restart members now. One with some updated members continues in any case: a finished
    /// rollout is safer than a partial one.
    fn take(&mut self, namespace: &str, cluster: &str, updated: usize, now: Duration) -> bool {
        let key = (namespace.to_owned(), cluster.to_owned());
        let getting_on = self.taken.values().filter(|slot| now.saturating_sub(slot.since) < PATIENCE).count();
        if !self.taken.contains_key(&key) && getting_on >= self.most && updated == 0 {
            return false;
        }
        let slot = self.taken.entry(key).or_insert(Slot { updated, since: now });
        if slot.updated != updated {
            *slot = Slot { updated, since: now };
        }
        true
    }

    /// Releases the slot of a cluster that has nothing left to roll out, or is gone.
    pub fn give_back(&mut self, namespace: &str, cluster: &str) {
        self.taken.remove(&(namespace.to_owned(), cluster.to_owned()));
    }
}

/// Whether a cluster is about to restart members, or in the middle of it, and so needs a rollout slot.
pub fn needs_rollout_slot(plan: &Plan, observed: &Observed) -> bool {
    let restarts = |step: &Step| {
        matches!(step, Step::Member(_, MemberStep::DrainPod) | Step::Member(_, MemberStep::RecreatePeer { .. }))
    };
    let is_rolling = |waiting: &Waiting| {
        matches!(waiting.reason, WaitReason::Draining | WaitReason::RollingOut | WaitReason::RolloutHalted)
    };
    !observed.objects.outdated.is_empty()
        && (plan.steps.iter().any(restarts) || plan.waiting.as_ref().is_some_and(is_rolling))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::plan::plan;
    use crate::cluster::spec_diff::{SpecDiff, UpdateMethod};
    use crate::cluster::tests::support::cluster_of;
    use crate::ordinal::Ordinal;

    const NOW: Duration = Duration::from_secs(1000);

    #[test]
    fn only_some_clusters_change_at_the_same_time() {
        let mut slots = RolloutSlots::at_most(2);
        assert!(slots.take("n", "a", 0, NOW) && slots.take("n", "b", 0, NOW));
        assert!(!slots.take("n", "c", 0, NOW), "two are enough");
        assert!(slots.take("n", "a", 1, NOW), "it goes on");
        slots.give_back("n", "a");
        assert!(slots.take("n", "c", 0, NOW));
        assert!(!slots.take("n", "a", 0, NOW));
    }

    #[test]
    fn only_a_cluster_that_is_about_to_restart_members_takes_a_slot() {
        let (mut idle, mut busy) = (cluster_of(3), cluster_of(3));
        idle.be_ready();
        busy.be_ready();
        busy.objects.outdated = Ordinal::first(3)
            .map(|ordinal| (ordinal, SpecDiff { fields: vec!["spec.version".into()], method: UpdateMethod::Restart }))
            .collect();
        let mut slots = RolloutSlots::at_most(0);
        assert!(slots.may_carry_out(&plan(&idle), &idle, NOW));
        assert!(!slots.may_carry_out(&plan(&busy), &busy, NOW), "there is no slot at all");
        busy.remembered.has_rollout_slot = false;
        assert_eq!(plan(&busy).waiting.map(|waiting| waiting.reason), Some(WaitReason::RolloutQueued));
    }

    #[test]
    fn slot_is_released_when_nothing_is_left_to_roll_out() {
        let mut slots = RolloutSlots::at_most(1);
        let mut done = cluster_of(3);
        done.be_ready();
        assert!(slots.take(&done.names.namespace, &done.names.cluster, 0, NOW));
        assert!(!slots.take("n", "b", 0, NOW));
        assert!(slots.may_carry_out(&plan(&done), &done, NOW));
        assert!(slots.take("n", "b", 0, NOW));
    }

    #[test]
    fn cluster_with_updated_members_keeps_its_rollout_slot() {
        let mut slots = RolloutSlots::at_most(1);
        assert!(slots.take("n", "a", 0, NOW));
        assert!(slots.take("n", "b", 2, NOW), "two of its members have been changed already");
    }

    #[test]
    fn halted_rollout_keeps_nobody_else_waiting_for_ever() {
        let mut slots = RolloutSlots::at_most(1);
        assert!(slots.take("n", "a", 0, NOW));
        assert!(!slots.take("n", "b", 0, NOW + PATIENCE - Duration::from_secs(1)));
        assert!(slots.take("n", "b", 0, NOW + PATIENCE), "it made no progress for so long");
        assert!(slots.take("n", "a", 0, NOW + PATIENCE), "but it may go on itself");
    }

    #[test]
    fn progress_of_a_rollout_counts_from_the_last_member() {
        let mut slots = RolloutSlots::at_most(1);
        assert!(slots.take("n", "a", 0, NOW));
        assert!(slots.take("n", "a", 1, NOW + PATIENCE));
        assert!(!slots.take("n", "b", 0, NOW + PATIENCE + Duration::from_secs(1)), "another member was updated since");
    }
}
