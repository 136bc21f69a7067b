//! A cluster is bootstrapped once, by all initial members at the same time, after the bootstrap was recorded.

use super::support::*;
use crate::cluster::initial_members;
use crate::cluster::observed::{
    Bootstrap, Claim, DataState, ExpectedData, Membership, NoAnswer, Node, Observed, Peer, Pod,
};
use crate::cluster::plan::{Model, Plan, Start, Step, plan};
use crate::cluster::step::{ClusterStep, MemberStep};
use crate::ordinal::Ordinal;

/// A cluster whose bootstrap is recorded, and nothing more.
fn recorded(size: u32) -> Observed {
    new_cluster(size).with(|it| it.recorded.bootstrap = Some(bootstrap_of(size)))
}

/// A cluster whose initial members all have their objects.
fn bootstrapping(size: u32) -> Observed {
    let mut observed = recorded(size);
    for ordinal in 0..size {
        observed.objects.peers.insert(Ordinal(ordinal), Peer::default());
        observed
            .objects
            .claims
            .insert(Ordinal(ordinal), Claim { bootstrap: Some(bootstrap_of(size)), ..Claim::default() });
        observed.objects.pods.insert(
            Ordinal(ordinal),
            Pod { expected: Some(initial_expected(size, ordinal)), serves_clients: true, ..Pod::default() },
        );
    }
    observed
}

/// The identity of an initial member is known before it starts.
fn initial_expected(size: u32, ordinal: u32) -> ExpectedData {
    ExpectedData {
        data: DataState::New,
        identity: Some(initial_members::identity_of(&names(), &bootstrap_of(size), Ordinal(ordinal))),
    }
}

#[test]
fn the_bootstrap_is_recorded_before_anything_is_started() {
    assert_eq!(
        plan(&new_cluster(3)),
        Plan { steps: vec![Step::Cluster(ClusterStep::RecordBootstrap(bootstrap_of(3)))], waiting: None }
    );
}

#[test]
fn all_initial_members_start_at_once_with_the_token() {
    let plan = plan(&recorded(3));
    let expected: Vec<Step> = (0..3)
        .flat_map(|ordinal| {
            let initial_cluster = (0..3).map(entry_of).collect();
            let expected = initial_expected(3, ordinal);
            let start =
                Start { bootstrap_token: Some("uid-1".into()), initial_cluster, expected, serves_clients: true };
            [
                Step::Member(Ordinal(ordinal), MemberStep::CreatePeer { initial: true, model: Model::Spec }),
                Step::Member(
                    Ordinal(ordinal),
                    MemberStep::CreateClaim { bootstrap: Some(bootstrap_of(3)), identity: None },
                ),
                Step::Member(Ordinal(ordinal), MemberStep::CreatePod { start }),
            ]
        })
        .collect();
    assert_eq!(plan.steps, expected);
    assert_eq!(awaited(&plan), "Bootstrapping");
}

#[test]
fn the_size_at_bootstrap_is_the_recorded_one_whatever_is_wanted_now() {
    for replicas in [1, 5] {
        let steps = steps_of(&recorded(3).with(|it| it.wanted.replicas = replicas));
        assert_eq!(
            steps.iter().filter(|step| matches!(step, Step::Member(_, MemberStep::CreatePod { .. }))).count(),
            3,
            "{replicas}"
        );
    }
}

