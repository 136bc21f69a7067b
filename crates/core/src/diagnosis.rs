//! What is wrong with a member, and what would help it.

use std::collections::BTreeMap;

use crate::gate::REFUSED;
use crate::observed::{DataState, Identity, Member, Membership, Observed, Peer, Pod, Problem, ProblemKind};

/// How long a member may be out of reach before its pod is restarted, if the user never wants it replaced: half of the
/// time after which it would be.
const REPLACE_AFTER_DEFAULT: i64 = 300;
/// How long a pod that was restarted has until it is restarted again, if nothing else can be done.
const RESTART_AGAIN_AFTER: i64 = 3600;
/// How long a pod may take to begin: a volume that was in use elsewhere is let go after six minutes.
pub const NOT_BEGUN: i64 = 900;
/// How long what the gate said is believed.
const REFUSAL_HOLDS: i64 = 60;
/// How long a defragmentation may take.
const DEFRAGMENTATION: i64 = 600;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Diagnosis {
    /// Its data is gone, so it can never come back as who it was.
    DataLost(String),
    /// Its data is not that of the others.
    Corrupt,
    /// Its node is down, or the node that its volume is bound to.
    NodeDown {
        since: i64,
        /// Whether somebody vouches that nothing runs there any more.
        fenced: bool,
    },
    /// It could run, and does not answer.
    Unresponsive {
        since: i64,
        /// When its pod was made, if that was later.
        restarted: Option<i64>,
        /// Whether it was ever started there.
        began: bool,
        /// Whether what it was made from is not known to work: then a new member would not either.
        untested: bool,
    },
    /// Its pod was to stop, and does not.
    NotTerminating { since: i64 },
    /// It is on its way, or hindered by something that a new member would suffer from as well.
    Blocked,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    Wait,
    RestartPod(String),
    Replace(String),
}

/// What is wrong with a member of ours. `None` if it is well.
pub fn diagnose(observed: &Observed, ordinal: u32, member: &Member) -> Option<Diagnosis> {
    if observed.is_corrupt(member) && can_be_compared(observed) {
        return Some(Diagnosis::Corrupt);
    }
    if observed.is_healthy(member) {
        return None;
    }
    if member.started
        && !has_stale_refusal(observed, ordinal)
        && let Some(why) = data_loss(observed, ordinal, member.id)
    {
        return Some(Diagnosis::DataLost(why));
    }
    Some(diagnose_unreachable(observed, ordinal, member.id))
}

/// Whether a finding of corruption could be confirmed now. If not, what else is wrong with somebody comes first: a plan that can't
/// be confirmed would keep everything else from being done.
pub fn can_be_compared(observed: &Observed) -> bool {
    let mut voters = observed.membership.iter().flat_map(Membership::voters);
    voters.all(|voter| observed.is_healthy(voter))
}

/// Why a member that ran before can't have its data any more, if so.
pub fn data_loss(observed: &Observed, ordinal: u32, member_id: u64) -> Option<String> {
    let name = observed.names.member_name(ordinal);
    let pod = observed.pods.get(&ordinal);
    if let Some(refusal) = pod.and_then(|pod| refusal_of(pod, member_id)) {
        return Some(refusal.to_owned());
    }
    if !observed.durable {
        let runs_no_more = pod.is_none_or(|pod| pod.finished && !pod.deleting);
        return runs_no_more.then(|| "its data was in its pod, which has ended".to_owned());
    }
    let is_on_a_node = pod.is_some_and(|pod| pod.node.is_some());
    match observed.claims.get(&ordinal) {
        None if !is_on_a_node => Some(format!("the volume claim {name} is gone")),
        // What is being deleted can't be kept any more; it goes as soon as nobody uses it.
        Some(claim) if claim.deleting && !is_on_a_node => Some(format!("the volume claim {name} was deleted")),
        _ => None,
    }
}

/// Whether all that speaks for a loss is what the gate said some time ago. The data may be back by now; the next try will
/// tell.
fn has_stale_refusal(observed: &Observed, ordinal: u32) -> bool {
    let problem = observed.pods.get(&ordinal).and_then(|pod| pod.problem.as_ref());
    let refusal = problem.filter(|problem| problem.kind == ProblemKind::DataLost);
    refusal.and_then(|refusal| refusal.at).is_some_and(|at| observed.now - at > REFUSAL_HOLDS)
}

