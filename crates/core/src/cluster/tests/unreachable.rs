//! Members that do not answer, and nodes that are down: what is waited for, restarted, and finally given up.

use super::recovery::*;
use super::support::*;
use crate::cluster::observed::{
    ClusterId, Defragmentation, Identity, MemberId, Node, Observed, Pod, Problem, ProblemKind,
};
use crate::cluster::plan::Step;
use crate::cluster::step::MemberStep;
use crate::ordinal::Ordinal;

#[test]
fn a_node_that_is_down_is_waited_for() {
    let mut observed = cluster_of(3);
    node_down_for(&mut observed, 1, 299);
    assert_eq!(steps_of(&observed), []);
    node_down_for(&mut observed, 1, 300);
    assert_eq!(steps_of(&observed), removal(1, "its node is down"));
    observed.wanted.replace_after = None;
    assert_eq!(steps_of(&observed), [], "never, if the user does not want it");
}

#[test]
fn ready_member_on_a_node_that_is_not_ready_is_left_alone() {
    let mut observed = cluster_of(3);
    node_down_for(&mut observed, 1, 10_000);
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().ready = true;
    assert_eq!(steps_of(&observed), [], "its kubelet reaches it, only the operator does not");
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().ready = false;
    assert_eq!(steps_of(&observed), removal(1, "its node is down"));
}

#[test]
fn both_the_node_and_the_member_must_have_been_away_for_so_long() {
    let mut observed = cluster_of(3);
    node_down_for(&mut observed, 1, 1000);
    unhealthy_for(&mut observed, 1, 10);
    assert_eq!(steps_of(&observed), []);
    node_down_for(&mut observed, 1, 1000);
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().node =
        Some(Node { down_since: Some(NOW - seconds(10)), fenced: false });
    assert_eq!(steps_of(&observed), []);
}

#[test]
fn a_pod_on_a_node_that_is_down_goes_only_after_its_member() {
    let mut observed = cluster_of(3);
    node_down_for(&mut observed, 1, 400);
    observed.leave_etcd(1);
    let steps = steps_of(&observed);
    assert!(
        matches!(
            steps[..],
            [Step::Member(Ordinal(1), MemberStep::DeleteClaim), Step::Member(Ordinal(1), MemberStep::FencePod { .. })]
        ),
        "{steps:?}"
    );
    observed.objects.claims.get_mut(&Ordinal(1)).unwrap().deleting = true;
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().deleting = true;
    assert!(
        matches!(steps_of(&observed)[..], [Step::Member(Ordinal(1), MemberStep::FencePod { .. })]),
        "nobody else ends it"
    );
}

#[test]
fn a_member_on_a_fenced_node_moves_with_its_data() {
    for has_quorum in [true, false] {
        let mut observed = cluster_of(3);
        node_down_for(&mut observed, 1, 10);
        observed.objects.pods.get_mut(&Ordinal(1)).unwrap().node =
            Some(Node { down_since: Some(NOW - seconds(10)), fenced: true });
        if !has_quorum {
            observed.lose_quorum();
        }
        assert!(matches!(steps_of(&observed)[..], [Step::Member(Ordinal(1), MemberStep::FencePod { .. })]));
        observed.objects.pods.remove(&Ordinal(1));
        let steps = steps_of(&observed);
        assert!(
            matches!(&steps[..], [Step::Member(Ordinal(1), MemberStep::CreatePod { start })] if start.expected == kept(1)),
            "{steps:?}"
        );
    }
}

#[test]
fn a_volume_that_is_bound_to_a_node_that_is_down_is_given_up_with_it() {
    let mut observed = cluster_of(3);
    stop_answering_for(&mut observed, 1, 400);
    let no_node = Some(Problem::new(ProblemKind::NoNode, "pod not scheduled"));
    observed
        .objects
        .pods
        .insert(Ordinal(1), Pod { problem: no_node, node: None, ..observed.objects.pods[&Ordinal(1)].clone() });
    assert_eq!(steps_of(&observed), [], "a new member would find no node either");
    observed.objects.claims.get_mut(&Ordinal(1)).unwrap().node =
        Some(Node { down_since: Some(NOW - seconds(400)), fenced: false });
    assert_eq!(steps_of(&observed), removal(1, "its node is down"));
    observed.objects.claims.get_mut(&Ordinal(1)).unwrap().node =
        Some(Node { down_since: Some(NOW - seconds(5)), fenced: true });
    assert_eq!(steps_of(&observed), removal(1, "its volume is on a node that is out of service"));
}

#[test]
fn a_silent_member_is_restarted_once_and_then_replaced() {
    let mut observed = cluster_of(3);
    stop_answering_for(&mut observed, 1, 149);
    assert_eq!(steps_of(&observed), []);
    stop_answering_for(&mut observed, 1, 150);
    assert!(matches!(steps_of(&observed)[..], [Step::Member(Ordinal(1), MemberStep::RestartPod { .. })]));
    stop_answering_for(&mut observed, 1, 500);
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().created = NOW - seconds(299);
    assert_eq!(steps_of(&observed), [], "it was started again");
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().created = NOW - seconds(300);
    assert_eq!(steps_of(&observed), removal(1, "still not answering after a restart"));
}

