//! The next change of the membership, one at a time: new members join as learners and are promoted when they have
//! caught up; the highest ordinal is removed first, never as the leader, and never if the rest would lose its quorum.

use etcd_operator_api::WaitReason;

use crate::cluster::leftovers::delete_leftovers;
use crate::cluster::observed::{Member, Membership, Observed};
use crate::cluster::recreate::{is_to_be_recreated, model_of_new, recreate_learner};
use crate::cluster::removal::remove_voter;
use crate::cluster::step::{ClusterStep, MemberStep, Plan, Step, Waiting};
use crate::ordinal::Ordinal;

pub fn next_membership_change(observed: &Observed, membership: &Membership) -> Plan {
    if let Some(learner) = membership.learner() {
        return finish_learner(observed, learner);
    }
    let ours: Vec<(Ordinal, &Member)> = membership.voters().filter_map(|voter| Some((voter.ordinal?, voter))).collect();
    // The highest ordinal, but first an unhealthy or corrupt voter that should be removed anyway: the rest can spare it
    // most easily, and a corrupt one is nobody to hand the leadership to.
    let highest = ours.iter().max_by_key(|(ordinal, voter)| {
        let is_sound = observed.is_healthy(voter) && !observed.is_corrupt(voter);
        let useless = !observed.is_desired(*ordinal) && !is_sound;
        (useless, *ordinal)
    });
    let missing =
        Ordinal::first(observed.wanted.replicas).find(|ordinal| ours.iter().all(|(known, _)| known != ordinal));
    let leaving = highest.filter(|_| ours.len() > observed.wanted.replicas as usize);
    // An initial member that has not started yet knows a fixed list of initial members. If the membership changed, it
    // could not start; unless it should be removed anyway.
    let starting = ours.iter().find(|(ordinal, voter)| !voter.started && observed.is_desired(*ordinal));
    // Nor does etcd let it start for the first time while a downgrade is in progress. That is resumed afterwards.
    if starting.is_some() && observed.etcd.downgrade.is_some() {
        return step(Step::Cluster(ClusterStep::CancelDowngrade));
    }
    match (leaving, missing, starting) {
        (None, None, _) => Plan::default(),
        (_, _, Some((ordinal, _))) => {
            let name = observed.names.member_name(*ordinal);
            waiting(
                WaitReason::InitialMemberStarting,
                format!("waiting for {name} to start for the first time before the membership changes"),
            )
        }
        (Some((ordinal, voter)), ..) => {
            remove_voter(observed, membership, *ordinal, voter, "spec.replicas was lowered")
        }
        // etcd lets no member join while a downgrade is in progress. The downgrade is resumed afterwards.
        (None, Some(_), None) if observed.etcd.downgrade.is_some() => step(Step::Cluster(ClusterStep::CancelDowngrade)),
        // A missing ordinal is added before one that is too high is removed: never fewer members than desired.
        (None, Some(ordinal), None) => grow(observed, membership, ordinal),
    }
}

/// A learner is in flight: it is promoted, or removed if it is no longer desired.
fn finish_learner(observed: &Observed, learner: &Member) -> Plan {
    let Some(ordinal) = learner.ordinal else {
        return waiting(
            WaitReason::UnmanagedLearner,
            format!("learner {} was not added by this operator: promote or remove it with etcdctl", learner.id),
        );
    };
    let name = observed.names.member_name(ordinal);
    if !observed.is_desired(ordinal) {
        let why = "spec.replicas was lowered".to_owned();
        return step(Step::Member(ordinal, MemberStep::RemoveMember { member_id: learner.id, why }));
    }
    if !learner.started || !observed.is_healthy(learner) {
        if observed.etcd.downgrade.is_some() {
            return step(Step::Cluster(ClusterStep::CancelDowngrade));
        }
        let steps = recreate_learner(observed, ordinal, learner.id);
        if !steps.is_empty() {
            return Plan::steps(steps);
        }
        let problem = observed.objects.pods.get(&ordinal).and_then(|pod| pod.problem.as_ref());
        let problem = problem.map(|problem| format!("; {}", problem.message)).unwrap_or_default();
        return waiting(WaitReason::LearnerStarting, format!("{name} joined as a learner and is starting{problem}"));
    }
    // It is replaced, at the latest when recovery no longer backs off.
    if observed.is_corrupt(learner) {
        return Plan::default();
    }
    let promote = Step::Member(ordinal, MemberStep::Promote { member_id: learner.id });
    let catching_up =
        Waiting::new(WaitReason::LearnerCatchingUp, format!("{name} is catching up before its promotion"));
    Plan { steps: vec![promote], waiting: Some(catching_up) }
}

fn grow(observed: &Observed, membership: &Membership, ordinal: Ordinal) -> Plan {
    let name = observed.names.member_name(ordinal);
    // A new member gets a new volume: the old one was faulty, or its member was replaced.
    let steps = delete_leftovers(observed, membership, ordinal);
    if !steps.is_empty() {
        return Plan::steps(steps);
    }
    // The earlier pod of this name must be gone: two processes never share a volume.
    if observed.objects.pods.contains_key(&ordinal) {
        return waiting(WaitReason::OldPodTerminating, format!("waiting for the old pod of {name} to terminate"));
    }
    if observed.objects.claims.get(&ordinal).is_some_and(|claim| claim.deleting) {
        return waiting(
            WaitReason::OldClaimTerminating,
            format!("waiting for the old volume claim of {name} to be deleted"),
        );
    }
    match observed.objects.peers.get(&ordinal) {
        Some(peer) if peer.deleting => {
            waiting(WaitReason::OldPeerTerminating, format!("waiting for the old EtcdPeer {name} to be deleted"))
        }
        // It was created from an outdated spec.
        Some(_) if is_to_be_recreated(observed, ordinal) => step(Step::Member(ordinal, MemberStep::DeletePeer)),
        Some(_) => step(Step::Member(ordinal, MemberStep::AddLearner)),
        None => Plan::steps(vec![
            Step::Member(ordinal, MemberStep::CreatePeer { initial: false, model: model_of_new(observed) }),
            Step::Member(ordinal, MemberStep::AddLearner),
        ]),
    }
}

fn step(step: Step) -> Plan {
    Plan::steps(vec![step])
}

fn waiting(reason: WaitReason, message: String) -> Plan {
    Plan::waiting(reason, message)
}