/// What the gate said when it did not find the data of a member that must have some.
fn refusal_of(pod: &Pod, member_id: u64) -> Option<&str> {
    let expected = pod.expected.filter(|expected| expected.data == DataState::Existing)?;
    let is_about = expected.identity.is_some_and(|identity| identity.member_id == member_id);
    let problem = pod.problem.as_ref().filter(|problem| problem.kind == ProblemKind::DataLost && is_about)?;
    Some(&problem.message)
}

fn diagnose_unreachable(observed: &Observed, ordinal: u32, member_id: u64) -> Diagnosis {
    let known =
        if observed.membership.is_some() { &observed.observed_unhealthy_since } else { &observed.unhealthy_since };
    let since = known.get(&member_id).copied().unwrap_or(observed.now);
    let Some(pod) = observed.pods.get(&ordinal) else { return Diagnosis::Blocked };
    let bound_to = observed.claims.get(&ordinal).and_then(|claim| claim.node);
    let has = |kind: ProblemKind| matches!(&pod.problem, Some(problem) if problem.kind == kind);
    let node = if has(ProblemKind::NoNode) { bound_to } else { pod.node };
    if let Some(node) = node
        && let Some(down_since) = node.down_since
    {
        // A pod on a node that is out of service is taken away and started elsewhere, with its data if that is possible.
        let stuck_with_it = node.fenced && has(ProblemKind::NoNode);
        return Diagnosis::NodeDown { since: since.max(down_since), fenced: stuck_with_it };
    }
    // If its node finds it well, it may be only the operator that does not reach it.
    if pod.ready && !observed.is_reached(ordinal) {
        return Diagnosis::Blocked;
    }
    if pod.deleting {
        let overdue = pod.deleting_since.filter(|_| observed.membership.is_some());
        return overdue.map_or(Diagnosis::Blocked, |at| Diagnosis::NotTerminating { since: at.max(since) });
    }
    if has(ProblemKind::NoNode) || has(ProblemKind::NoImage) || is_being_defragmented(observed, ordinal) {
        return Diagnosis::Blocked;
    }
    let restarted = Some(pod.created).filter(|created| *created > since);
    Diagnosis::Unresponsive { since, restarted, began: pod.began, untested: is_untested(observed, ordinal) }
}

/// Whether a voter was never seen to answer since it was made, and nobody else shows that it could. A learner costs nothing
/// to be tried again, and what is kept in a pod can't be had by trying once more.
fn is_untested(observed: &Observed, ordinal: u32) -> bool {
    let is_learner = observed.member(ordinal).is_some_and(|member| member.learner);
    let is_new = observed.peers.get(&ordinal).is_none_or(|peer| !peer.proven);
    let is_proof = |(other, peer): (&u32, &Peer)| peer.proven && !observed.outdated.contains_key(other);
    let is_proven = !observed.outdated.contains_key(&ordinal) && observed.peers.iter().any(is_proof);
    observed.durable && !is_learner && is_new && !is_proven
}

/// A member does not answer while its database is defragmented, and that may take long.
fn is_being_defragmented(observed: &Observed, ordinal: u32) -> bool {
    let last = observed.peers.get(&ordinal).and_then(|peer| peer.defragmented);
    last.is_some_and(|last| observed.now - last.at < DEFRAGMENTATION)
}

/// What helps a member. Whether the others can bear it is another question.
pub fn remedy_for(observed: &Observed, diagnosis: &Diagnosis) -> Remedy {
    match (usual_remedy(observed, diagnosis), diagnosis) {
        // What it was made from is the likely cause, and that is for the user to change.
        (Remedy::Replace(_), Diagnosis::Unresponsive { untested: true, .. }) => Remedy::Wait,
        (remedy, _) => remedy,
    }
}

