//! When a member does not serve clients although it runs: before its restart, and before the leadership moves.

use jiff::SignedDuration;

use crate::cluster::observed::{Observed, Pod};
use crate::cluster::recreate::restarts;
use crate::ordinal::Ordinal;

/// How long clients are drained before a restart: as long as it takes until all nodes have updated their endpoints.
pub const DRAIN_TIME: SignedDuration = SignedDuration::from_secs(2);
/// After how long clients return if the restart did not happen. Longer than a failing cluster waits for a rollout slot.
const DRAIN_EXPIRES_AFTER: SignedDuration = SignedDuration::from_secs(120);
/// How long a restarted member may be kept from serving clients until the leadership is transferred.
const HANDOVER_WITHIN: SignedDuration = SignedDuration::from_secs(120);

/// Whether clients are drained from a member because it is about to be restarted.
pub fn is_leaving(observed: &Observed, ordinal: Ordinal) -> bool {
    let since = observed.objects.pods.get(&ordinal).and_then(|pod| pod.leaving_since);
    since.is_some_and(|since| observed.elapsed_since(since) < DRAIN_EXPIRES_AFTER) && restarts(observed, ordinal)
}

/// Whether a restarted member should not serve clients yet, because the leader is about to transfer the leadership.
/// Requests that a follower forwards to the leader in that moment are lost silently, and their clients wait for
/// seconds; the leader's own clients get an error at once. So until then all clients connect to the leader.
pub fn awaits_handover(observed: &Observed, ordinal: Ordinal) -> bool {
    let Some(membership) = &observed.etcd.membership else { return false };
    let leader = observed.leader().and_then(|id| membership.member(id)).and_then(|leader| leader.ordinal);
    let Some(leader) = leader.filter(|leader| *leader != ordinal && restarts(observed, *leader)) else { return false };
    let serves = |pod: &Pod| pod.serves_clients && pod.ready && !pod.deleting;
    let has_come = |pod: &Pod| !pod.serves_clients && observed.elapsed_since(pod.created) < HANDOVER_WITHIN;
    membership.voters().count() > 2
        && !observed.objects.outdated.contains_key(&ordinal)
        && observed.objects.pods.get(&leader).is_some_and(serves)
        && observed.objects.pods.get(&ordinal).is_none_or(has_come)
}
