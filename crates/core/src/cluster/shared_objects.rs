//! The objects that every cluster has beside those of its members: the Services by which it is found, and the
//! PodDisruptionBudget. If they are missing, or another client changed them, they are applied again.

use crate::cluster::initial_members::expected_cluster_id;
use crate::cluster::observed::{Membership, Observed, ServiceKind};
use crate::cluster::quorum::quorum;
use crate::cluster::step::{ClusterStep, Step};

pub fn apply_shared_objects(observed: &Observed) -> Vec<Step> {
    let shared = &observed.objects.shared;
    let missing = ServiceKind::ALL.into_iter().filter(|kind| !shared.services.contains(kind));
    let services = missing.map(ClusterStep::ApplyService);
    let min_available = voters_to_keep(observed);
    let is_kept = shared.min_available == Some(min_available) && shared.budget_is_as_applied;
    let budget = (!is_kept).then_some(ClusterStep::ApplyDisruptionBudget { min_available });
    services.chain(budget).map(Step::Cluster).collect()
}

/// How many voters an eviction must leave: a quorum. If etcd can't be queried, that of the last known number of voters,
/// of the desired one or of the EtcdPeers, whichever is the largest, and never fewer than so far: too many only delays
/// evictions, too few could cost the quorum.
fn voters_to_keep(observed: &Observed) -> usize {
    // Another cluster that answers says nothing about this one.
    let is_ours = |it: &&Membership| expected_cluster_id(observed).is_none_or(|expected| expected == it.cluster_id);
    match observed.etcd.membership.as_ref().filter(is_ours) {
        Some(membership) => quorum(membership.voters().count()),
        None => {
            // All initial members vote as soon as there is a cluster, also if fewer are desired by then.
            let initial = observed.recorded.bootstrap.as_ref().filter(|_| observed.recorded.voters == 0);
            let known = initial.map_or(observed.recorded.voters, |bootstrap| bootstrap.size as usize);
            let known = known.max(observed.objects.peers.len());
            quorum(known.max(observed.wanted.replicas as usize))
                .max(observed.objects.shared.min_available.unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::observed::ClusterId;
    use crate::cluster::plan::{is_confirmed, plan};
    use crate::cluster::step::{Blocked, MemberStep};
    use crate::cluster::tests::support::{cluster_of, new_cluster, steps_of};
    use crate::ordinal::Ordinal;

    fn min_available(observed: &Observed) -> Option<usize> {
        let budget = |step: &Step| match step {
            Step::Cluster(ClusterStep::ApplyDisruptionBudget { min_available }) => Some(*min_available),
            _ => None,
        };
        steps_of(observed).iter().find_map(budget)
    }

    fn service(kind: ServiceKind) -> Step {
        Step::Cluster(ClusterStep::ApplyService(kind))
    }

    #[test]
    fn services_come_before_anything_of_a_new_cluster() {
        let mut observed = new_cluster(3);
        observed.objects.shared = Default::default();
        let steps = steps_of(&observed);
        assert_eq!(steps[..2], [service(ServiceKind::Peers), service(ServiceKind::Clients)]);
        assert_eq!(steps[2], Step::Cluster(ClusterStep::ApplyDisruptionBudget { min_available: 2 }));
        assert!(matches!(steps[3], Step::Cluster(ClusterStep::RecordBootstrap(_))), "{steps:?}");
    }

    #[test]
    fn service_that_is_not_as_applied_is_applied_again_and_the_others_are_left_alone() {
        let mut observed = cluster_of(3);
        observed.objects.shared.services.remove(&ServiceKind::Clients);
        assert_eq!(steps_of(&observed), [service(ServiceKind::Clients)]);
    }

    #[test]
    fn budget_counts_voters_as_etcd_knows_them() {
        let mut observed = cluster_of(3);
        observed.wanted.replicas = 5;
        assert_eq!(min_available(&observed), None, "those that are to come protect nothing yet");
        observed.objects.shared.min_available = None;
        assert_eq!(min_available(&observed), Some(2));
    }

    #[test]
    fn budget_does_not_count_voters_of_another_cluster_that_answers() {
        let mut observed = cluster_of(5);
        observed.recorded.voters = 5;
        let other = observed.etcd.membership.as_mut().unwrap();
        (other.cluster_id, other.members) = (ClusterId(0xbad), other.members[..1].to_vec());
        assert_eq!(min_available(&observed), None);
        observed.objects.shared.min_available = None;
        assert_eq!(min_available(&observed), Some(3));
    }

    #[test]
    fn unreachable_cluster_is_protected_with_the_most_voters_that_it_may_have() {
        let mut observed = cluster_of(3);
        observed.objects.shared.min_available = None;
        observed.lose_quorum();
        observed.recorded.voters = 0;
        assert_eq!(min_available(&observed), Some(2));
        observed.recorded.voters = 4;
        assert_eq!(min_available(&observed), Some(3), "it was shrinking");
        observed.recorded.voters = 1;
        assert_eq!(min_available(&observed), Some(2), "it was growing");
        observed.wanted.replicas = 1;
        assert_eq!(min_available(&observed), Some(2), "there are three EtcdPeers");
        observed.objects.peers.clear();
        assert_eq!(min_available(&observed), Some(1));
        observed.recorded.voters = 0;
        assert_eq!(min_available(&observed), Some(2), "it was bootstrapped with three");
        observed.recorded.voters = 3;
        observed.objects.shared.min_available = Some(3);
        assert_eq!(min_available(&observed), None, "a budget is not lowered blindly");
        observed.objects.shared.budget_is_as_applied = false;
        assert_eq!(min_available(&observed), Some(3), "nor when somebody else changed it");
    }

    #[test]
    fn nothing_is_applied_to_a_paused_or_deleted_cluster() {
        let mut observed = cluster_of(3);
        observed.objects.shared = Default::default();
        let paused = observed.clone().with(|it| it.wanted.paused = Some("spec.paused is true".into()));
        assert_eq!(plan(&paused).steps, []);
        assert_eq!(plan(&observed.with(|it| it.wanted.deleting = true)).steps, []);
    }

    #[test]
    fn failed_service_budget_or_repair_blocks_nothing_else() {
        assert_eq!(service(ServiceKind::Clients).blocked_by_failure(), Blocked::Nothing);
        let budget = Step::Cluster(ClusterStep::ApplyDisruptionBudget { min_available: 2 });
        assert_eq!(budget.blocked_by_failure(), Blocked::Nothing);
        let repair = Step::Member(Ordinal(1), MemberStep::RepairClaim);
        assert_eq!(repair.blocked_by_failure(), Blocked::Nothing, "its member may need a pod");
        assert!(!budget.needs_live_confirmation() && !is_confirmed(&budget, &cluster_of(3)));
    }
}
