//! The next change of the membership, one at a time: new members come as learners and are promoted when they have
//! caught up; the highest ordinal leaves first, never as the leader, and never if the rest could not go on.

use crate::observed::{Member, Membership, Observed};
use crate::plan::{Plan, Step, Waiting};
use crate::quorum::may_remove;

pub fn next_membership_change(observed: &Observed, membership: &Membership) -> Plan {
    if let Some(learner) = membership.learner() {
        return finish_learner(observed, learner);
    }
    let ours: Vec<(u32, &Member)> = membership.voters().filter_map(|voter| Some((voter.ordinal?, voter))).collect();
    let highest = ours.iter().max_by_key(|(ordinal, _)| *ordinal);
    let missing = (0..observed.replicas).find(|ordinal| ours.iter().all(|(known, _)| known != ordinal));
    let leaving = highest.filter(|_| ours.len() > observed.replicas as usize);
    // A founder that has not started yet was told who its fellows are. If that changed, it could never start.
    let starting = ours.iter().find(|(ordinal, voter)| !voter.started && leaving.is_none_or(|(it, _)| it != ordinal));
    match (leaving, missing, starting) {
        (None, None, _) => Plan::default(),
        (_, _, Some((ordinal, _))) => {
            let name = observed.place.member_name(*ordinal);
            waiting("FounderStarting", format!("{name} has to start for the first time before the members may change"))
        }
        (Some((ordinal, voter)), ..) => shrink(observed, membership, *ordinal, voter),
        // Before an ordinal that is too high leaves, the one that is missing comes: never fewer than asked for.
        (None, Some(ordinal), None) => grow(observed, ordinal),
    }
}

/// A learner is in flight: it is promoted, or taken away if the user has changed their mind.
fn finish_learner(observed: &Observed, learner: &Member) -> Plan {
    let Some(ordinal) = learner.ordinal else {
        return waiting("ForeignLearner", format!("the learner {:x} was added by somebody else", learner.id));
    };
    let name = observed.place.member_name(ordinal);
    if ordinal >= observed.replicas {
        return step(Step::RemoveMember { ordinal, member_id: learner.id });
    }
    if !learner.started || !observed.is_healthy(learner) {
        return waiting("LearnerStarting", format!("{name} has joined as a learner and is starting"));
    }
    let promote = Step::Promote { ordinal, member_id: learner.id };
    let catching_up = Waiting::new("LearnerCatchingUp", format!("{name} is catching up before it may vote"));
    Plan { steps: vec![promote], waiting: Some(catching_up) }
}

fn grow(observed: &Observed, ordinal: u32) -> Plan {
    let name = observed.place.member_name(ordinal);
    // Whatever ran under this name before must be gone: two processes never share a volume.
    if let Some(pod) = observed.pods.get(&ordinal) {
        if pod.deleting {
            return waiting("OldPodGoing", format!("the old pod of {name} is still stopping"));
        }
        return step(Step::DeletePod { ordinal, why: "it belongs to a member that was removed".to_owned() });
    }
    match observed.peers.get(&ordinal) {
        Some(peer) if peer.deleting => {
            waiting("OldPeerGoing", format!("the old EtcdPeer {name} is still being deleted"))
        }
        Some(_) => step(Step::AddLearner { ordinal }),
        None => Plan {
            steps: vec![Step::CreatePeer { ordinal, founding: false }, Step::AddLearner { ordinal }],
            waiting: None,
        },
    }
}

fn shrink(observed: &Observed, membership: &Membership, ordinal: u32, leaving: &Member) -> Plan {
    let name = observed.place.member_name(ordinal);
    let others: Vec<&Member> = membership.voters().filter(|voter| voter.id != leaving.id).collect();
    let healthy: Vec<&&Member> = others.iter().filter(|voter| observed.is_healthy(voter)).collect();
    if !may_remove(others.len() + 1, healthy.len()) {
        let message = format!(
            "{name} cannot be removed: of the {} other members only {} are healthy, and that is no quorum",
            others.len(),
            healthy.len()
        );
        return waiting("QuorumAtRisk", message);
    }
    match observed.leader() {
        None => waiting("NoLeader", format!("{name} will be removed when there is a leader")),
        Some(leader) if leader == leaving.id => {
            let heir = healthy.iter().filter_map(|voter| Some((voter.ordinal?, voter.id))).min();
            match heir {
                Some((to, to_id)) => step(Step::MoveLeader { from: ordinal, to, to_id }),
                None => waiting("NoHeir", format!("{name} leads, and no other member could take over")),
            }
        }
        Some(_) => step(Step::RemoveMember { ordinal, member_id: leaving.id }),
    }
}

fn step(step: Step) -> Plan {
    Plan { steps: vec![step], waiting: None }
}

fn waiting(reason: &'static str, message: String) -> Plan {
    Plan { steps: Vec::new(), waiting: Some(Waiting::new(reason, message)) }
}