#[test]
fn silent_members_are_restarted_one_after_the_other() {
    let mut observed = cluster_of(5);
    stop_answering_for(&mut observed, 1, 400);
    stop_answering_for(&mut observed, 2, 400);
    assert!(matches!(steps_of(&observed)[..], [Step::Member(Ordinal(1), MemberStep::RestartPod { .. })]));
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().created = NOW - seconds(10);
    assert_eq!(steps_of(&observed), [], "the first is only just starting");
}

#[test]
fn without_a_quorum_silent_pods_are_restarted_too() {
    let mut observed = cluster_of(1);
    stop_answering_for(&mut observed, 0, 400);
    observed.etcd.membership = None;
    assert!(matches!(steps_of(&observed)[..], [Step::Member(Ordinal(0), MemberStep::RestartPod { .. })]));
}

#[test]
fn reported_outage_that_was_not_observed_does_not_count_against_a_member() {
    let mut observed = cluster_of(3);
    node_down_for(&mut observed, 1, 10_000);
    observed.remembered.unhealthy_since.clear();
    assert_eq!(steps_of(&observed), []);
}

#[test]
fn member_that_its_node_reports_ready_is_left_alone() {
    let mut observed = cluster_of(3);
    stop_answering_for(&mut observed, 1, 10_000);
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().ready = true;
    assert_eq!(steps_of(&observed), []);
    // A member that answers, but can't serve linearizable reads, is unhealthy whatever the kubelet reports.
    observed.answer(1);
    observed.etcd.answers.get_mut(&Ordinal(1)).unwrap().as_mut().unwrap().reads = false;
    assert!(matches!(steps_of(&observed)[..], [Step::Member(Ordinal(1), MemberStep::RestartPod { .. })]));
}

#[test]
fn ready_member_that_is_evicted_from_a_node_that_is_not_ready_is_replaced_after_a_while() {
    let mut observed = cluster_of(3);
    node_down_for(&mut observed, 1, 10_000);
    let evicted = |observed: &mut Observed, ago: i64| {
        let pod = observed.objects.pods.get_mut(&Ordinal(1)).unwrap();
        (pod.ready, pod.deleting, pod.deleting_since) = (true, true, Some(NOW - seconds(ago)));
    };
    evicted(&mut observed, 299);
    assert_eq!(steps_of(&observed), [], "its kubelet may still stop it");
    evicted(&mut observed, 300);
    assert_eq!(steps_of(&observed), removal(1, "its node is down"), "nobody withdraws what a dead kubelet said last");
}

#[test]
fn ready_member_at_whose_address_another_cluster_answers_is_left_alone() {
    let mut observed = cluster_of(3);
    stop_answering_for(&mut observed, 1, 10_000);
    observed.answer(1);
    observed.etcd.answers.get_mut(&Ordinal(1)).unwrap().as_mut().unwrap().identity =
        Identity { member_id: MemberId(7), cluster_id: ClusterId(0xbad) };
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().ready = true;
    assert_eq!(steps_of(&observed), []);
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().ready = false;
    assert!(matches!(steps_of(&observed)[..], [Step::Member(Ordinal(1), MemberStep::RestartPod { .. })]));
}

#[test]
fn a_pod_that_does_not_stop_is_given_up_with_its_member() {
    let mut observed = cluster_of(3);
    stop_answering_for(&mut observed, 1, 400);
    let pod = observed.objects.pods.get_mut(&Ordinal(1)).unwrap();
    (pod.deleting, pod.deleting_since) = (true, Some(NOW - seconds(299)));
    assert_eq!(steps_of(&observed), []);
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().deleting_since = Some(NOW - seconds(300));
    assert_eq!(steps_of(&observed), removal(1, "its pod does not terminate"));
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().ready = true;
    assert_eq!(steps_of(&observed), [], "its node finds it well: it may be only the operator that does not reach it");
    observed.leave_etcd(1);
    observed.objects.claims.remove(&Ordinal(1));
    assert!(matches!(steps_of(&observed)[..], [Step::Member(Ordinal(1), MemberStep::FencePod { .. })]));
}

#[test]
fn a_pod_that_has_not_begun_gets_more_time() {
    let mut observed = cluster_of(3);
    stop_answering_for(&mut observed, 1, 899);
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().began = false;
    assert_eq!(steps_of(&observed), []);
    unhealthy_for(&mut observed, 1, 900);
    assert_eq!(steps_of(&observed), removal(1, "its pod does not start"));
}

#[test]
fn a_member_that_is_being_defragmented_is_not_hung() {
    let mut observed = cluster_of(3);
    stop_answering_for(&mut observed, 1, 200);
    observed.objects.peers.get_mut(&Ordinal(1)).unwrap().defragmented =
        Some(Defragmentation { at: NOW - seconds(200), compacted: None });
    assert_eq!(steps_of(&observed), []);
}