fn usual_remedy(observed: &Observed, diagnosis: &Diagnosis) -> Remedy {
    let waited = |since: i64, time: i64| observed.now - since >= time;
    match diagnosis {
        Diagnosis::DataLost(why) => Remedy::Replace(why.clone()),
        Diagnosis::Corrupt => Remedy::Replace("its data differs from that of the other members".to_owned()),
        Diagnosis::NodeDown { fenced: true, .. } => {
            Remedy::Replace("its volume is on a node that is out of service".to_owned())
        }
        Diagnosis::NodeDown { since, .. } if observed.replace_after.is_some_and(|after| waited(*since, after)) => {
            Remedy::Replace("its node is down".to_owned())
        }
        // The data would go with its pod, so there is nothing to restart it for.
        Diagnosis::Unresponsive { since, .. } if !observed.durable => {
            if observed.replace_after.is_some_and(|after| waited(*since, after)) {
                Remedy::Replace("not answering".to_owned())
            } else {
                Remedy::Wait
            }
        }
        // It has never begun, so there is nothing to restart: it waits for its volume or its image.
        Diagnosis::Unresponsive { began: false, since, restarted, .. } => {
            let after = observed.replace_after.map(|after| after.max(NOT_BEGUN));
            if after.is_some_and(|after| waited(restarted.unwrap_or(*since), after)) {
                Remedy::Replace("its pod does not start".to_owned())
            } else {
                Remedy::Wait
            }
        }
        Diagnosis::NotTerminating { since } if observed.replace_after.is_some_and(|after| waited(*since, after)) => {
            Remedy::Replace("its pod does not terminate".to_owned())
        }
        Diagnosis::Unresponsive { since, restarted: None, .. } if waited(*since, restart_after(observed)) => {
            Remedy::RestartPod("member not answering".to_owned())
        }
        // It can't be replaced. To start may take it long, so it gets time before it is tried once more.
        Diagnosis::Unresponsive { restarted: Some(at), .. }
            if waited(*at, RESTART_AGAIN_AFTER)
                && (observed.membership.is_none() || observed.replace_after.is_none()) =>
        {
            Remedy::RestartPod("member not answering".to_owned())
        }
        Diagnosis::Unresponsive { restarted: Some(at), .. }
            if observed.replace_after.is_some_and(|after| waited(*at, after)) =>
        {
            Remedy::Replace("still not answering after a restart".to_owned())
        }
        _ => Remedy::Wait,
    }
}

pub fn restart_after(observed: &Observed) -> i64 {
    observed.replace_after.unwrap_or(REPLACE_AFTER_DEFAULT) / 2
}

/// Since when each member that is not well has not been, for the next look.
pub fn unhealthy_since(observed: &Observed) -> BTreeMap<u64, i64> {
    let since = |id: u64| (id, observed.unhealthy_since.get(&id).copied().unwrap_or(observed.now));
    match &observed.membership {
        Some(membership) => {
            membership.members.iter().filter(|it| !observed.is_healthy(it)).map(|it| since(it.id)).collect()
        }
        // Nobody is known to be well while no quorum answers.
        None => {
            let known = known_members(observed).map(|(_, identity, _)| identity.member_id);
            let expected = members_of_pods(observed).map(|(_, identity)| identity.member_id);
            known.chain(expected).chain(observed.unhealthy_since.keys().copied()).map(since).collect()
        }
    }
}

/// The members as the EtcdPeers know them, for when etcd can't be asked: ordinal, who it is, and whether it ran.
pub fn known_members(observed: &Observed) -> impl Iterator<Item = (u32, Identity, bool)> {
    observed.peers.iter().filter_map(|(ordinal, peer)| Some((*ordinal, peer.identity?, peer.started)))
}

/// The members as their pods know them.
pub fn members_of_pods(observed: &Observed) -> impl Iterator<Item = (u32, Identity)> {
    observed.pods.iter().filter_map(|(ordinal, pod)| Some((*ordinal, pod.expected?.identity?)))
}

impl ProblemKind {
    /// What the termination message of the gate means.
    pub fn of_refusal(words: &str) -> Self {
        if words.starts_with(REFUSED) { ProblemKind::DataLost } else { ProblemKind::Other }
    }
}

impl Problem {
    pub fn new(kind: ProblemKind, message: impl Into<String>) -> Self {
        Problem { kind, message: message.into(), at: None }
    }
}
