//! Unhealthy members are recovered: one at a time, never at the cost of the others, and never in a loop.

use jiff::Timestamp;

use super::support::*;
use crate::cluster::observed::{
    Alarm, AlarmKind, Claim, MemberId, Node, Observed, Pod, Problem, ProblemKind, Replacement,
};
use crate::cluster::plan::{Plan, Step, plan};
use crate::cluster::spec_diff::{SpecDiff, UpdateMethod};
use crate::cluster::step::MemberStep;
use crate::ordinal::Ordinal;

fn replacement(ordinal: u32, count: u32, why: &str) -> Replacement {
    Replacement { member_id: identity_of(ordinal).member_id, at: NOW, count, why: why.to_owned() }
}

pub fn removal(ordinal: u32, why: &str) -> Vec<Step> {
    vec![
        Step::Member(Ordinal(ordinal), MemberStep::RecordReplacement { replacement: replacement(ordinal, 1, why) }),
        Step::Member(
            Ordinal(ordinal),
            MemberStep::RemoveMember { member_id: identity_of(ordinal).member_id, why: why.to_owned() },
        ),
    ]
}

/// The member's data is gone, and the gate has reported it.
pub fn lose_data(observed: &mut Observed, ordinal: u32) {
    observed.etcd.answers.remove(&Ordinal(ordinal));
    let pod = observed.objects.pods.get_mut(&Ordinal(ordinal)).unwrap();
    pod.problem = Some(Problem::new(ProblemKind::DataLost, "refused: its data is gone"));
}

pub fn unhealthy_for(observed: &mut Observed, ordinal: u32, long: i64) {
    let id = identity_of(ordinal).member_id;
    observed.recorded.unhealthy_since.insert(id, NOW - seconds(long));
    observed.remembered.unhealthy_since.insert(id, NOW - seconds(long));
}

/// The member has not answered for so many seconds.
pub fn stop_answering_for(observed: &mut Observed, ordinal: u32, long: i64) {
    observed.stop_answering(ordinal);
    unhealthy_for(observed, ordinal, long);
    observed.objects.pods.get_mut(&Ordinal(ordinal)).unwrap().created = NOW - seconds(86400);
}

pub fn node_down_for(observed: &mut Observed, ordinal: u32, long: i64) {
    stop_answering_for(observed, ordinal, long);
    observed.objects.pods.get_mut(&Ordinal(ordinal)).unwrap().node =
        Some(Node { down_since: Some(NOW - seconds(long)), fenced: false });
}

#[test]
fn outdated_member_never_observed_healthy_is_recreated_only_if_it_does_not_work() {
    let mut observed = cluster_of(3);
    observed.stop_answering(1);
    observed.objects.peers.get_mut(&Ordinal(1)).unwrap().proven = false;
    let change = SpecDiff { fields: vec!["spec.podTemplate".into()], method: UpdateMethod::Restart };
    observed.objects.outdated.insert(Ordinal(1), change);
    let is_recreated = |observed: &Observed| {
        let recreates = |step: &Step| matches!(step, Step::Member(Ordinal(1), MemberStep::RecreatePeer { .. }));
        steps_of(observed).iter().any(recreates)
    };
    let pod = observed.objects.pods.get_mut(&Ordinal(1)).unwrap();
    (pod.ready, pod.created) = (true, NOW - seconds(3600));
    assert!(!is_recreated(&observed), "it is well, and only the operator can't reach it");
    let pod = observed.objects.pods.get_mut(&Ordinal(1)).unwrap();
    (pod.ready, pod.created) = (false, NOW - seconds(1));
    assert!(!is_recreated(&observed), "it has only just been started");
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().created = NOW - seconds(3600);
    assert!(is_recreated(&observed));
}

#[test]
fn a_member_whose_data_is_gone_is_replaced_at_once() {
    let mut observed = cluster_of(3);
    lose_data(&mut observed, 1);
    assert_eq!(steps_of(&observed), removal(1, "refused: its data is gone"));
}

