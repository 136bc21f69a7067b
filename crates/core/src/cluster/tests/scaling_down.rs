//! The highest ordinal is removed first, never as the leader, and never if the rest would lose its quorum.

use super::support::*;
use crate::cluster::observed::{Claim, ClusterId, Identity, MemberId, Observed, Replacement};
use crate::cluster::plan::{Plan, Step, plan};
use crate::cluster::step::MemberStep;
use crate::ordinal::Ordinal;

fn shrinking(from: u32, to: u32) -> Observed {
    cluster_of(from).with(|it| it.wanted.replicas = to)
}

fn remove(ordinal: u32) -> Step {
    Step::Member(
        Ordinal(ordinal),
        MemberStep::RemoveMember { member_id: identity_of(ordinal).member_id, why: "spec.replicas was lowered".into() },
    )
}

#[test]
fn the_highest_ordinal_leaves_first_as_a_number() {
    for (from, to) in [(5, 3), (3, 1), (2, 1), (11, 9), (4, 1)] {
        let plan = plan(&shrinking(from, to));
        assert_eq!(plan, Plan { steps: vec![remove(from - 1)], waiting: None }, "{from} to {to}");
    }
}

#[test]
fn the_leader_hands_over_to_the_lowest_healthy_voter_before_it_leaves() {
    let mut observed = shrinking(5, 3);
    observed.lead(4);
    let to = |to: u32| {
        Step::Member(Ordinal(4), MemberStep::MoveLeader { to: Ordinal(to), to_id: identity_of(to).member_id })
    };
    assert_eq!(steps_of(&observed), [to(0)]);
    observed.stop_answering(0);
    assert_eq!(steps_of(&observed), [to(1)]);
    observed.lead(1);
    assert_eq!(steps_of(&observed), [remove(4)]);
}

/// Otherwise the leader would have to go, and could hand over only to the one whose data is wrong.
#[test]
fn corrupt_voter_is_removed_before_the_healthy_leader() {
    let mut observed = shrinking(3, 1);
    observed.lead(2);
    observed.remembered.differing.insert(identity_of(1).member_id);
    observed.etcd.membership.as_mut().unwrap().members.retain(|member| member.ordinal != Some(Ordinal(0)));
    assert_eq!(steps_of(&observed).last(), Some(&remove(1)));
}

#[test]
fn leader_is_not_taken_for_another_one_if_a_stranger_answers_at_an_address() {
    let mut observed = shrinking(2, 1);
    observed.lead(1);
    let stranger = observed.etcd.answers.get_mut(&Ordinal(1)).unwrap().as_mut().unwrap();
    stranger.identity = Identity { member_id: MemberId(0xf00), cluster_id: ClusterId(0xbad) };
    stranger.leader = Some(MemberId(0xf00));
    let steps = steps_of(&observed);
    assert!(!steps.iter().any(|step| matches!(step, Step::Member(_, MemberStep::RemoveMember { .. }))), "{steps:?}");
}

/// The corrupt one can't be replaced yet; and when it can, it gets its data from the others.
#[test]
fn voter_is_not_removed_if_only_corrupt_data_would_be_left() {
    let last = Replacement { member_id: MemberId(7), at: NOW - seconds(59), count: 1, why: "its data differs".into() };
    for (size, answers, is_removed) in [(2, true, false), (3, true, false), (4, true, true), (2, false, false)] {
        let mut observed = shrinking(size, 1);
        observed.remembered.differing.insert(identity_of(0).member_id);
        observed.objects.peers.get_mut(&Ordinal(0)).unwrap().replacement = Some(last.clone());
        if !answers {
            observed.stop_answering(size - 1);
        }
        let plan = plan(&observed);
        let expected =
            if is_removed { (vec![remove(size - 1)], "ReplacementBackoff") } else { (vec![], "QuorumAtRisk") };
        assert_eq!((plan.steps.clone(), awaited(&plan)), expected, "{size} members, {answers}");
    }
}

#[test]
fn voter_is_not_removed_while_there_is_no_leader() {
    let mut observed = shrinking(3, 1);
    observed.etcd.answers.values_mut().flatten().for_each(|answer| answer.leader = None);
    let plan = plan(&observed);
    assert_eq!((plan.steps.len(), awaited(&plan)), (0, "NoLeader"));
}

#[test]
fn voter_is_not_removed_if_the_rest_would_lose_quorum() {
    // The number of members, the unreachable ones, and whether the removal is allowed.
    let cases: [(u32, &[u32], bool); 7] = [
        (3, &[0], false),
        (3, &[2], true),
        (5, &[0], true),
        (5, &[0, 1], false),
        (5, &[4, 0], true),
        (4, &[0], true),
        (2, &[0], false),
    ];
    for (size, silent, allowed) in cases {
        let mut observed = shrinking(size, size - 1);
        observed.lead(if size == 2 { 0 } else { 1 });
        for ordinal in silent {
            observed.stop_answering(*ordinal);
        }
        let plan = plan(&observed);
        if allowed {
            assert_eq!(plan.steps, [remove(size - 1)], "{size} without {silent:?}");
        } else {
            assert_eq!((plan.steps.len(), awaited(&plan)), (0, "QuorumAtRisk"), "{size} without {silent:?}");
        }
    }
}

