//! What is wrong with a member, and what would fix it.

use std::collections::BTreeMap;

use etcd_operator_protocol::report::RefusalReason;
use jiff::{SignedDuration, Timestamp};

use crate::cluster::observed::{
    DataState, Identity, Member, MemberId, Membership, Observed, Peer, Pod, Problem, ProblemKind,
};
use crate::ordinal::Ordinal;

/// Used instead of `replace_after` if the user never wants members replaced: a pod is restarted when its member was
/// unreachable for half of it.
const REPLACE_AFTER_DEFAULT: SignedDuration = SignedDuration::from_secs(300);
/// How long after a restart a pod is restarted again, if nothing else can be done.
const RESTART_AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(3600);
/// How long a pod may take until its first container starts: a volume that was attached elsewhere is force-detached
/// after six minutes.
pub const NOT_BEGUN: SignedDuration = SignedDuration::from_secs(900);
/// How long a refusal of the gate counts as current.
const REFUSAL_HOLDS: SignedDuration = SignedDuration::from_secs(60);
/// How long a defragmentation may take.
const DEFRAGMENTATION: SignedDuration = SignedDuration::from_secs(600);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Diagnosis {
    /// Its data is gone, so it can never return under its old identity.
    DataLost(String),
    /// Its data differs from that of the others.
    Corrupt,
    /// Its node is down, or the node that its volume is bound to.
    NodeDown {
        since: Timestamp,
        /// Whether an administrator confirms that nothing runs there any more.
        fenced: bool,
    },
    /// It could run, but does not answer.
    Unresponsive {
        since: Timestamp,
        /// When its pod was created, if that was later.
        restarted: Option<Timestamp>,
        /// Whether any container of the pod was ever started.
        began: bool,
        /// Whether what it was created from is not known to work. If it does not, a new member would not work either.
        untested: bool,
    },
    /// Its pod should have terminated, but has not.
    NotTerminating { since: Timestamp },
    /// It is starting, or blocked by something that would also block a new member.
    Blocked,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    Wait,
    RestartPod(String),
    Replace(String),
}

/// What is wrong with a managed member. `None` if it is healthy.
pub fn diagnose(observed: &Observed, ordinal: Ordinal, member: &Member) -> Option<Diagnosis> {
    if observed.is_corrupt(member) && can_be_compared(observed) {
        return Some(Diagnosis::Corrupt);
    }
    if observed.is_healthy(member) {
        return None;
    }
    if member.started
        && !has_stale_refusal(observed, ordinal)
        && let Some(why) =
            data_loss(observed, ordinal, member.id).or_else(|| loss_with_an_earlier_pod(observed, ordinal))
    {
        return Some(Diagnosis::DataLost(why));
    }
    Some(diagnose_unreachable(observed, ordinal, member.id))
}

/// Whether a finding of corruption could be confirmed now. If not, other diagnoses come first: a plan that can't be
/// confirmed would block everything else.
pub fn can_be_compared(observed: &Observed) -> bool {
    let mut voters = observed.etcd.membership.iter().flat_map(Membership::voters);
    voters.all(|voter| observed.is_healthy(voter))
}

/// Why a member that ran before can't have its data any more, if so.
pub fn data_loss(observed: &Observed, ordinal: Ordinal, member_id: MemberId) -> Option<String> {
    let name = observed.names.member_name(ordinal);
    let pod = observed.objects.pods.get(&ordinal);
    if let Some(refusal) = pod.and_then(|pod| refusal_of(pod, member_id)) {
        return Some(refusal.to_owned());
    }
    if !observed.wanted.durable {
        let runs_no_more = pod.is_none_or(|pod| pod.finished && !pod.deleting);
        return runs_no_more.then(|| "its data was in its pod, which has ended".to_owned());
    }
    let is_on_a_node = pod.is_some_and(|pod| pod.node.is_some());
    match observed.objects.claims.get(&ordinal) {
        None if !is_on_a_node => Some(format!("the volume claim {name} is gone")),
        // A claim that is being deleted can't be kept; it is deleted as soon as no pod uses it.
        Some(claim) if claim.deleting && !is_on_a_node => Some(format!("the volume claim {name} was deleted")),
        _ => None,
    }
}

/// A member that ran, and keeps its data in its pod, has lost it if its pod has never been on any node.
fn loss_with_an_earlier_pod(observed: &Observed, ordinal: Ordinal) -> Option<String> {
    let is_new = observed.objects.pods.get(&ordinal).is_some_and(|pod| pod.node.is_none());
    (!observed.wanted.durable && is_new).then(|| "its data was in an earlier pod".to_owned())
}