#[test]
fn an_old_refusal_is_no_proof() {
    let mut observed = cluster_of(3);
    lose_data(&mut observed, 1);
    let refused_at = |observed: &mut Observed, at: Timestamp| {
        observed.objects.pods.get_mut(&Ordinal(1)).unwrap().problem.as_mut().unwrap().at = Some(at);
    };
    refused_at(&mut observed, NOW - seconds(61));
    assert_eq!(steps_of(&observed), [], "the data may be back");
    refused_at(&mut observed, NOW - seconds(60));
    assert_eq!(steps_of(&observed), removal(1, "refused: its data is gone"));
}

#[test]
fn a_member_whose_claim_is_gone_is_replaced_at_once() {
    for deleting in [false, true] {
        let mut observed = cluster_of(3);
        observed.etcd.answers.remove(&Ordinal(1));
        observed.objects.pods.remove(&Ordinal(1));
        observed.objects.claims.remove(&Ordinal(1));
        let why = if deleting { "the volume claim c-1 was deleted" } else { "the volume claim c-1 is gone" };
        if deleting {
            observed
                .objects
                .claims
                .insert(Ordinal(1), Claim { deleting, identity: Some(identity_of(1)), ..Claim::default() });
        }
        assert_eq!(steps_of(&observed), removal(1, why));
        // A pod that was created too late to notice that waits forever.
        observed
            .objects
            .pods
            .insert(Ordinal(1), Pod { expected: Some(kept(1)), serves_clients: true, ..Pod::default() });
        assert_eq!(steps_of(&observed), removal(1, why));
    }
}

#[test]
fn a_claim_that_is_deleted_under_a_running_member_is_no_loss_yet() {
    let mut observed = cluster_of(3);
    observed.objects.claims.get_mut(&Ordinal(1)).unwrap().deleting = true;
    assert_eq!(plan(&observed), Plan::default());
    // Nor is it while the pod terminates.
    observed.etcd.answers.remove(&Ordinal(1));
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().deleting = true;
    assert_eq!(steps_of(&observed), []);
}

#[test]
fn an_ephemeral_member_without_its_pod_is_replaced_at_once() {
    let mut observed = cluster_of(3);
    observed.wanted.durable = false;
    observed.objects.claims.clear();
    observed.etcd.answers.remove(&Ordinal(1));
    let gone = observed.clone().with(|it| {
        it.objects.pods = observed.objects.pods.clone().into_iter().filter(|(it, _)| *it != Ordinal(1)).collect()
    });
    assert_eq!(steps_of(&gone), removal(1, "its data was in its pod, which has ended"));
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().finished = true;
    assert_eq!(steps_of(&observed), removal(1, "its data was in its pod, which has ended"));
}

#[test]
fn ephemeral_member_whose_new_pod_is_not_scheduled_is_replaced() {
    let mut observed = cluster_of(3);
    observed.wanted.durable = false;
    observed.objects.claims.clear();
    observed.etcd.answers.remove(&Ordinal(1));
    let pod = observed.objects.pods.get_mut(&Ordinal(1)).unwrap();
    (pod.node, pod.problem) = (None, Some(Problem::new(ProblemKind::NoNode, "no node has that much memory")));
    assert_eq!(steps_of(&observed), removal(1, "its data was in an earlier pod"));
    observed.member_mut(1).started = false;
    assert!(!steps_of(&observed).iter().any(Step::changes_membership), "it never had any");
}

#[test]
fn refusal_in_an_old_pod_does_not_count_against_the_member() {
    let mut observed = cluster_of(3);
    lose_data(&mut observed, 1);
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().expected = Some(fresh(1));
    assert!(!steps_of(&observed).iter().any(|step| matches!(step, Step::Member(_, MemberStep::RemoveMember { .. }))));
}

#[test]
fn member_is_not_replaced_without_a_quorum_of_the_others() {
    let mut observed = cluster_of(3);
    lose_data(&mut observed, 1);
    observed.stop_answering(2);
    let plan = plan(&observed);
    assert_eq!((plan.steps, awaited(&Plan { steps: vec![], waiting: plan.waiting })), (vec![], "QuorumAtRisk"));
}

