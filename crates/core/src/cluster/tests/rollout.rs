//! The spec is rolled out to members one at a time.

use super::support::{
    NOW, VERSION, awaited, bootstrap_of, cluster_of, identity_of, new_cluster, seconds, steps_of, version,
};
use crate::cluster::observed::{Observed, Peer, Pod, Problem, ProblemKind};
use crate::cluster::plan::{Model, Step, plan};
use crate::cluster::spec_diff::{SpecDiff, UpdateMethod};
use crate::cluster::step::MemberStep;
use crate::ordinal::Ordinal;

fn change(method: UpdateMethod) -> SpecDiff {
    SpecDiff { fields: vec!["spec.etcd".to_owned()], method }
}

/// A cluster in which these members are to be restarted. Member 0 is the leader.
fn outdated(size: u32, ordinals: &[u32]) -> Observed {
    let mut observed = cluster_of(size);
    observed.be_ready();
    observed.objects.outdated =
        ordinals.iter().map(|ordinal| (Ordinal(*ordinal), change(UpdateMethod::Restart))).collect();
    observed
}

impl Observed {
    /// Its clients were drained long enough ago.
    fn drained(mut self, ordinal: u32) -> Self {
        let pod = self.objects.pods.get_mut(&Ordinal(ordinal)).unwrap();
        (pod.leaving_since, pod.serves_clients) = (Some(NOW - seconds(5)), false);
        self
    }

    /// Its pod can't run what it was created from.
    fn break_down(&mut self, ordinal: u32) {
        self.etcd.answers.remove(&Ordinal(ordinal));
        self.objects.peers.get_mut(&Ordinal(ordinal)).unwrap().proven = false;
        let problem = Problem::new(ProblemKind::NoImage, "there is no such image");
        self.objects.pods.get_mut(&Ordinal(ordinal)).unwrap().problem = Some(problem);
    }

    /// It was recreated, and Kubernetes rejects its pod.
    fn be_refused(&mut self, ordinal: u32) {
        self.etcd.answers.remove(&Ordinal(ordinal));
        self.objects.pods.remove(&Ordinal(ordinal));
        self.objects.peers.get_mut(&Ordinal(ordinal)).unwrap().proven = false;
    }
}

fn creates_pod(observed: &Observed, wanted: u32) -> bool {
    steps_of(observed)
        .iter()
        .any(|step| matches!(step, Step::Member(ordinal, MemberStep::CreatePod { .. }) if ordinal.0 == wanted))
}

fn replaced(observed: &Observed) -> Vec<u32> {
    let steps = steps_of(observed);
    steps
        .iter()
        .filter(|it| matches!(it, Step::Member(_, MemberStep::RecreatePeer { .. })))
        .filter_map(Step::ordinal)
        .map(|ordinal| ordinal.0)
        .collect()
}

#[test]
fn clients_leave_before_a_member_is_restarted() {
    let mut observed = outdated(3, &[0, 1, 2]);
    assert_eq!(steps_of(&observed), [Step::Member(Ordinal(2), MemberStep::DrainPod)]);
    let pod = observed.objects.pods.get_mut(&Ordinal(2)).unwrap();
    (pod.leaving_since, pod.serves_clients) = (Some(NOW - seconds(1)), false);
    assert_eq!((awaited(&plan(&observed)), steps_of(&observed)), ("Draining", Vec::new()));
    assert_eq!(replaced(&observed.drained(2)), [2]);
}

#[test]
fn clients_come_back_if_the_restart_does_not_come() {
    let mut observed = cluster_of(3).drained(2);
    observed.objects.pods.get_mut(&Ordinal(2)).unwrap().leaving_since = Some(NOW - seconds(200));
    let expected = super::support::kept(2);
    assert_eq!(
        steps_of(&observed),
        [Step::Member(Ordinal(2), MemberStep::AnnotatePod { expected, serves_clients: true })]
    );
}

#[test]
fn the_highest_is_the_first_and_the_leader_the_last() {
    let mut observed = outdated(3, &[0, 1, 2]).drained(1);
    observed.lead(2);
    assert_eq!(replaced(&observed), [1], "2 leads");
    let mut observed = outdated(3, &[2]);
    observed.lead(2);
    let to_id = identity_of(0).member_id;
    assert_eq!(
        steps_of(&observed),
        [Step::Member(Ordinal(2), MemberStep::MoveLeader { to: Ordinal(0), to_id })],
        "to one that is as asked for"
    );
}