/// Whether an old refusal of the gate is the only evidence of data loss. The data may be back by now; the next start
/// will show it.
fn has_stale_refusal(observed: &Observed, ordinal: Ordinal) -> bool {
    let problem = observed.objects.pods.get(&ordinal).and_then(|pod| pod.problem.as_ref());
    let refusal = problem.filter(|problem| problem.kind == ProblemKind::DataLost);
    refusal.and_then(|refusal| refusal.at).is_some_and(|at| observed.elapsed_since(at) > REFUSAL_HOLDS)
}

/// The message of the gate when it did not find the data of a member that must have some.
fn refusal_of(pod: &Pod, member_id: MemberId) -> Option<&str> {
    let expected = pod.expected.filter(|expected| expected.data == DataState::Existing)?;
    let is_about = expected.identity.is_some_and(|identity| identity.member_id == member_id);
    let problem = pod.problem.as_ref().filter(|problem| problem.kind == ProblemKind::DataLost && is_about)?;
    Some(&problem.message)
}

fn diagnose_unreachable(observed: &Observed, ordinal: Ordinal, member_id: MemberId) -> Diagnosis {
    let known = if observed.etcd.membership.is_some() {
        &observed.remembered.unhealthy_since
    } else {
        &observed.recorded.unhealthy_since
    };
    let since = known.get(&member_id).copied().unwrap_or(observed.now);
    let Some(pod) = observed.objects.pods.get(&ordinal) else { return Diagnosis::Blocked };
    // If the kubelet reports it ready, it may be unreachable only for the operator, or another cluster may answer only
    // the operator. A node that is not ready is no proof. But nobody withdraws that report if the kubelet first says that
    // its node is not ready and then nothing more: it counts until Kubernetes evicts the pod.
    let evicted = pod.deleting_since.filter(|_| pod.node.is_some_and(|node| node.down_since.is_some()));
    let answer = observed.etcd.answers.get(&ordinal).and_then(|answer| answer.as_ref().ok());
    if pod.ready
        && evicted.is_none()
        && answer.is_none_or(|answer| Some(answer.identity.cluster_id) != observed.recorded.cluster_id)
    {
        return Diagnosis::Blocked;
    }
    let bound_to = observed.objects.claims.get(&ordinal).and_then(|claim| claim.node);
    let has = |kind: ProblemKind| matches!(&pod.problem, Some(problem) if problem.kind == kind);
    let node = if has(ProblemKind::NoNode) { bound_to } else { pod.node };
    if let Some(node) = node
        && let Some(down_since) = node.down_since
    {
        // A pod on a node that is out of service is force-deleted and recreated elsewhere, with its data if possible.
        let stuck_with_it = node.fenced && has(ProblemKind::NoNode);
        let evicted = evicted.filter(|_| pod.ready).unwrap_or(since);
        return Diagnosis::NodeDown { since: since.max(down_since).max(evicted), fenced: stuck_with_it };
    }
    if pod.deleting {
        let overdue = pod.deleting_since.filter(|_| observed.etcd.membership.is_some());
        return overdue.map_or(Diagnosis::Blocked, |at| Diagnosis::NotTerminating { since: at.max(since) });
    }
    if has(ProblemKind::NoNode) || has(ProblemKind::NoImage) || is_being_defragmented(observed, ordinal) {
        return Diagnosis::Blocked;
    }
    let restarted = Some(pod.created).filter(|created| *created > since);
    Diagnosis::Unresponsive { since, restarted, began: pod.began, untested: is_untested(observed, ordinal) }
}

/// Whether a voter never answered since it was created, and no other member proves that it could. Retrying a learner
/// costs nothing, and data that was in a pod can't be recovered by retrying.
fn is_untested(observed: &Observed, ordinal: Ordinal) -> bool {
    let is_learner = observed.member(ordinal).is_some_and(|member| member.learner);
    let is_new = observed.objects.peers.get(&ordinal).is_none_or(|peer| !peer.proven);
    let is_proof = |(other, peer): (&Ordinal, &Peer)| peer.proven && !observed.objects.outdated.contains_key(other);
    let is_proven = !observed.objects.outdated.contains_key(&ordinal) && observed.objects.peers.iter().any(is_proof);
    observed.wanted.durable && !is_learner && is_new && !is_proven
}

/// A member does not answer during a defragmentation, which may take long.
fn is_being_defragmented(observed: &Observed, ordinal: Ordinal) -> bool {
    let last = observed.objects.peers.get(&ordinal).and_then(|peer| peer.defragmented);
    last.is_some_and(|last| observed.elapsed_since(last.at) < DEFRAGMENTATION)
}

/// What fixes a member. Whether the others can tolerate it is decided elsewhere.
pub fn remedy_for(observed: &Observed, diagnosis: &Diagnosis) -> Remedy {
    match (usual_remedy(observed, diagnosis), diagnosis) {
        // The spec that it was created from is the likely cause, and only the user can change that.
        (Remedy::Replace(_), Diagnosis::Unresponsive { untested: true, .. }) => Remedy::Wait,
        (remedy, _) => remedy,
    }
}

