//! New members join one at a time, as learners, and are promoted when they have caught up.

use super::support::*;
use crate::cluster::observed::{Claim, MemberId, Observed, Peer, Pod, Replacement};
use crate::cluster::plan::{Model, Plan, Start, Step, plan};
use crate::cluster::spec_diff::{SpecDiff, UpdateMethod};
use crate::cluster::step::MemberStep;
use crate::ordinal::Ordinal;

fn growing(from: u32, to: u32) -> Observed {
    cluster_of(from).with(|it| it.wanted.replicas = to)
}

#[test]
fn the_peer_comes_before_the_learner() {
    for (from, to) in [(1, 3), (3, 5), (10, 11)] {
        let expected = vec![
            Step::Member(Ordinal(from), MemberStep::CreatePeer { initial: false, model: Model::Spec }),
            Step::Member(Ordinal(from), MemberStep::AddLearner),
        ];
        assert_eq!(plan(&growing(from, to)), Plan { steps: expected, waiting: None });
    }
}

#[test]
fn a_crash_after_the_peer_resumes_with_the_learner() {
    let mut observed = growing(3, 5);
    observed.objects.peers.insert(Ordinal(3), Peer::default());
    assert_eq!(steps_of(&observed), [Step::Member(Ordinal(3), MemberStep::AddLearner)]);
}

#[test]
fn a_learner_starts_fresh_with_its_identity_and_the_live_membership() {
    let mut observed = growing(3, 5);
    observed.join_as_learner(3);
    let plan = plan(&observed);
    let initial_cluster = (0..4).map(entry_of).collect();
    let start = Start { bootstrap_token: None, initial_cluster, expected: fresh(3), serves_clients: false };
    let expected = [
        Step::Member(Ordinal(3), MemberStep::CreateClaim { bootstrap: None, identity: Some(identity_of(3)) }),
        Step::Member(Ordinal(3), MemberStep::CreatePod { start }),
    ];
    assert_eq!(plan.steps, expected, "and no second learner");
    assert_eq!(awaited(&plan), "LearnerStarting");
}

#[test]
fn a_learner_whose_addition_was_never_confirmed_is_not_added_again() {
    let mut observed = growing(3, 5);
    observed.join_as_learner(3);
    observed.objects.peers.remove(&Ordinal(3));
    let steps = steps_of(&observed);
    let expected = [
        Step::Member(Ordinal(3), MemberStep::CreatePeer { initial: false, model: Model::Spec }),
        Step::Member(Ordinal(3), MemberStep::RecordMember { identity: identity_of(3), started: false }),
    ];
    assert_eq!(steps[..2], expected);
    assert!(!steps.iter().any(|step| matches!(step, Step::Member(_, MemberStep::AddLearner))), "{steps:?}");
}

/// Nobody told its pod yet that there must be data when it starts again.
#[test]
fn learner_that_is_removed_is_not_recorded_as_started_without_a_pod_that_knows() {
    let mut observed = cluster_of(2);
    observed.wanted.replicas = 3;
    observed.join_as_running_learner(2);
    observed.etcd.answers.remove(&Ordinal(2));
    observed.objects.pods.remove(&Ordinal(2));
    observed.objects.peers.get_mut(&Ordinal(2)).unwrap().started = false;
    let change = SpecDiff { fields: vec!["spec.podTemplate".into()], method: UpdateMethod::Restart };
    observed.objects.outdated.insert(Ordinal(2), change);
    let steps = steps_of(&observed);
    assert!(matches!(steps[..], [Step::Member(Ordinal(2), MemberStep::RemoveMember { .. })]), "{steps:?}");
}

#[test]
fn learner_with_corrupt_data_is_not_promoted_while_its_replacement_backs_off() {
    let mut observed = cluster_of(2);
    observed.wanted.replicas = 3;
    observed.join_as_running_learner(2);
    assert!(matches!(steps_of(&observed)[..], [Step::Member(Ordinal(2), MemberStep::Promote { .. })]));
    observed.remembered.differing.insert(identity_of(2).member_id);
    let last = Replacement { member_id: MemberId(7), at: NOW - seconds(59), count: 1, why: "its data differs".into() };
    observed.objects.peers.get_mut(&Ordinal(2)).unwrap().replacement = Some(last);
    let plan = plan(&observed);
    assert_eq!((plan.steps.len(), awaited(&plan)), (0, "ReplacementBackoff"));
}

#[test]
fn a_learner_votes_only_once_it_has_started_and_answers() {
    let mut observed = growing(3, 5);
    observed.join_as_running_learner(3);
    let done = plan(&observed);
    assert_eq!(done.steps, [Step::Member(Ordinal(3), MemberStep::Promote { member_id: identity_of(3).member_id })]);
    assert_eq!(awaited(&done), "LearnerCatchingUp");

    let mut silent = observed.clone();
    silent.stop_answering(3);
    let mut unstarted = observed.clone();
    unstarted.member_mut(3).started = false;
    let mut somebody_else = observed;
    somebody_else.etcd.answers.get_mut(&Ordinal(3)).unwrap().as_mut().unwrap().identity = identity_of(9);
    for observed in [silent, unstarted, somebody_else] {
        let plan = plan(&observed);
        assert!(!plan.steps.iter().any(|step| matches!(step, Step::Member(_, MemberStep::Promote { .. }))), "{plan:?}");
        assert_eq!(awaited(&plan), "LearnerStarting");
    }
}

