//! Members keep running under their identity, and never return under another one.

use super::support::*;
use crate::cluster::observed::{Claim, ClusterId, Identity, Member, MemberId, Peer, Pod};
use crate::cluster::plan::{Model, Plan, Start, Step, plan};
use crate::cluster::step::MemberStep;
use crate::ordinal::Ordinal;

#[test]
fn claim_that_lost_its_labels_gets_them_back_if_it_is_of_this_cluster() {
    let repair = Step::Member(Ordinal(1), MemberStep::RepairClaim);
    let mut observed = cluster_of(3);
    observed.objects.claims.get_mut(&Ordinal(1)).unwrap().strayed = true;
    assert_eq!(steps_of(&observed), std::slice::from_ref(&repair));
    let claim = observed.objects.claims.get_mut(&Ordinal(1)).unwrap();
    (claim.bootstrap, claim.identity) = (None, Some(Identity { member_id: MemberId(7), cluster_id: ClusterId(0xbad) }));
    assert!(!steps_of(&observed).contains(&repair), "its owner decides what happens to it");
    let claim = observed.objects.claims.get_mut(&Ordinal(1)).unwrap();
    (claim.identity, claim.deleting) = (Some(identity_of(1)), true);
    assert!(!steps_of(&observed).contains(&repair), "it is going");
}

#[test]
fn a_healthy_cluster_needs_nothing() {
    for size in [1, 2, 3, 5, 7, 11] {
        assert_eq!(plan(&cluster_of(size)), Plan::default(), "{size}");
    }
}

#[test]
fn a_healthy_cluster_without_claims_needs_nothing() {
    let mut observed = cluster_of(3);
    observed.wanted.durable = false;
    observed.objects.claims.clear();
    assert_eq!(plan(&observed), Plan::default());
}

#[test]
fn cluster_that_is_being_deleted_is_left_alone() {
    let mut observed = cluster_of(3);
    observed.wanted.replicas = 1;
    observed.objects.pods.remove(&Ordinal(1));
    for observed in [observed, new_cluster(3)] {
        assert_eq!(plan(&observed.with(|it| it.wanted.deleting = true)), Plan::default());
    }
}

#[test]
fn cluster_with_another_id_is_left_alone() {
    let mut observed = cluster_of(3);
    observed.wanted.replicas = 1;
    observed.objects.pods.remove(&Ordinal(1));
    observed.recorded.cluster_id = Some(ClusterId(0xbad));
    let plan = plan(&observed);
    assert_eq!((plan.steps.len(), awaited(&plan)), (0, "WrongCluster"));
}

#[test]
fn a_member_without_its_pod_starts_again_on_its_own_data() {
    let mut observed = cluster_of(3);
    observed.objects.pods.remove(&Ordinal(1));
    observed.etcd.answers.remove(&Ordinal(1));
    let initial_cluster = (0..3).map(entry_of).collect();
    let start = Start { bootstrap_token: None, initial_cluster, expected: kept(1), serves_clients: true };
    assert_eq!(steps_of(&observed), [Step::Member(Ordinal(1), MemberStep::CreatePod { start })]);
}

#[test]
fn a_pod_that_is_still_stopping_is_waited_for() {
    let mut observed = cluster_of(3);
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().deleting = true;
    assert_eq!(steps_of(&observed), []);
}

#[test]
fn a_pod_that_ended_is_cleared_away() {
    let mut observed = cluster_of(3);
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().finished = true;
    assert!(matches!(steps_of(&observed)[..], [Step::Member(Ordinal(1), MemberStep::DeletePod { .. })]));
}

#[test]
fn a_pod_of_a_removed_member_does_not_stand_in_for_the_new_one() {
    let mut observed = cluster_of(3);
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().expected = Some(kept(7));
    assert!(matches!(steps_of(&observed)[..], [Step::Member(Ordinal(1), MemberStep::DeletePod { .. })]));
}

#[test]
fn a_member_that_lost_its_claim_gets_no_empty_one() {
    let mut observed = cluster_of(3);
    observed.objects.claims.remove(&Ordinal(1));
    observed.objects.pods.remove(&Ordinal(1));
    observed.stop_answering(1);
    observed.lose_quorum();
    let steps = steps_of(&observed);
    assert!(!steps.iter().any(|step| matches!(step, Step::Member(_, MemberStep::CreateClaim { .. }))), "{steps:?}");
    assert!(
        !steps.iter().any(|step| matches!(step, Step::Member(Ordinal(1), MemberStep::CreatePod { .. }))),
        "{steps:?}"
    );
}