#[test]
fn a_single_member_just_restarts() {
    assert_eq!(replaced(&outdated(1, &[0]).drained(0)), [0]);
}

#[test]
fn member_is_not_restarted_while_another_is_unhealthy() {
    let mut observed = outdated(3, &[0, 1]).drained(1);
    observed.stop_answering(2);
    assert_eq!((awaited(&plan(&observed)), replaced(&observed)), ("RollingOut", Vec::new()));
    observed.answer(2);
    observed.objects.pods.get_mut(&Ordinal(2)).unwrap().deleting = true;
    assert_eq!(replaced(&observed), [0; 0], "it is about to stop");
    let pod = observed.objects.pods.get_mut(&Ordinal(2)).unwrap();
    (pod.deleting, pod.ready) = (false, false);
    assert_eq!(replaced(&observed), [0; 0], "no clients are sent to it yet");
    observed.be_ready();
    assert_eq!(replaced(&observed), [1]);
}

#[test]
fn member_that_does_not_come_up_halts_the_rollout() {
    let mut observed = outdated(3, &[0, 1]).drained(1);
    observed.break_down(2);
    let plan = plan(&observed);
    let message = plan.waiting.as_ref().unwrap().message.clone();
    assert_eq!((awaited(&plan), replaced(&observed)), ("RolloutHalted", Vec::new()));
    assert!(message.contains("c-2") && message.contains("there is no such image"), "{message}");
}

#[test]
fn member_that_never_ran_is_not_replaced_for_lost_data() {
    let mut observed = outdated(3, &[0, 1]);
    observed.break_down(2);
    observed.objects.pods.get_mut(&Ordinal(2)).unwrap().problem = Some(Problem::new(ProblemKind::Other, "it crashes"));
    observed.stop_answering(2);
    let pod = observed.objects.pods.get_mut(&Ordinal(2)).unwrap();
    (pod.created, pod.ready) = (NOW - seconds(4000), false);
    observed.remembered.unhealthy_since.insert(identity_of(2).member_id, NOW - seconds(5000));
    assert_eq!(steps_of(&observed), [], "a new member would crash as well");
    observed.objects.outdated.remove(&Ordinal(1));
    assert!(!steps_of(&observed).is_empty(), "1 runs what 2 was made from, so that is not what is wrong with 2");
}

#[test]
fn broken_member_is_recreated_first_when_the_spec_is_reverted() {
    let mut observed = outdated(3, &[2]);
    observed.break_down(2);
    assert_eq!(replaced(&observed), [2]);
    observed.stop_answering(1);
    assert_eq!(replaced(&observed), [0; 0], "1 may be the next that is missed");
}

#[test]
fn without_a_quorum_what_does_not_run_is_made_anew() {
    let mut observed = outdated(1, &[0]);
    observed.break_down(0);
    observed.lose_quorum();
    assert_eq!(replaced(&observed), [0]);
    observed.objects.pods.get_mut(&Ordinal(0)).unwrap().node.as_mut().unwrap().down_since = Some(NOW);
    assert_eq!(replaced(&observed), [0; 0], "it may still run there");
}

#[test]
fn member_with_refused_pod_is_made_anew_when_the_spec_goes_back() {
    for method in [UpdateMethod::Relabel, UpdateMethod::Resize, UpdateMethod::Restart] {
        let mut observed = outdated(3, &[]);
        observed.be_refused(2);
        assert!(creates_pod(&observed, 2), "as long as the spec asks for it, it is tried");
        observed.objects.outdated.insert(Ordinal(2), change(method));
        assert_eq!(replaced(&observed), [2], "{method:?}");
        assert!(!creates_pod(&observed, 2), "the old one would be refused again, and nothing else be done");
        observed.stop_answering(1);
        assert_eq!(replaced(&observed), [0; 0], "1 may be the next that is missed");
    }
}

