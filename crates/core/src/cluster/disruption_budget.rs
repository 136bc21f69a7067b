//! How many voters the PodDisruptionBudget of a cluster counts with.

use etcd_operator_api::{EtcdClusterStatus, MemberRole};

use crate::cluster::observed::{Membership, Observed};

/// The number of voters. If etcd can't be queried: the last known number, or the desired one if that is larger. Too many
/// only delays evictions, too few could cost the quorum.
pub fn voters_to_protect(observed: &Observed, previous: &EtcdClusterStatus) -> usize {
    let voting = observed.membership.as_ref().map(|membership: &Membership| membership.voters().count());
    voting.unwrap_or_else(|| {
        let known = previous.members.iter().filter(|member| member.role != Some(MemberRole::Learner)).count();
        known.max(observed.replicas as usize)
    })
}

#[cfg(test)]
mod tests {
    use etcd_operator_api::MemberStatus;

    use super::*;
    use crate::cluster::tests::support::cluster_of;

    fn reported(roles: &[MemberRole]) -> EtcdClusterStatus {
        let members = roles.iter().map(|role| MemberStatus { role: Some(*role), ..MemberStatus::default() });
        EtcdClusterStatus { members: members.collect(), ..EtcdClusterStatus::default() }
    }

    #[test]
    fn voters_are_counted_as_etcd_knows_them() {
        let mut observed = cluster_of(3);
        observed.replicas = 5;
        assert_eq!(voters_to_protect(&observed, &reported(&[])), 3, "those that are to come protect nothing yet");
    }

    #[test]
    fn unreachable_cluster_is_protected_with_the_most_voters_that_it_may_have() {
        let mut observed = cluster_of(3);
        observed.membership = None;
        assert_eq!(voters_to_protect(&observed, &reported(&[])), 3);
        let shrinking = [MemberRole::Leader, MemberRole::Voter, MemberRole::Voter, MemberRole::Voter];
        assert_eq!(voters_to_protect(&observed, &reported(&shrinking)), 4);
        let growing = [MemberRole::Leader, MemberRole::Learner];
        assert_eq!(voters_to_protect(&observed, &reported(&growing)), 3);
    }
}