#[test]
fn a_replaced_member_gets_a_new_volume_and_then_joins() {
    let mut observed = cluster_of(3);
    observed.leave_etcd(1);
    let steps = steps_of(&observed);
    assert!(
        matches!(
            steps[..],
            [Step::Member(Ordinal(1), MemberStep::DeleteClaim), Step::Member(Ordinal(1), MemberStep::DeletePod { .. })]
        ),
        "{steps:?}"
    );
    observed.objects.claims.get_mut(&Ordinal(1)).unwrap().deleting = true;
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().deleting = true;
    assert_eq!(awaited(&plan(&observed)), "OldPodTerminating");
    observed.objects.pods.remove(&Ordinal(1));
    assert_eq!(awaited(&plan(&observed)), "OldClaimTerminating");
    observed.objects.claims.remove(&Ordinal(1));
    assert_eq!(steps_of(&observed), [Step::Member(Ordinal(1), MemberStep::AddLearner)]);
}

#[test]
fn problem_that_a_new_member_would_have_too_is_no_reason_to_replace() {
    let mut observed = cluster_of(3);
    stop_answering_for(&mut observed, 1, 10_000);
    for kind in [ProblemKind::NoNode, ProblemKind::NoImage] {
        observed.objects.pods.get_mut(&Ordinal(1)).unwrap().problem = Some(Problem::new(kind, "none"));
        assert_eq!(steps_of(&observed), [], "{kind:?}");
    }
}

#[test]
fn a_corrupt_member_hands_over_and_is_replaced() {
    let mut observed = cluster_of(3);
    observed.remembered.differing.insert(identity_of(0).member_id);
    let steps = steps_of(&observed);
    assert!(
        matches!(
            steps[..],
            [
                Step::Member(_, MemberStep::RecordReplacement { .. }),
                Step::Member(Ordinal(0), MemberStep::MoveLeader { to: Ordinal(1), .. })
            ]
        ),
        "{steps:?}"
    );
    observed.lead(2);
    assert_eq!(steps_of(&observed), removal(0, "its data differs from that of the other members"));
}

#[test]
fn corrupt_members_are_not_counted_on() {
    let mut observed = cluster_of(3);
    observed.remembered.differing = [1, 2].map(|ordinal| identity_of(ordinal).member_id).into();
    assert_eq!(awaited(&plan(&observed)), "QuorumAtRisk");
}

#[test]
fn an_alarm_alone_is_no_proof() {
    let mut observed = cluster_of(3);
    observed.etcd.alarms.insert(Alarm { member_id: identity_of(1).member_id, kind: AlarmKind::Corrupt });
    assert_eq!(steps_of(&observed), []);
}

#[test]
fn finding_of_corruption_that_cannot_be_confirmed_keeps_nothing_else_from_being_done() {
    let mut no_pod = cluster_of(3);
    no_pod.remembered.differing.insert(identity_of(1).member_id);
    no_pod.stop_answering(1);
    no_pod.objects.pods.remove(&Ordinal(1));
    assert!(
        matches!(steps_of(&no_pod)[..], [Step::Member(Ordinal(1), MemberStep::CreatePod { .. })]),
        "{:?}",
        steps_of(&no_pod)
    );

    let mut hangs = cluster_of(3);
    hangs.remembered.differing.insert(identity_of(1).member_id);
    stop_answering_for(&mut hangs, 1, 200);
    assert!(
        matches!(steps_of(&hangs)[..], [Step::Member(Ordinal(1), MemberStep::RestartPod { .. })]),
        "{:?}",
        steps_of(&hangs)
    );

    let mut node_down = cluster_of(5);
    node_down.remembered.differing.insert(identity_of(1).member_id);
    stop_answering_for(&mut node_down, 4, 5000);
    node_down.objects.pods.get_mut(&Ordinal(4)).unwrap().node =
        Some(Node { down_since: Some(NOW - seconds(5000)), fenced: false });
    assert_eq!(steps_of(&node_down), removal(4, "its node is down"));
}

#[test]
fn corrupt_leader_hands_over_although_it_cannot_be_given_up_yet() {
    let mut observed = cluster_of(5);
    observed.remembered.differing.insert(identity_of(0).member_id);
    observed.stop_answering(4);
    let handover = Step::Member(Ordinal(0), MemberStep::MoveLeader { to: Ordinal(1), to_id: identity_of(1).member_id });
    assert_eq!(steps_of(&observed), [handover]);
}