#[test]
fn a_crash_between_any_two_steps_of_bootstrap_resumes_with_the_rest() {
    let all = steps_of(&recorded(3));
    for done in 0..=all.len() {
        let mut observed = recorded(3);
        for step in &all[..done] {
            match step {
                Step::Member(ordinal, MemberStep::CreatePeer { .. }) => {
                    drop(observed.objects.peers.insert(*ordinal, Peer::default()))
                }
                Step::Member(ordinal, MemberStep::CreateClaim { bootstrap, .. }) => {
                    observed
                        .objects
                        .claims
                        .insert(*ordinal, Claim { bootstrap: bootstrap.clone(), ..Claim::default() });
                }
                Step::Member(ordinal, MemberStep::CreatePod { start }) => {
                    observed.objects.pods.insert(*ordinal, Pod { expected: Some(start.expected), ..Pod::default() });
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(steps_of(&observed), all[done..], "after {done} steps");
    }
}

#[test]
fn while_fewer_than_a_quorum_answer_it_only_waits() {
    let mut observed = bootstrapping(3);
    observed.etcd.answers.insert(Ordinal(0), Err(NoAnswer("connection refused".into())));
    let plan = plan(&observed);
    assert_eq!(plan.steps, []);
    assert_eq!(plan.waiting.unwrap().message, "0 of 3 initial members answer");
}

#[test]
fn an_initial_member_that_ended_is_cleared_away_and_made_again() {
    let mut observed = bootstrapping(3);
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().finished = true;
    assert!(matches!(steps_of(&observed)[..], [Step::Member(Ordinal(1), MemberStep::DeletePod { .. })]));
    observed.objects.pods.remove(&Ordinal(1));
    assert!(
        matches!(&steps_of(&observed)[..], [Step::Member(Ordinal(1), MemberStep::CreatePod { start })] if start.bootstrap_token.is_some())
    );
}

#[test]
fn the_cluster_is_bootstrapped_as_soon_as_a_quorum_answers() {
    let mut observed = bootstrapping(3);
    let expected = initial_members::cluster_id(&names(), &bootstrap_of(3));
    observed.etcd.membership =
        cluster_of(3).etcd.membership.map(|membership| Membership { cluster_id: expected, ..membership });
    assert_eq!(
        plan(&observed),
        Plan { steps: vec![Step::Cluster(ClusterStep::RecordClusterId(expected))], waiting: None }
    );
}

#[test]
fn initial_members_that_turn_out_to_be_another_cluster_are_not_taken_for_this_one() {
    let mut observed = bootstrapping(3);
    observed.etcd.membership = cluster_of(3).etcd.membership;
    let plan = plan(&observed);
    assert_eq!((plan.steps.len(), awaited(&plan)), (0, "WrongCluster"));
}

#[test]
fn after_bootstrap_everybody_is_recorded_and_told_and_nobody_bootstraps() {
    let mut observed = cluster_of(3);
    for ordinal in 0..3 {
        observed.objects.peers.insert(Ordinal(ordinal), Peer::default());
        observed.objects.claims.get_mut(&Ordinal(ordinal)).unwrap().identity = None;
        observed.objects.pods.get_mut(&Ordinal(ordinal)).unwrap().expected = Some(fresh(ordinal));
    }
    let expected: Vec<Step> = (0..3)
        .flat_map(|ordinal| {
            let identity = identity_of(ordinal);
            [
                Step::Member(Ordinal(ordinal), MemberStep::MarkClaim { identity, version: Some(version("3.6.16")) }),
                Step::Member(
                    Ordinal(ordinal),
                    MemberStep::AnnotatePod { expected: kept(ordinal), serves_clients: true },
                ),
                Step::Member(Ordinal(ordinal), MemberStep::RecordMember { identity, started: true }),
            ]
        })
        .collect();
    assert_eq!(steps_of(&observed), expected);
}

#[test]
fn an_initial_member_that_has_not_started_yet_need_not_have_data() {
    let mut observed = cluster_of(3);
    observed.member_mut(2).started = false;
    observed.stop_answering(2);
    observed.objects.peers.insert(Ordinal(2), Peer::default());
    observed.objects.claims.get_mut(&Ordinal(2)).unwrap().identity = None;
    observed.objects.pods.get_mut(&Ordinal(2)).unwrap().expected = Some(fresh(2));
    let record = Step::Member(Ordinal(2), MemberStep::RecordMember { identity: identity_of(2), started: false });
    assert_eq!(steps_of(&observed), [record]);
}

#[test]
fn cluster_with_terminating_leftovers_is_not_bootstrapped() {
    let going_claim = Claim { deleting: true, identity: Some(identity_of(0)), ..Claim::default() };
    let mut claims = new_cluster(3);
    claims.objects.claims.insert(Ordinal(0), going_claim);
    let mut pods = new_cluster(3);
    pods.objects.pods.insert(Ordinal(0), Pod { deleting: true, ..Pod::default() });
    let mut peers = new_cluster(3);
    peers.objects.peers.insert(Ordinal(0), Peer { deleting: true, ..Peer::default() });
    for observed in [claims, pods, peers] {
        let plan = plan(&observed);
        assert_eq!((plan.steps.len(), awaited(&plan)), (0, "WaitingForCleanup"));
    }
}

#[test]
fn a_bootstrapped_cluster_that_cannot_be_asked_is_never_bootstrapped_again() {
    let mut gone = cluster_of(3);
    gone.lose_quorum();
    gone.objects.peers.clear();
    gone.objects.pods.clear();
    gone.objects.claims.clear();
    let plan = plan(&gone);
    assert_eq!((plan.steps.len(), awaited(&plan)), (0, "NoQuorum"));
}

#[test]
fn a_cluster_without_claims_is_bootstrapped_without_claims() {
    let steps = steps_of(&recorded(3).with(|it| it.wanted.durable = false));
    assert_eq!(steps.len(), 6);
    assert!(!steps.iter().any(|step| matches!(step, Step::Member(_, MemberStep::CreateClaim { .. }))));
}

#[test]
fn cluster_with_unknown_claims_is_not_bootstrapped() {
    let mut observed = new_cluster(3);
    observed.objects.claims.insert(Ordinal(1), Default::default());
    let plan = plan(&observed);
    assert_eq!(plan.steps, []);
    assert_eq!(awaited(&plan), "VolumesConflict");
    let name = observed.names.member_name(Ordinal(1));
    assert!(plan.waiting.is_some_and(|waiting| waiting.message.contains(&name)));
}

#[test]
fn a_backup_is_restored_to_one_member_whatever_is_wanted() {
    let observed = new_cluster(3).with(|it| it.wanted.restores = true);
    assert_eq!(
        plan(&observed),
        Plan { steps: vec![Step::Cluster(ClusterStep::RecordBootstrap(bootstrap_of(1)))], waiting: None }
    );
    let steps = steps_of(&observed.with(|it| it.recorded.bootstrap = Some(bootstrap_of(1))));
    assert_eq!(
        steps.iter().filter(|step| matches!(step, Step::Member(_, MemberStep::CreatePod { .. }))).count(),
        1,
        "{steps:?}"
    );
}

#[test]
fn no_backup_is_restored_where_volumes_are_already() {
    let known = Claim {
        identity: Some(initial_members::identity_of(&names(), &bootstrap_of(3), Ordinal(1))),
        ..Claim::default()
    };
    let earlier = Bootstrap { token: "an earlier EtcdCluster".to_owned(), size: 3 };
    for claim in [Claim::default(), known, Claim { bootstrap: Some(earlier), ..Claim::default() }] {
        let mut observed = new_cluster(3).with(|it| it.wanted.restores = true);
        observed.objects.claims.insert(Ordinal(1), claim);
        let plan = plan(&observed);
        assert_eq!(plan.steps, [], "nothing is touched");
        assert_eq!(awaited(&plan), "VolumesConflict");
        let message = plan.waiting.unwrap().message;
        assert!(message.contains("(c-1)") && message.contains("spec.bootstrap.restore"), "{message}");
    }
}

/// An operator of an earlier version, which leads for a moment, writes a status without what it does not know.
#[test]
fn restore_whose_bootstrap_is_not_recorded_any_more_goes_on_with_its_own_claims() {
    let mut observed = new_cluster(3).with(|it| it.wanted.restores = true);
    let own = Bootstrap { token: observed.uid.clone(), size: 1 };
    observed.objects.claims.insert(Ordinal(0), Claim { bootstrap: Some(own.clone()), ..Claim::default() });
    assert_eq!(plan(&observed), Plan { steps: vec![Step::Cluster(ClusterStep::RecordBootstrap(own))], waiting: None });
}

#[test]
fn an_initial_member_that_restores_a_backup_is_given_the_time_that_it_takes() {
    let mut observed = bootstrapping(1);
    observed.now += seconds(3600);
    observed.hang(0);
    assert!(restarts_anybody(&observed), "an hour is too long for a plain start");
    observed.objects.pods.get_mut(&Ordinal(0)).unwrap().restoring = true;
    assert!(!restarts_anybody(&observed));
}

fn restarts_anybody(observed: &Observed) -> bool {
    steps_of(observed).iter().any(|it| matches!(it, Step::Member(_, MemberStep::RestartPod { .. })))
}

impl Observed {
    /// The pod of an initial member has started, and the kubelet reports it unready.
    fn hang(&mut self, ordinal: u32) {
        let pod = self.objects.pods.get_mut(&Ordinal(ordinal)).unwrap();
        (pod.node, pod.began, pod.ready) = (Some(Node::default()), true, false);
    }
}

#[test]
fn silent_initial_member_is_restarted_only_if_its_node_finds_it_unhealthy_too() {
    let mut observed = bootstrapping(3);
    observed.now += seconds(3600);
    (0..3).for_each(|ordinal| observed.hang(ordinal));
    assert!(restarts_anybody(&observed), "it hangs");
    (0..3).for_each(|ordinal| observed.objects.pods.get_mut(&Ordinal(ordinal)).unwrap().ready = true);
    assert!(!restarts_anybody(&observed), "it may be only the operator that does not reach them");
    let message = plan(&observed).waiting.unwrap().message;
    assert!(message.contains("c-0, c-1, c-2"), "who is ready and not reached is named: {message}");
}

#[test]
fn silent_initial_member_that_has_not_begun_is_not_restarted() {
    let mut observed = bootstrapping(3);
    observed.now += seconds(3600);
    observed.hang(1);
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().began = false;
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().created = observed.now - seconds(600);
    assert!(!restarts_anybody(&observed), "there is nothing to restart: it waits for its volume or its image");
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().created = observed.now - seconds(1000);
    for durable in [true, false] {
        observed.wanted.durable = durable;
        assert!(restarts_anybody(&observed), "it may begin elsewhere, and has nothing to lose");
    }
}

#[test]
fn silent_initial_member_with_data_in_its_pod_is_not_restarted() {
    let mut observed = bootstrapping(3).with(|it| it.wanted.durable = false);
    observed.now += seconds(3600);
    observed.hang(1);
    assert!(!restarts_anybody(&observed), "what was acknowledged may be in it");
}