#[test]
fn identity_of_a_learner_is_recorded_before_its_promotion() {
    let mut observed = growing(3, 4);
    observed.join_as_running_learner(3);
    observed.objects.peers.get_mut(&Ordinal(3)).unwrap().started = false;
    observed.objects.claims.get_mut(&Ordinal(3)).unwrap().identity = None;
    observed.objects.pods.get_mut(&Ordinal(3)).unwrap().expected = Some(fresh(3));
    let expected = [
        Step::Member(Ordinal(3), MemberStep::MarkClaim { identity: identity_of(3), version: Some(version("3.6.16")) }),
        Step::Member(Ordinal(3), MemberStep::AnnotatePod { expected: kept(3), serves_clients: false }),
        Step::Member(Ordinal(3), MemberStep::RecordMember { identity: identity_of(3), started: true }),
        Step::Member(Ordinal(3), MemberStep::Promote { member_id: identity_of(3).member_id }),
    ];
    assert_eq!(steps_of(&observed), expected);
}

#[test]
fn once_it_votes_clients_may_come_and_the_next_one_follows() {
    let mut observed = growing(3, 5);
    observed.join_as_running_learner(3);
    observed.member_mut(3).learner = false;
    observed.fit_budget();
    observed.answer(3);
    let expected = [
        Step::Member(Ordinal(3), MemberStep::AnnotatePod { expected: kept(3), serves_clients: true }),
        Step::Member(Ordinal(4), MemberStep::CreatePeer { initial: false, model: Model::Spec }),
        Step::Member(Ordinal(4), MemberStep::AddLearner),
    ];
    assert_eq!(steps_of(&observed), expected);
}

#[test]
fn a_learner_that_is_no_longer_wanted_is_removed() {
    let mut observed = growing(3, 5);
    observed.join_as_running_learner(3);
    observed.wanted.replicas = 3;
    assert_eq!(
        steps_of(&observed),
        [Step::Member(
            Ordinal(3),
            MemberStep::RemoveMember { member_id: identity_of(3).member_id, why: "spec.replicas was lowered".into() }
        )]
    );
}

#[test]
fn a_learner_that_somebody_else_added_is_waited_for() {
    let mut observed = growing(3, 5);
    observed.join_as_running_learner(3);
    observed.member_mut(3).ordinal = None;
    assert_eq!(awaited(&plan(&observed)), "UnmanagedLearner");
}

#[test]
fn an_old_pod_must_be_gone_before_a_new_member_takes_its_place() {
    let mut observed = growing(3, 4);
    observed.objects.pods.insert(Ordinal(3), Pod::default());
    observed.objects.peers.insert(Ordinal(3), Peer::default());
    assert!(matches!(steps_of(&observed)[..], [Step::Member(Ordinal(3), MemberStep::DeletePod { .. })]));
    observed.objects.pods.get_mut(&Ordinal(3)).unwrap().deleting = true;
    assert_eq!(awaited(&plan(&observed)), "OldPodTerminating");
    observed.objects.pods.clear();
    observed.objects.peers.get_mut(&Ordinal(3)).unwrap().deleting = true;
    assert_eq!(awaited(&plan(&observed)), "OldPeerTerminating");
}

#[test]
fn a_new_member_on_the_claim_of_a_removed_one_is_told_who_it_is() {
    // The gate then sees that the data is not the member's own, and moves it aside.
    let mut observed = growing(3, 4);
    observed.join_as_learner(3);
    observed.objects.claims.insert(Ordinal(3), Claim { identity: Some(identity_of(77)), ..Claim::default() });
    let steps = steps_of(&observed);
    let [mark, Step::Member(Ordinal(3), MemberStep::CreatePod { start })] = &steps[..] else { panic!("{steps:?}") };
    assert_eq!(
        *mark,
        Step::Member(Ordinal(3), MemberStep::MarkClaim { identity: identity_of(3), version: None }),
        "the claim says whose it is now"
    );
    assert_eq!(start.expected, fresh(3));
}

#[test]
fn a_new_member_waits_until_the_old_claim_is_gone_and_then_gets_its_own() {
    let mut observed = growing(3, 4);
    observed.join_as_learner(3);
    observed.objects.claims.insert(Ordinal(3), Claim { deleting: true, ..Claim::default() });
    assert_eq!(steps_of(&observed), []);
    observed.objects.claims.remove(&Ordinal(3));
    let steps = steps_of(&observed);
    assert!(
        matches!(
            steps[..],
            [Step::Member(_, MemberStep::CreateClaim { .. }), Step::Member(_, MemberStep::CreatePod { .. })]
        ),
        "{steps:?}"
    );
}

#[test]
fn a_member_that_is_missing_in_the_middle_comes_before_the_one_too_many_leaves() {
    let mut observed = cluster_of(4);
    observed.leave_etcd(1);
    observed.objects.pods.remove(&Ordinal(1));
    observed.objects.claims.remove(&Ordinal(1));
    observed.wanted.replicas = 3;
    assert_eq!(steps_of(&observed), [Step::Member(Ordinal(1), MemberStep::AddLearner)]);
}