#[test]
fn proven_member_without_a_pod_is_made_anew_only_while_there_is_a_quorum() {
    let mut observed = outdated(3, &[2]);
    observed.be_refused(2);
    observed.objects.peers.get_mut(&Ordinal(2)).unwrap().proven = true;
    observed.remembered.unhealthy_since.insert(identity_of(2).member_id, NOW - seconds(59));
    assert_eq!(replaced(&observed), [0; 0], "it comes back as it was, if it was only evicted");
    assert!(creates_pod(&observed, 2));
    observed.remembered.unhealthy_since.insert(identity_of(2).member_id, NOW - seconds(60));
    assert_eq!(replaced(&observed), [2], "a quota may be what keeps it from coming back as it was");
    observed.remembered.has_rollout_slot = false;
    assert_eq!(replaced(&observed), [0; 0], "a bad edit does not reach many clusters at once");
    observed.remembered.has_rollout_slot = true;
    observed.objects.outdated = [0, 1, 2].map(|ordinal| (Ordinal(ordinal), change(UpdateMethod::Restart))).into();
    observed.objects.pods.clear();
    observed.etcd.answers.clear();
    observed.lose_quorum();
    assert_eq!(replaced(&observed), [0; 0], "after a power cut everybody comes back as it was");
    assert!((0..3).all(|ordinal| creates_pod(&observed, ordinal)));
}

#[test]
fn ephemeral_initial_member_that_never_ran_is_made_anew_beside_those_that_run() {
    for is_refused in [true, false] {
        let mut observed = outdated(3, &[]).with(|it| it.wanted.durable = false);
        observed.objects.claims.clear();
        observed.be_refused(2);
        observed.member_mut(2).started = false;
        if !is_refused {
            let problem = Some(Problem::new(ProblemKind::NoNode, "pod not scheduled"));
            observed.objects.pods.insert(Ordinal(2), Pod { problem, ..Pod::default() });
        }
        observed.objects.outdated.insert(Ordinal(2), change(UpdateMethod::Restart));
        assert_eq!(replaced(&observed), [2]);
        observed.member_mut(2).started = true;
        assert_eq!(replaced(&observed), [0; 0], "what ran has lost its data, which is another matter");
    }
}

#[test]
fn initial_members_with_refused_pods_are_made_anew_when_the_spec_goes_back() {
    let mut observed = new_cluster(3);
    observed.recorded.bootstrap = Some(bootstrap_of(3));
    for ordinal in 0..3 {
        observed.objects.peers.insert(Ordinal(ordinal), Peer { version: Some(version(VERSION)), ..Peer::default() });
        observed.objects.outdated.insert(Ordinal(ordinal), change(UpdateMethod::Resize));
    }
    assert_eq!(replaced(&observed), [0, 1, 2]);
    assert!(!creates_pod(&observed, 0));
}

#[test]
fn pending_member_is_made_anew_with_resources_that_a_node_has() {
    let mut observed = outdated(3, &[]);
    observed.break_down(2);
    let pod = observed.objects.pods.get_mut(&Ordinal(2)).unwrap();
    (pod.node, pod.ready) = (None, false);
    pod.problem = Some(Problem::new(ProblemKind::NoNode, "pod not scheduled"));
    observed.objects.outdated.insert(Ordinal(2), change(UpdateMethod::Resize));
    assert_eq!(replaced(&observed), [2]);
}

#[test]
fn pending_members_without_a_quorum_need_no_turn() {
    let mut observed = outdated(1, &[0]);
    let pod = observed.objects.pods.get_mut(&Ordinal(0)).unwrap();
    (pod.node, pod.ready) = (None, false);
    observed.etcd.answers.clear();
    observed.lose_quorum();
    observed.remembered.has_rollout_slot = false;
    assert_eq!(replaced(&observed), [0], "others that roll are no reason to leave it down");
}

#[test]
fn pending_initial_members_are_made_anew_with_resources_that_a_node_has() {
    let mut observed = new_cluster(3);
    observed.recorded.bootstrap = Some(bootstrap_of(3));
    for ordinal in 0..3 {
        observed.objects.peers.insert(Ordinal(ordinal), Peer { version: Some(version(VERSION)), ..Peer::default() });
        let problem = Some(Problem::new(ProblemKind::NoNode, "pod not scheduled"));
        observed.objects.pods.insert(Ordinal(ordinal), Pod { problem, ..Pod::default() });
        observed.objects.outdated.insert(Ordinal(ordinal), change(UpdateMethod::Resize));
    }
    assert_eq!(replaced(&observed), [0, 1, 2]);
}