#[test]
fn an_ephemeral_member_that_lost_its_pod_is_not_taken_for_a_new_one() {
    let mut observed = cluster_of(3);
    observed.wanted.durable = false;
    observed.objects.claims.clear();
    observed.objects.pods.remove(&Ordinal(1));
    assert!(
        matches!(&steps_of(&observed)[..], [Step::Member(Ordinal(1), MemberStep::CreatePod { start })] if start.expected == kept(1))
    );
}

#[test]
fn a_lost_peer_is_made_again_with_what_is_known() {
    let mut observed = cluster_of(3);
    observed.objects.peers.remove(&Ordinal(1));
    let expected = [
        Step::Member(Ordinal(1), MemberStep::CreatePeer { initial: false, model: Model::Spec }),
        Step::Member(Ordinal(1), MemberStep::RecordMember { identity: identity_of(1), started: true }),
    ];
    assert_eq!(steps_of(&observed), expected);
}

#[test]
fn new_pods_know_members_that_somebody_else_added() {
    let mut observed = cluster_of(3);
    observed.objects.pods.remove(&Ordinal(1));
    let foreign = Member {
        id: MemberId(0xf),
        ordinal: None,
        peer_url: "http://10.0.0.9:2380".into(),
        started: true,
        learner: false,
    };
    observed.etcd.membership.as_mut().unwrap().members.push(foreign);
    observed.fit_budget();
    let steps = steps_of(&observed);
    let [Step::Member(_, MemberStep::CreatePod { start, .. })] = &steps[..] else { panic!("{steps:?}") };
    assert_eq!(start.initial_cluster.len(), 4);
    assert_eq!(start.initial_cluster[3], ("f".to_owned(), "http://10.0.0.9:2380".to_owned()));
}

#[test]
fn after_a_power_cut_all_start_again_with_their_data() {
    let mut observed = cluster_of(3);
    observed.lose_quorum();
    observed.objects.pods.clear();
    let plan = plan(&observed);
    assert_eq!(awaited(&plan), "NoQuorum");
    assert_eq!(plan.steps.len(), 3);
    for (ordinal, step) in (0..).zip(&plan.steps) {
        let Step::Member(of, MemberStep::CreatePod { start }) = step else { panic!("{step:?}") };
        assert_eq!((*of, start.expected, &start.bootstrap_token), (Ordinal(ordinal), kept(ordinal), &None));
    }
}

#[test]
fn without_a_quorum_pods_that_are_there_are_left_alone() {
    let mut observed = cluster_of(3);
    observed.wanted.replicas = 1;
    observed.lose_quorum();
    assert_eq!(steps_of(&observed), []);
}

#[test]
fn a_power_cut_right_after_bootstrap_is_survived() {
    // The ID of the cluster is recorded, but not yet its members: they must be restarted nevertheless.
    let mut observed = cluster_of(3);
    observed.lose_quorum();
    observed.objects.pods.clear();
    for ordinal in 0..3 {
        observed.objects.peers.insert(Ordinal(ordinal), Peer::default());
        observed.objects.claims.get_mut(&Ordinal(ordinal)).unwrap().identity = None;
    }
    let steps = steps_of(&observed);
    let starts = |step: &Step| matches!(step, Step::Member(_, MemberStep::CreatePod { start, .. }) if start.bootstrap_token.is_none());
    assert_eq!((steps.len(), steps.iter().filter(|step| starts(step)).count()), (3, 3), "{steps:?}");
}

#[test]
fn member_never_observed_running_starts_only_with_data_while_membership_is_unknown() {
    let mut observed = cluster_of(3);
    observed.join_as_learner(3);
    observed.objects.claims.insert(Ordinal(3), Claim { identity: Some(identity_of(3)), ..Claim::default() });
    observed.objects.peers.insert(Ordinal(4), Peer::default());
    observed.lose_quorum();
    observed.objects.shared.min_available = Some(3);
    let steps = steps_of(&observed);
    assert!(
        matches!(&steps[..], [Step::Member(Ordinal(3), MemberStep::CreatePod { start })] if start.expected == kept(3)),
        "{steps:?}"
    );
}

#[test]
fn a_pod_is_opened_to_clients_only_for_voters() {
    let mut observed = cluster_of(3);
    observed
        .objects
        .pods
        .insert(Ordinal(1), Pod { serves_clients: false, ..observed.objects.pods[&Ordinal(1)].clone() });
    assert_eq!(
        steps_of(&observed),
        [Step::Member(Ordinal(1), MemberStep::AnnotatePod { expected: kept(1), serves_clients: true })]
    );
}
