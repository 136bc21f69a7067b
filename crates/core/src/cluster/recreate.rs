//! What members are created from, and which are recreated because they never worked as they are. Members that do work
//! follow the spec one at a time: that is [`rollout`](super::rollout).

use jiff::SignedDuration;

use crate::cluster::acceptance::before_any_change;
use crate::cluster::observed::{Member, MemberId, Membership, Observed, Peer, Pod};
use crate::cluster::quorum::quorum;
use crate::cluster::spec_diff::UpdateMethod;
use crate::cluster::step::{MemberStep, Model, Plan, Step};
use crate::cluster::versions::{VersionDecision, decide_version, is_too_old};
use crate::ordinal::Ordinal;

/// How long a pod that runs without a known problem may take to become ready.
const STARTS_WITHIN: SignedDuration = SignedDuration::from_secs(60);
/// How long a pod may be missing despite attempts to create it before it counts as rejected.
const REFUSED_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// What a new member is created from: like the others for as long as the spec may not be rolled out.
pub fn model_of_new(observed: &Observed) -> Model {
    if may_use_the_spec(observed) {
        return Model::Spec;
    }
    let others = observed.objects.peers.iter().filter(|(_, peer)| !peer.deleting);
    match others.min_by_key(|(ordinal, peer)| (!peer.proven, **ordinal)) {
        Some((ordinal, _)) => Model::Member(*ordinal),
        None => observed.recorded.version.clone().map_or(Model::Spec, Model::SpecWithVersion),
    }
}

/// Whether a new member would be created from something else than this one was, or whether this one could not join as
/// it is.
pub fn is_to_be_recreated(observed: &Observed, ordinal: Ordinal) -> bool {
    let is_late =
        || observed.objects.peers.get(&ordinal).is_some_and(|peer| is_too_old(observed, peer.version.as_ref()));
    (needs_a_new_pod(observed, ordinal) && may_use_the_spec(observed)) || is_late()
}

/// Whether new members may be created from the spec. An accepted version may have become impossible since: the members
/// may have agreed on another one.
fn may_use_the_spec(observed: &Observed) -> bool {
    observed.is_version_accepted() && decide_version(observed) == VersionDecision::Possible
}

/// Whether a member has to be restarted to match the spec.
pub fn restarts(observed: &Observed, ordinal: Ordinal) -> bool {
    observed.objects.outdated.get(&ordinal).is_some_and(|change| change.method == UpdateMethod::Restart)
}

/// Whether a member needs a new pod to match the spec. A running pod can be given other labels and resources in place.
/// A pod that was rejected, can't be scheduled or does not start can only be replaced by a new one.
fn needs_a_new_pod(observed: &Observed, ordinal: Ordinal) -> bool {
    let runs = observed.objects.pods.get(&ordinal).is_some_and(|pod| pod.node.is_some() && pod.problem.is_none());
    restarts(observed, ordinal) || (observed.objects.outdated.contains_key(&ordinal) && !runs)
}

/// A member that was never healthy since it was created, and was created from an outdated spec, is recreated before
/// anything else: this costs nothing, and the outdated spec may be the cause.
pub fn recreate_broken(observed: &Observed, membership: &Membership) -> Plan {
    let is_fit = |member: &Member| observed.is_healthy(member) && !observed.is_stopping(member);
    let broken = membership.voters().filter(|voter| !observed.is_healthy(voter));
    let staying = broken.filter_map(|voter| voter.ordinal).filter(|ordinal| observed.is_desired(*ordinal));
    let broken = staying.into_iter().find(|ordinal| {
        let others = membership.voters().filter(|voter| voter.ordinal != Some(*ordinal) && is_fit(voter)).count();
        let keeps_its_data = observed.wanted.durable || has_no_data(observed, *ordinal);
        may_be_recreated(observed, *ordinal) && keeps_its_data && others >= quorum(membership.voters().count())
    });
    let Some(ordinal) = broken else { return Plan::default() };
    // Waiting alone does not block anything else.
    Plan::steps(before_any_change(observed).or_else(|| Plan::steps(vec![recreate(observed, ordinal)])).steps)
}

/// A learner that makes no progress and was created from an outdated spec is removed, so that one from the current spec
/// can join.
pub fn recreate_learner(observed: &Observed, ordinal: Ordinal, member_id: MemberId) -> Vec<Step> {
    // A missing pod counts too: it may be rejected.
    if observed.objects.pods.get(&ordinal).is_some_and(|pod| pod.problem.is_none()) {
        return Vec::new();
    }
    if is_to_be_recreated(observed, ordinal) {
        return vec![Step::Member(ordinal, MemberStep::RemoveMember { member_id, why: reason_for(observed, ordinal) })];
    }
    if needs_a_new_pod(observed, ordinal) { before_any_change(observed).steps } else { Vec::new() }
}