#[test]
fn pending_or_refused_learner_makes_way_for_one_with_other_resources() {
    for is_refused in [true, false] {
        let mut observed = outdated(3, &[]);
        observed.wanted.replicas = 4;
        observed.join_as_learner(3);
        observed.objects.peers.insert(Ordinal(3), Peer { version: Some(version(VERSION)), ..Peer::default() });
        let problem = Some(Problem::new(ProblemKind::NoNode, "pod not scheduled"));
        observed.objects.pods.insert(Ordinal(3), Pod { problem, ..Pod::default() });
        if is_refused {
            observed.objects.pods.remove(&Ordinal(3));
        }
        let leaves = |observed: &Observed| {
            steps_of(observed).iter().any(|it| matches!(it, Step::Member(Ordinal(3), MemberStep::RemoveMember { .. })))
        };
        assert!(!leaves(&observed), "it may come yet");
        observed.objects.outdated.insert(Ordinal(3), change(UpdateMethod::Resize));
        assert!(leaves(&observed) && !creates_pod(&observed, 3));
    }
}

#[test]
fn running_member_is_resized_in_place_and_not_made_anew() {
    let mut observed = outdated(3, &[]);
    observed.objects.outdated.insert(Ordinal(2), change(UpdateMethod::Resize));
    assert_eq!(steps_of(&observed), [Step::Member(Ordinal(2), MemberStep::Resize)]);
    observed.stop_answering(2);
    assert_eq!(replaced(&observed), [0; 0], "it worked, and may come back");
}

#[test]
fn member_that_reports_another_version_halts_the_rollout() {
    let mut observed = outdated(3, &[0, 1]).drained(1);
    observed.etcd.answers.get_mut(&Ordinal(2)).unwrap().as_mut().unwrap().version = Some(version("3.6.12"));
    assert_eq!((awaited(&plan(&observed)), replaced(&observed)), ("ImageVersionMismatch", Vec::new()));
}

#[test]
fn not_all_clusters_restart_members_at_once() {
    let mut observed = outdated(3, &[0, 1, 2]);
    observed.remembered.has_rollout_slot = false;
    assert_eq!((awaited(&plan(&observed)), steps_of(&observed)), ("RolloutQueued", Vec::new()));
}

#[test]
fn changes_in_place_come_before_restarts() {
    let mut observed = outdated(3, &[2]);
    observed.objects.outdated.insert(Ordinal(1), change(UpdateMethod::Resize));
    observed.objects.outdated.insert(Ordinal(0), change(UpdateMethod::Relabel));
    assert_eq!(steps_of(&observed), [Step::Member(Ordinal(1), MemberStep::Resize)]);
    observed.stop_answering(2);
    assert_eq!(steps_of(&observed), [], "with less memory another may be missed");
    observed.objects.outdated.remove(&Ordinal(1));
    assert_eq!(steps_of(&observed), [Step::Member(Ordinal(0), MemberStep::Relabel)], "labels do no harm");
}

#[test]
fn ephemeral_data_is_kept_by_adding_members_before_removing_others() {
    let mut observed = outdated(3, &[2]).drained(2);
    (observed.wanted.durable, observed.objects.claims) = (false, Default::default());
    let [Step::Member(Ordinal(2), MemberStep::RemoveMember { .. })] = &steps_of(&observed)[..] else {
        panic!("{:?}", steps_of(&observed));
    };
    observed.leave_etcd(2);
    observed.objects.pods.remove(&Ordinal(2));
    assert_eq!(steps_of(&observed), [Step::Member(Ordinal(2), MemberStep::DeletePeer)]);
    observed.objects.peers.remove(&Ordinal(2));
    observed.objects.outdated.clear();
    let made = Step::Member(Ordinal(2), MemberStep::CreatePeer { initial: false, model: Model::Spec });
    assert_eq!(steps_of(&observed), [made, Step::Member(Ordinal(2), MemberStep::AddLearner)]);
}

#[test]
fn the_only_copy_is_not_given_up_for_a_change() {
    let mut observed = outdated(1, &[0]).drained(0);
    (observed.wanted.durable, observed.objects.claims) = (false, Default::default());
    assert_eq!((awaited(&plan(&observed)), steps_of(&observed)), ("ChangeRefused", Vec::new()));
}

#[test]
fn scaling_comes_before_restarting() {
    let mut observed = outdated(5, &[0, 1, 2, 3, 4]);
    observed.wanted.replicas = 3;
    let [Step::Member(Ordinal(4), MemberStep::RemoveMember { .. })] = &steps_of(&observed)[..] else {
        panic!("not yet")
    };
}

#[test]
fn a_member_that_came_last_is_waited_for() {
    let mut observed = cluster_of(3);
    observed.stop_answering(0);
    observed.objects.peers.get_mut(&Ordinal(0)).unwrap().proven = false;
    let plan = plan(&observed);
    assert_eq!(plan.waiting.unwrap().message, "2 of 3 members up to date; c-0 is starting");
}
