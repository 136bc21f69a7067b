//! A recreated EtcdCluster adopts the volumes of its predecessor.

use super::support::*;
use crate::cluster::observed::{Bootstrap, Claim, ClusterId, Identity, MemberId, Observed};
use crate::cluster::plan::{Model, Plan, Step, is_confirmed, plan};
use crate::cluster::step::{ClusterStep, MemberStep};
use crate::ordinal::Ordinal;

fn recreated(size: u32) -> Observed {
    let mut observed = cluster_of(size);
    observed.recreate();
    observed
}

/// The recreated cluster after it has adopted its old ID.
fn adopted(size: u32) -> Observed {
    recreated(size).with(|it| it.recorded.cluster_id = Some(CLUSTER_ID))
}

#[test]
fn it_takes_its_old_id_and_is_not_bootstrapped_again() {
    assert_eq!(
        plan(&recreated(3)),
        Plan { steps: vec![Step::Cluster(ClusterStep::RecordClusterId(CLUSTER_ID))], waiting: None }
    );
}

#[test]
fn volumes_are_not_adopted_if_a_live_look_shows_those_of_another_cluster() {
    let mut live = recreated(3);
    let identity = Some(Identity { member_id: MemberId(7), cluster_id: ClusterId(0xbad) });
    live.objects.claims.insert(Ordinal(3), Claim { identity, ..Claim::default() });
    let [adoption] = &steps_of(&recreated(3))[..] else { panic!("{:?}", steps_of(&recreated(3))) };
    assert!(adoption.needs_live_confirmation() && !is_confirmed(adoption, &live));
}

#[test]
fn all_members_come_back_on_their_own_data() {
    let steps = steps_of(&adopted(3));
    assert_eq!(steps.len(), 9);
    for (ordinal, of_member) in (0..).zip(steps.chunks(3)) {
        let record =
            Step::Member(Ordinal(ordinal), MemberStep::RecordMember { identity: identity_of(ordinal), started: true });
        assert_eq!(
            (&of_member[0], &of_member[2]),
            (&Step::Member(Ordinal(ordinal), MemberStep::CreatePeer { initial: false, model: Model::Spec }), &record)
        );
        let Step::Member(of, MemberStep::CreatePod { start }) = &of_member[1] else { panic!("{of_member:?}") };
        assert_eq!((*of, start.expected, &start.bootstrap_token), (Ordinal(ordinal), kept(ordinal), &None));
    }
}

#[test]
fn all_members_come_back_however_many_are_wanted_now() {
    for replicas in [1, 5] {
        let steps = steps_of(&adopted(3).with(|it| it.wanted.replicas = replicas));
        assert_eq!(
            steps.iter().filter(|step| matches!(step, Step::Member(_, MemberStep::CreatePod { .. }))).count(),
            3,
            "{replicas}"
        );
    }
}

#[test]
fn a_crash_before_the_record_of_a_member_resumes_from_its_claim() {
    let mut observed = adopted(3);
    observed.objects.peers.insert(Ordinal(0), Default::default());
    let steps = steps_of(&observed);
    assert!(matches!(steps[0], Step::Member(Ordinal(0), MemberStep::CreatePod { .. })));
    assert_eq!(
        steps[1],
        Step::Member(Ordinal(0), MemberStep::RecordMember { identity: identity_of(0), started: true })
    );
}

#[test]
fn initial_members_whose_claims_were_not_marked_yet_come_back_too() {
    let mut observed = adopted(3);
    for ordinal in [1, 2] {
        observed.objects.claims.get_mut(&Ordinal(ordinal)).unwrap().identity = None;
    }
    let steps = steps_of(&observed);
    let pods = steps.iter().filter(
        |step| matches!(step, Step::Member(_, MemberStep::CreatePod { start, .. }) if start.bootstrap_token.is_none()),
    );
    assert_eq!(pods.count(), 3);
}

#[test]
fn a_claim_of_another_bootstrap_is_not_taken_for_an_initial_members() {
    let mut observed = adopted(3);
    let bootstrap = Some(Bootstrap { token: "other".into(), size: 3 });
    observed.objects.claims.insert(Ordinal(2), Claim { bootstrap, ..Claim::default() });
    observed.objects.claims.insert(Ordinal(3), Claim::default());
    let steps = steps_of(&observed);
    assert!(
        !steps.iter().any(|step| matches!(step, Step::Member(Ordinal(2..), MemberStep::CreatePod { .. }))),
        "{steps:?}"
    );
}

#[test]
fn a_learner_that_never_ran_may_still_start_after_the_cluster_was_recreated() {
    // Its claim was annotated with its identity, which looked as if it had run.
    let mut observed = cluster_of(3);
    observed.wanted.replicas = 4;
    observed.join_as_learner(3);
    observed.objects.peers.get_mut(&Ordinal(3)).unwrap().started = true;
    observed.objects.claims.insert(Ordinal(3), Claim { identity: Some(identity_of(3)), ..Claim::default() });
    let steps = steps_of(&observed);
    let [record, Step::Member(Ordinal(3), MemberStep::CreatePod { start })] = &steps[..] else { panic!("{steps:?}") };
    assert_eq!(
        *record,
        Step::Member(Ordinal(3), MemberStep::RecordMember { identity: identity_of(3), started: false })
    );
    assert_eq!(start.expected, fresh(3));
}

#[test]
fn volumes_of_two_clusters_are_refused() {
    let mut observed = recreated(3);
    observed.objects.claims.get_mut(&Ordinal(2)).unwrap().identity =
        Some(Identity { member_id: MemberId(7), cluster_id: ClusterId(0xc2) });
    let plan = plan(&observed);
    assert_eq!((plan.steps.len(), awaited(&plan)), (0, "VolumesConflict"));
    assert!(plan.waiting.unwrap().message.contains("(c1, c2)"));
}

#[test]
fn a_bootstrap_that_was_never_seen_to_the_end_is_repeated_with_its_own_token() {
    let mut observed = new_cluster(5);
    observed.uid = "uid-2".into();
    observed.objects.claims.insert(Ordinal(1), Claim { bootstrap: Some(bootstrap_of(3)), ..Claim::default() });
    assert_eq!(steps_of(&observed), [Step::Cluster(ClusterStep::RecordBootstrap(bootstrap_of(3)))]);
}

#[test]
fn a_cluster_without_volumes_is_bootstrapped_anew() {
    let mut observed = cluster_of(3);
    observed.objects.claims.clear();
    observed.recreate();
    assert_eq!(
        steps_of(&observed),
        [Step::Cluster(ClusterStep::RecordBootstrap(Bootstrap { token: "uid-2".into(), size: 3 }))]
    );
}