#[test]
fn an_answer_without_a_read_that_needs_a_quorum_is_no_health() {
    let mut observed = shrinking(3, 2);
    observed.etcd.answers.get_mut(&Ordinal(1)).unwrap().as_mut().unwrap().reads = false;
    let plan = plan(&observed);
    assert_eq!(awaited(&plan), "QuorumAtRisk");
    let message = plan.waiting.unwrap().message;
    assert_eq!(message, "removing c-2 would leave 1 of 2 voters healthy: no quorum (spec.replicas was lowered)");
}

#[test]
fn membership_stays_until_every_initial_member_has_started() {
    // The pod of an initial member has a fixed list of initial members; etcd would not start with an outdated one.
    for replicas in [1, 5] {
        let mut observed = shrinking(3, replicas);
        observed.member_mut(0).started = false;
        assert_eq!(awaited(&plan(&observed)), "InitialMemberStarting", "to {replicas}");
    }
    let mut observed = shrinking(3, 1);
    observed.member_mut(2).started = false;
    observed.stop_answering(2);
    assert_eq!(steps_of(&observed).last(), Some(&remove(2)), "unless it is the one that leaves");
}

#[test]
fn of_those_who_should_leave_the_silent_go_first() {
    let mut observed = shrinking(5, 1);
    observed.stop_answering(2);
    assert_eq!(steps_of(&observed), [remove(2)]);
    observed.stop_answering(3);
    assert_eq!(steps_of(&observed), [remove(3)]);
}

#[test]
fn the_last_member_never_leaves() {
    assert_eq!(awaited(&plan(&shrinking(1, 0))), "QuorumAtRisk");
}

#[test]
fn removed_member_loses_its_pod_and_claim_and_then_its_peer() {
    let mut observed = shrinking(4, 3);
    observed.leave_etcd(3);
    let steps = steps_of(&observed);
    assert!(
        matches!(
            steps[..],
            [Step::Member(Ordinal(3), MemberStep::DeleteClaim), Step::Member(Ordinal(3), MemberStep::DeletePod { .. })]
        ),
        "{steps:?}"
    );
    observed.objects.claims.get_mut(&Ordinal(3)).unwrap().deleting = true;
    assert!(matches!(steps_of(&observed)[..], [Step::Member(Ordinal(3), MemberStep::DeletePod { .. })]));
    observed.objects.pods.get_mut(&Ordinal(3)).unwrap().deleting = true;
    assert_eq!(steps_of(&observed), []);
    observed.objects.pods.remove(&Ordinal(3));
    assert_eq!(steps_of(&observed), [], "the claim is still there");
    observed.objects.claims.remove(&Ordinal(3));
    assert_eq!(steps_of(&observed), [Step::Member(Ordinal(3), MemberStep::DeletePeer)]);
    observed.objects.peers.get_mut(&Ordinal(3)).unwrap().deleting = true;
    assert_eq!(steps_of(&observed), []);
}

#[test]
fn a_claim_of_this_cluster_goes_even_if_its_peer_is_gone_but_nobody_elses() {
    let mut observed = cluster_of(3);
    observed.objects.claims.insert(Ordinal(3), Claim { identity: Some(identity_of(3)), ..Claim::default() });
    observed.objects.claims.insert(Ordinal(4), Claim { bootstrap: Some(bootstrap_of(3)), ..Claim::default() });
    observed.objects.claims.insert(Ordinal(5), Claim::default());
    let other = Identity { member_id: MemberId(1), cluster_id: ClusterId(0xbad) };
    observed.objects.claims.insert(Ordinal(6), Claim { identity: Some(other), ..Claim::default() });
    assert_eq!(
        steps_of(&observed),
        [Step::Member(Ordinal(3), MemberStep::DeleteClaim), Step::Member(Ordinal(4), MemberStep::DeleteClaim)]
    );
}

#[test]
fn a_claim_is_never_deleted_while_its_ordinal_is_a_member() {
    let mut observed = shrinking(5, 4);
    observed.stop_answering(0);
    observed.stop_answering(1);
    assert_eq!(steps_of(&observed), [], "nobody may leave");
    observed.join_as_learner(5);
    let steps = steps_of(&observed);
    assert!(!steps.iter().any(|step| matches!(step, Step::Member(_, MemberStep::DeleteClaim))), "{steps:?}");
}

#[test]
fn a_claim_is_never_deleted_while_no_quorum_answers() {
    let mut observed = shrinking(4, 3);
    observed.leave_etcd(3);
    observed.lose_quorum();
    let steps = steps_of(&observed);
    assert!(!steps.iter().any(|step| matches!(step, Step::Member(_, MemberStep::DeleteClaim))), "{steps:?}");
}

#[test]
fn one_change_at_a_time_also_when_much_is_to_do() {
    let mut observed = shrinking(5, 1);
    observed.leave_etcd(4);
    let changes = steps_of(&observed);
    let changes =
        changes.iter().filter(|step| matches!(step, Step::Member(_, MemberStep::RemoveMember { .. }))).count();
    assert_eq!(changes, 1);
}
