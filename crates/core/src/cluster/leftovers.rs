//! What is left of members that were removed: which pods, claims and EtcdPeers are deleted, and which must stay.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use crate::cluster::diagnosis::members_of_pods;
use crate::cluster::observed::{Bootstrap, Claim, ClusterId, Identity, Membership, Observed, Pod};
use crate::cluster::step::{MemberStep, Step};
use crate::ordinal::Ordinal;

/// How long after it should have terminated a pod is force-deleted.
const FORCE_DELETE_AFTER: SignedDuration = SignedDuration::from_secs(300);

/// Deletes what is left of members that have left the membership and are not desired: the pod and the claim, and the
/// EtcdPeer when both are gone. A claim of this cluster is deleted even if its EtcdPeer is already gone.
pub fn remove_leftovers(observed: &Observed, membership: &Membership) -> Vec<Step> {
    let mut steps = Vec::new();
    let is_ours = |claim: &Claim| is_of_cluster(observed, membership.cluster_id, claim);
    let claimed = observed.objects.claims.iter().filter(|(_, claim)| is_ours(claim)).map(|(ordinal, _)| *ordinal);
    let expected = members_of_pods(observed).filter(|(_, identity)| identity.cluster_id == membership.cluster_id);
    let left = claimed.chain(expected.map(|(ordinal, _)| ordinal));
    let ordinals: BTreeSet<Ordinal> = observed.objects.peers.keys().copied().chain(left).collect();
    let is_member = |ordinal: &Ordinal| membership.members.iter().any(|member| member.ordinal == Some(*ordinal));
    for ordinal in ordinals.into_iter().filter(|ordinal| !observed.is_desired(*ordinal) && !is_member(ordinal)) {
        steps.extend(delete_leftovers(observed, membership, ordinal));
        let has_left = !observed.objects.pods.contains_key(&ordinal) && !observed.objects.claims.contains_key(&ordinal);
        let peer = observed.objects.peers.get(&ordinal);
        if has_left && peer.is_some_and(|peer| !peer.deleting) {
            steps.push(Step::Member(ordinal, MemberStep::DeletePeer));
        }
    }
    steps
}

/// Deletes the claim and the pod of a member that has left. The claim first: from then on no new pod can start on it,
/// even if the rest loses its quorum a moment later. It is gone when the pod is.
pub fn delete_leftovers(observed: &Observed, membership: &Membership, ordinal: Ordinal) -> Vec<Step> {
    // A current member keeps what it has, whatever its name or address is now.
    let is_member =
        |identity: Option<Identity>| identity.is_some_and(|identity| membership.member(identity.member_id).is_some());
    let claim = observed.objects.claims.get(&ordinal).filter(|claim| !claim.deleting && !is_member(claim.identity));
    let ours = claim.filter(|claim| is_of_cluster(observed, membership.cluster_id, claim));
    let pod = observed
        .objects
        .pods
        .get(&ordinal)
        .filter(|pod| !is_member(pod.expected.and_then(|expected| expected.identity)));
    let pod = pod.and_then(|pod| stop_pod_of_removed(observed, ordinal, pod));
    ours.map(|_| Step::Member(ordinal, MemberStep::DeleteClaim)).into_iter().chain(pod).collect()
}

/// Whether a claim holds data of a cluster, or was created for it.
fn is_of_cluster(observed: &Observed, cluster_id: ClusterId, claim: &Claim) -> bool {
    match (claim.identity, bootstrap_of(observed, cluster_id)) {
        (Some(identity), _) => identity.cluster_id == cluster_id,
        (None, Some(bootstrap)) => is_unmarked_initial_claim(claim, &bootstrap),
        (None, None) => false,
    }
}

/// Whether a claim was created for an initial member that was never observed running.
pub fn is_unmarked_initial_claim(claim: &Claim, bootstrap: &Bootstrap) -> bool {
    claim.identity.is_none() && claim.bootstrap.as_ref() == Some(bootstrap)
}

/// How a cluster was bootstrapped. For a recreated EtcdCluster, only the claims of the earlier one record it.
pub fn bootstrap_of(observed: &Observed, cluster_id: ClusterId) -> Option<Bootstrap> {
    let of_this = |claim: &&Claim| claim.identity.is_none_or(|identity| identity.cluster_id == cluster_id);
    let noted = || observed.objects.claims.values().filter(of_this).find_map(|claim| claim.bootstrap.clone());
    observed.recorded.bootstrap.clone().or_else(noted)
}

/// Deletes the pod of a member that was removed. If its node is down, or it does not terminate, nothing else would ever
/// confirm that it has; and if it still runs there, the others no longer accept it as a member. `None` if it is
/// terminating.
pub fn stop_pod_of_removed(observed: &Observed, ordinal: Ordinal, pod: &Pod) -> Option<Step> {
    let why = "its member was removed".to_owned();
    let is_overdue = pod.deleting_since.is_some_and(|at| observed.elapsed_since(at) >= FORCE_DELETE_AFTER);
    match pod.node {
        Some(node) if node.down_since.is_some() || is_overdue => {
            Some(Step::Member(ordinal, MemberStep::FencePod { why }))
        }
        _ if pod.deleting => None,
        _ => Some(Step::Member(ordinal, MemberStep::DeletePod { why })),
    }
}