/// Without a quorum, or before there is one, a member that does not run and was created from an outdated spec is
/// recreated: the others may be waiting for it.
pub fn recreate_stopped_members(observed: &Observed) -> Vec<Step> {
    let runs = |ordinal: &Ordinal| observed.etcd.answers.contains_key(ordinal);
    let idle = observed.objects.outdated.keys().copied().filter(|it| !runs(it) && may_be_recreated(observed, *it));
    // Data in a pod is lost with it, unless there is none: the pod was never scheduled, or there is no cluster yet.
    let has_nothing = |ordinal: Ordinal| {
        observed.recorded.cluster_id.is_none()
            || observed.objects.pods.get(&ordinal).is_some_and(|pod| pod.node.is_none())
    };
    let idle: Vec<Ordinal> = idle.filter(|ordinal| observed.wanted.durable || has_nothing(*ordinal)).collect();
    if idle.is_empty() {
        return Vec::new();
    }
    let before = before_any_change(observed);
    if before != Plan::default() {
        return before.steps;
    }
    idle.into_iter().map(|ordinal| recreate(observed, ordinal)).collect()
}

/// Whether an unhealthy member was created from an outdated spec that never worked. One that did work is restarted
/// unchanged: the current spec may not work either. The exception is a member that can't be scheduled, as long as no
/// member has failed with the current spec.
fn may_be_recreated(observed: &Observed, ordinal: Ordinal) -> bool {
    let Some(peer) = observed.objects.peers.get(&ordinal).filter(|peer| !peer.deleting) else { return false };
    let is_stuck = |pod: &Pod| pod.deleting || pod.node.is_some_and(|node| node.down_since.is_some());
    // It may be well and only the operator can't reach it, or it has only just been started.
    let may_be_well = |pod: &Pod| {
        let runs = pod.node.is_some() && pod.problem.is_none();
        runs && (pod.ready || observed.elapsed_since(pod.created) < STARTS_WITHIN)
    };
    let has_failed = |(other, peer): (&Ordinal, &Peer)| !peer.proven && !observed.objects.outdated.contains_key(other);
    // Without a quorum there is nothing to lose.
    let has_rollout_slot = observed.remembered.has_rollout_slot || observed.etcd.membership.is_none();
    let may_try_another = is_unschedulable_or_refused(observed, ordinal)
        && has_rollout_slot
        && !observed.objects.peers.iter().any(has_failed);
    needs_a_new_pod(observed, ordinal)
        && !observed.objects.pods.get(&ordinal).is_some_and(|pod| is_stuck(pod) || may_be_well(pod))
        && (!peer.proven || may_try_another)
}

/// Whether a member's pod can't be scheduled, or Kubernetes rejects it: it has been missing for long despite attempts
/// to create it. Without a quorum a missing pod means nothing: after a power cut all are missing, and return unchanged.
fn is_unschedulable_or_refused(observed: &Observed, ordinal: Ordinal) -> bool {
    match observed.objects.pods.get(&ordinal) {
        Some(pod) => pod.node.is_none(),
        None => {
            let since = observed.member(ordinal).and_then(|member| observed.remembered.unhealthy_since.get(&member.id));
            since.is_some_and(|since| observed.elapsed_since(*since) >= REFUSED_AFTER)
        }
    }
}

/// Whether a member has never run, so that no data is lost with its pod.
fn has_no_data(observed: &Observed, ordinal: Ordinal) -> bool {
    let is_placed = observed.objects.pods.get(&ordinal).is_some_and(|pod| pod.node.is_some());
    observed.member(ordinal).is_some_and(|member| !member.started) && !is_placed
}

/// Recreates a member from the spec. Its volume stays.
pub fn recreate(observed: &Observed, ordinal: Ordinal) -> Step {
    Step::Member(ordinal, MemberStep::RecreatePeer { why: reason_for(observed, ordinal) })
}

/// Why a member is recreated, for the user.
pub fn reason_for(observed: &Observed, ordinal: Ordinal) -> String {
    match observed.objects.outdated.get(&ordinal) {
        Some(change) => format!("{} changed", change.fields.join(", ")),
        None => "the other members run a later version".to_owned(),
    }
}