#[test]
fn member_that_must_wait_does_not_block_recovery_of_others() {
    let mut observed = cluster_of(5);
    for ordinal in [0, 3] {
        lose_data(&mut observed, ordinal);
    }
    observed.lead(1);
    let recently = Replacement { member_id: MemberId(7), at: NOW - seconds(5), count: 1, why: String::new() };
    observed.objects.peers.get_mut(&Ordinal(0)).unwrap().replacement = Some(recently);
    assert_eq!(steps_of(&observed), removal(3, "refused: its data is gone"));
}

#[test]
fn member_keeps_its_volume_whatever_its_name() {
    let mut observed = cluster_of(3);
    observed.member_mut(1).ordinal = None;
    let steps = steps_of(&observed);
    assert!(
        !steps.iter().any(|it| matches!(
            it,
            Step::Member(_, MemberStep::DeleteClaim) | Step::Member(_, MemberStep::DeletePod { .. })
        )),
        "{steps:?}"
    );
}

#[test]
fn replacements_of_the_same_name_wait_longer_each_time() {
    let mut observed = cluster_of(3);
    lose_data(&mut observed, 1);
    for (count, wait) in [(1, 60), (2, 120), (3, 240), (10, 3600), (99, 3600)] {
        let last = Replacement { member_id: MemberId(7), at: NOW - seconds(wait - 1), count, why: String::new() };
        observed.objects.peers.get_mut(&Ordinal(1)).unwrap().replacement = Some(last.clone());
        let plan = plan(&observed);
        assert_eq!((plan.steps.len(), awaited(&plan)), (0, "ReplacementBackoff"), "{count}");
        observed.objects.peers.get_mut(&Ordinal(1)).unwrap().replacement =
            Some(Replacement { at: NOW - seconds(wait), ..last });
        let steps = steps_of(&observed);
        let Step::Member(_, MemberStep::RecordReplacement { replacement, .. }) = &steps[0] else { panic!("{steps:?}") };
        assert_eq!(replacement.count, count + 1);
    }
    let long_ago = Replacement { member_id: MemberId(7), at: NOW - seconds(7201), count: 9, why: String::new() };
    observed.objects.peers.get_mut(&Ordinal(1)).unwrap().replacement = Some(long_ago);
    assert_eq!(steps_of(&observed), removal(1, "refused: its data is gone"), "it begins anew");
}

#[test]
fn a_replacement_that_was_begun_is_finished_without_another_record() {
    let mut observed = cluster_of(3);
    lose_data(&mut observed, 1);
    observed.objects.peers.get_mut(&Ordinal(1)).unwrap().replacement = Some(replacement(1, 1, ""));
    assert!(matches!(steps_of(&observed)[..], [Step::Member(Ordinal(1), MemberStep::RemoveMember { .. })]));
}

#[test]
fn a_learner_that_gets_nowhere_makes_way() {
    let mut observed = cluster_of(3);
    observed.wanted.replicas = 4;
    observed.join_as_learner(3);
    lose_data(&mut observed, 1);
    let steps = steps_of(&observed);
    assert!(
        steps.iter().any(|step| matches!(step, Step::Member(Ordinal(3), MemberStep::RemoveMember { .. }))),
        "{steps:?}"
    );
    observed.join_as_running_learner(3);
    let steps = steps_of(&observed);
    assert!(
        !steps.iter().any(|step| matches!(step, Step::Member(_, MemberStep::RemoveMember { .. }))),
        "one that runs is promoted: {steps:?}"
    );
}

#[test]
fn a_learner_that_lost_its_data_is_replaced_like_a_voter() {
    let mut observed = cluster_of(2);
    observed.wanted.replicas = 3;
    observed.join_as_running_learner(2);
    lose_data(&mut observed, 2);
    assert_eq!(steps_of(&observed), removal(2, "refused: its data is gone"));
}

#[test]
fn paused_cluster_is_left_alone() {
    let mut unhealthy = cluster_of(3);
    lose_data(&mut unhealthy, 1);
    for observed in [unhealthy, new_cluster(3), cluster_of(3)] {
        let paused = observed.with(|it| it.wanted.paused = Some("spec.paused is true".into()));
        let plan = plan(&paused);
        assert_eq!((plan.steps.len(), awaited(&plan)), (0, "Paused"));
    }
}