fn usual_remedy(observed: &Observed, diagnosis: &Diagnosis) -> Remedy {
    let waited = |since: Timestamp, time: SignedDuration| observed.elapsed_since(since) >= time;
    match diagnosis {
        Diagnosis::DataLost(why) => Remedy::Replace(why.clone()),
        Diagnosis::Corrupt => Remedy::Replace("its data differs from that of the other members".to_owned()),
        Diagnosis::NodeDown { fenced: true, .. } => {
            Remedy::Replace("its volume is on a node that is out of service".to_owned())
        }
        Diagnosis::NodeDown { since, .. }
            if observed.wanted.replace_after.is_some_and(|after| waited(*since, after)) =>
        {
            Remedy::Replace("its node is down".to_owned())
        }
        // The data would be lost with the pod, so a restart is pointless.
        Diagnosis::Unresponsive { since, .. } if !observed.wanted.durable => {
            if observed.wanted.replace_after.is_some_and(|after| waited(*since, after)) {
                Remedy::Replace("not answering".to_owned())
            } else {
                Remedy::Wait
            }
        }
        // It has never started, so a restart is pointless: it waits for its volume or its image.
        Diagnosis::Unresponsive { began: false, since, restarted, .. } => {
            let after = observed.wanted.replace_after.map(|after| after.max(NOT_BEGUN));
            if after.is_some_and(|after| waited(restarted.unwrap_or(*since), after)) {
                Remedy::Replace("its pod does not start".to_owned())
            } else {
                Remedy::Wait
            }
        }
        Diagnosis::NotTerminating { since }
            if observed.wanted.replace_after.is_some_and(|after| waited(*since, after)) =>
        {
            Remedy::Replace("its pod does not terminate".to_owned())
        }
        Diagnosis::Unresponsive { since, restarted: None, .. } if waited(*since, restart_after(observed)) => {
            Remedy::RestartPod("member not answering".to_owned())
        }
        // It can't be replaced. Starting may take long, so it gets time before the next restart.
        Diagnosis::Unresponsive { restarted: Some(at), .. }
            if waited(*at, RESTART_AGAIN_AFTER)
                && (observed.etcd.membership.is_none() || observed.wanted.replace_after.is_none()) =>
        {
            Remedy::RestartPod("member not answering".to_owned())
        }
        Diagnosis::Unresponsive { restarted: Some(at), .. }
            if observed.wanted.replace_after.is_some_and(|after| waited(*at, after)) =>
        {
            Remedy::Replace("still not answering after a restart".to_owned())
        }
        _ => Remedy::Wait,
    }
}

pub fn restart_after(observed: &Observed) -> SignedDuration {
    observed.wanted.replace_after.unwrap_or(REPLACE_AFTER_DEFAULT) / 2
}

/// Since when each unhealthy member has been unhealthy, for the next reconcile.
pub fn unhealthy_since(observed: &Observed) -> BTreeMap<MemberId, Timestamp> {
    let since = |id: MemberId| (id, observed.recorded.unhealthy_since.get(&id).copied().unwrap_or(observed.now));
    match &observed.etcd.membership {
        Some(membership) => {
            membership.members.iter().filter(|it| !observed.is_healthy(it)).map(|it| since(it.id)).collect()
        }
        // Without a quorum no member is known to be healthy.
        None => {
            let known = known_members(observed).map(|(_, identity, _)| identity.member_id);
            let expected = members_of_pods(observed).map(|(_, identity)| identity.member_id);
            known.chain(expected).chain(observed.recorded.unhealthy_since.keys().copied()).map(since).collect()
        }
    }
}

/// The members according to the EtcdPeers, for when etcd can't be queried: ordinal, identity, and whether it ran.
pub fn known_members(observed: &Observed) -> impl Iterator<Item = (Ordinal, Identity, bool)> {
    observed.objects.peers.iter().filter_map(|(ordinal, peer)| Some((*ordinal, peer.identity?, peer.started)))
}

/// The members according to the annotations of their pods.
pub fn members_of_pods(observed: &Observed) -> impl Iterator<Item = (Ordinal, Identity)> {
    observed.objects.pods.iter().filter_map(|(ordinal, pod)| Some((*ordinal, pod.expected?.identity?)))
}

impl ProblemKind {
    /// The kind of problem that a refusal of the gate means.
    pub fn of_refusal(reason: RefusalReason) -> Self {
        if reason == RefusalReason::DataLost { ProblemKind::DataLost } else { ProblemKind::Other }
    }
}

impl Problem {
    pub fn new(kind: ProblemKind, message: impl Into<String>) -> Self {
        Problem { kind, message: message.into(), at: None }
    }
}
