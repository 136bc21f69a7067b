//! The status reports what etcd itself reports, and names the unhealthy members and why they are.

use etcd_operator_api::{EtcdClusterStatus, MemberRole};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use super::support::*;
use crate::cluster::observed::{Claim, ClusterId, Member, MemberId, Observed, Pod, Problem, ProblemKind};
use crate::cluster::plan::plan;
use crate::cluster::status::status_to_report;
use crate::ordinal::Ordinal;

fn at(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

fn report_after(observed: &Observed, previous: &EtcdClusterStatus, second: i64) -> EtcdClusterStatus {
    status_to_report(observed, &plan(observed), previous, Some(1), &at(second))
}

fn report(observed: &Observed) -> EtcdClusterStatus {
    report_after(observed, &EtcdClusterStatus::default(), 1)
}

fn condition<'a>(status: &'a EtcdClusterStatus, type_: &str) -> &'a Condition {
    status.conditions.iter().find(|condition| condition.type_ == type_).unwrap()
}

/// Status, reason and message of a condition.
fn said<'a>(status: &'a EtcdClusterStatus, type_: &str) -> (&'a str, &'a str, &'a str) {
    let condition = condition(status, type_);
    (&condition.status, &condition.reason, &condition.message)
}

#[test]
fn status_of_a_healthy_cluster_names_leader_members_and_conditions() {
    let status = report(&cluster_of(3));
    assert_eq!((status.replicas, status.ready_replicas), (3, 3));
    assert_eq!(status.label_selector.as_deref(), Some("app.kubernetes.io/name=etcd,etcd.improbable.io/cluster-name=c"));
    assert_eq!(said(&status, "Available"), ("True", "QuorumAvailable", "3 of 3 voters answer"));
    assert_eq!(said(&status, "Progressing"), ("False", "UpToDate", "all members match the spec"));
    assert_eq!(said(&status, "Degraded"), ("False", "AllMembersHealthy", "no unhealthy members"));
    assert_eq!(status.leader.as_deref(), Some("c-0"));
    assert_eq!(status.cluster_version.as_deref(), Some("3.6.0"));
    assert_eq!(status.observed_generation, Some(1));
    let roles: Vec<_> = status.members.iter().map(|member| (member.name.as_str(), member.role.unwrap())).collect();
    assert_eq!(roles, [("c-0", MemberRole::Leader), ("c-1", MemberRole::Voter), ("c-2", MemberRole::Voter)]);
    let first = &status.members[0];
    assert_eq!((first.id.as_str(), first.healthy, first.db_size), ("64", Some(true), Some(20480)));
    assert_eq!(first.version.as_deref(), Some("3.6.16"));
}

#[test]
fn bootstrap_record_in_the_status_stays() {
    let bootstrap = etcd_operator_api::BootstrapRecord { token: "uid-1".into(), size: 3 };
    let previous =
        EtcdClusterStatus { bootstrap: Some(bootstrap), cluster_id: Some("c1".into()), ..EtcdClusterStatus::default() };
    let status = report_after(&cluster_of(3), &previous, 1);
    assert_eq!((status.bootstrap, status.cluster_id), (previous.bootstrap, previous.cluster_id));
}

#[test]
fn bootstrap_recorded_under_its_earlier_name_moves_to_the_new_one() {
    let earlier = serde_json::json!({"birth": {"token": "uid-1", "size": 3}, "clusterID": "c1"});
    let previous: EtcdClusterStatus = serde_json::from_value(earlier).unwrap();
    let status = report_after(&cluster_of(3), &previous, 1);
    let written = serde_json::to_value(&status).unwrap();
    assert_eq!((&written["bootstrap"]["token"], &written["birth"]), (&"uid-1".into(), &serde_json::Value::Null));
}

#[test]
fn only_reads_that_need_a_quorum_make_a_cluster_available() {
    let mut observed = cluster_of(3);
    observed.etcd.answers.values_mut().flatten().for_each(|answer| answer.reads = false);
    assert_eq!(condition(&report(&observed), "Available").status, "False", "the pods run, but nobody reads");
    observed.lose_quorum();
    let status = report(&observed);
    assert_eq!(said(&status, "Available").1, "NoQuorum");
    assert_eq!(status.ready_replicas, 0);
    let mut one = cluster_of(3);
    one.stop_answering(0);
    one.stop_answering(1);
    assert_eq!(said(&report(&one), "Available"), ("True", "QuorumAvailable", "1 of 3 voters answer"));
}

#[test]
fn a_cluster_that_is_not_bootstrapped_yet_is_neither_available_nor_degraded() {
    let mut observed = new_cluster(3).with(|it| it.recorded.bootstrap = Some(bootstrap_of(3)));
    observed.objects.pods.insert(
        Ordinal(1),
        Pod { problem: Some(Problem::new(ProblemKind::NoNode, "pod not scheduled: none")), ..Pod::default() },
    );
    let status = report(&observed);
    let message = "members are starting for the first time; c-1: pod not scheduled: none";
    assert_eq!(said(&status, "Available"), ("False", "Bootstrapping", message));
    assert_eq!(said(&status, "Progressing"), ("True", "Bootstrapping", "0 of 3 initial members answer"));
    assert_eq!(condition(&status, "Degraded").status, "False");
}

#[test]
fn members_are_kept_but_not_called_healthy_while_etcd_cannot_be_asked() {
    let mut observed = cluster_of(3);
    let before = report(&observed);
    observed.lose_quorum();
    let after = report_after(&observed, &before, 2);
    assert_eq!(after.members.len(), 3);
    for (old, new) in before.members.iter().zip(&after.members) {
        assert_eq!((&old.name, &old.id, new.healthy), (&new.name, &new.id, Some(false)));
    }
    assert_eq!((after.leader, after.cluster_version), (before.leader, before.cluster_version));
}

#[test]
fn degraded_names_the_member_and_the_reason() {
    type Break = fn(&mut Observed);
    let cases: [(Break, &str); 8] = [
        (|it| it.stop_answering(1), "c-1 not answering (timed out)"),
        (
            |it| {
                it.objects.pods.get_mut(&Ordinal(1)).unwrap().problem =
                    Some(Problem::new(ProblemKind::DataLost, "refused: its data is gone"))
            },
            "c-1: refused: its data is gone",
        ),
        (
            |it| {
                it.objects.pods.get_mut(&Ordinal(1)).unwrap().problem =
                    Some(Problem::new(ProblemKind::NoImage, "container etcd is waiting: ErrImagePull (no such tag)"))
            },
            "c-1: container etcd is waiting: ErrImagePull (no such tag)",
        ),
        (|it| drop(it.objects.pods.remove(&Ordinal(1))), "c-1 has no pod"),
        (|it| drop(it.objects.claims.remove(&Ordinal(1))), "c-1 has no volume: its claim is gone"),
        (|it| it.objects.pods.get_mut(&Ordinal(1)).unwrap().deleting = true, "c-1's pod is terminating"),
        (
            |it| it.etcd.answers.get_mut(&Ordinal(1)).unwrap().as_mut().unwrap().reads = false,
            "c-1 answers, but cannot serve linearizable reads",
        ),
        (|_| {}, "c-1's pod has not started yet"),
    ];
    for (break_it, words) in cases {
        let mut observed = cluster_of(3);
        if !words.starts_with("c-1 answers") {
            observed.etcd.answers.remove(&Ordinal(1));
        }
        break_it(&mut observed);
        let status = report(&observed);
        assert_eq!(said(&status, "Degraded"), ("True", "MembersUnhealthy", words));
        assert_eq!(condition(&status, "Available").status, "True", "{words}");
        assert_eq!(status.ready_replicas, 2, "{words}");
    }
}

#[test]
fn without_a_quorum_everybody_who_is_not_well_is_named() {
    let mut observed = cluster_of(3);
    observed.lose_quorum();
    observed.objects.pods.remove(&Ordinal(2));
    let status = report(&observed);
    let message = "c-0's pod has not started yet; c-1's pod has not started yet; c-2 has no pod";
    assert_eq!(said(&status, "Degraded"), ("True", "MembersUnhealthy", message));
    assert_eq!(said(&status, "Available").2, format!("no quorum of the members answers: {message}"));
}

#[test]
fn a_learner_on_its_way_is_not_ill_but_a_voter_that_never_came_is() {
    let mut observed = cluster_of(3);
    observed.wanted.replicas = 4;
    observed.join_as_learner(3);
    let status = report(&observed);
    assert_eq!(condition(&status, "Degraded").status, "False");
    assert_eq!(said(&status, "Available").2, "3 of 3 voters answer", "a learner is no voter");
    assert_eq!((status.members[3].role, status.members[3].healthy), (Some(MemberRole::Learner), Some(false)));

    let mut initial_member = cluster_of(3);
    initial_member.member_mut(2).started = false;
    initial_member.stop_answering(2);
    assert_eq!(said(&report(&initial_member), "Degraded").2, "c-2 not answering (timed out)");
}

#[test]
fn progressing_condition_describes_each_step() {
    let mut starting = cluster_of(3);
    starting.objects.pods.remove(&Ordinal(1));
    let adding = cluster_of(3).with(|it| it.wanted.replicas = 4);
    let mut learner = adding.clone();
    learner.join_as_learner(3);
    let mut promoting = adding.clone();
    promoting.join_as_running_learner(3);
    let removing = cluster_of(3).with(|it| it.wanted.replicas = 1);
    let mut moving = removing.clone();
    moving.lead(2);
    let mut at_risk = cluster_of(3).with(|it| it.wanted.replicas = 2);
    at_risk.stop_answering(1);
    let mut cleaning = cluster_of(3).with(|it| it.wanted.replicas = 2);
    cleaning.leave_etcd(2);
    let mut stopping = cluster_of(3);
    stopping.objects.pods.get_mut(&Ordinal(1)).unwrap().finished = true;
    let cases = [
        (new_cluster(3), "Bootstrapping", "bootstrapping a cluster of 3 members"),
        (starting, "StartingMember", "starting c-1"),
        (adding, "AddingMember", "adding c-3 as a learner"),
        (learner, "LearnerStarting", "c-3 joined as a learner and is starting"),
        (promoting, "LearnerCatchingUp", "c-3 is catching up before its promotion"),
        (removing, "RemovingMember", "removing c-2: spec.replicas was lowered"),
        (moving, "MovingLeader", "moving leadership from c-2 to c-0"),
        (
            at_risk,
            "QuorumAtRisk",
            "removing c-2 would leave 1 of 2 voters healthy: no quorum (spec.replicas was lowered)",
        ),
        (cleaning, "StoppingPod", "stopping pod c-2: its member was removed"),
        (stopping, "StoppingPod", "stopping pod c-1: it has ended and will not run again"),
    ];
    for (observed, reason, message) in cases {
        assert_eq!(said(&report(&observed), "Progressing"), ("True", reason, message));
    }
}

#[test]
fn wait_that_needs_a_user_is_not_progressing() {
    let mut refused = new_cluster(2);
    for (ordinal, cluster_id) in [(0, ClusterId(1)), (1, ClusterId(2))] {
        let identity = Some(crate::cluster::observed::Identity { member_id: MemberId(7), cluster_id });
        refused.objects.claims.insert(Ordinal(ordinal), Claim { identity, ..Claim::default() });
    }
    let wrong = cluster_of(3).with(|it| it.recorded.cluster_id = Some(ClusterId(0xbad)));
    for (observed, reason) in [(refused, "VolumesConflict"), (wrong, "WrongCluster")] {
        let status = report(&observed);
        assert_eq!((said(&status, "Progressing").0, said(&status, "Progressing").1), ("False", reason));
    }
}

#[test]
fn status_says_nothing_of_another_cluster_that_answers() {
    let before = report(&cluster_of(3));
    let mut wrong = cluster_of(3).with(|it| it.recorded.cluster_id = Some(ClusterId(0xbad)));
    wrong.etcd.cluster_version = Some(version("3.7.0"));
    let status = report_after(&wrong, &before, 1);
    assert_eq!((said(&status, "Available").0, said(&status, "Available").1), ("False", "NoQuorum"));
    assert!(said(&status, "Available").2.contains("c-1 not answering (another etcd cluster answers)"));
    assert_eq!((status.ready_replicas, status.cluster_version), (0, before.cluster_version));
}

#[test]
fn status_without_changes_equals_the_previous_one() {
    for observed in [cluster_of(3), new_cluster(3), cluster_of(3).with(|it| it.wanted.replicas = 5)] {
        let before = report(&observed);
        assert_eq!(report_after(&observed, &before, 2), before);
    }
}

#[test]
fn a_condition_keeps_its_time_for_as_long_as_it_holds() {
    let mut observed = cluster_of(3);
    let before = report_after(&observed, &EtcdClusterStatus::default(), 1);
    observed.stop_answering(1);
    let after = report_after(&observed, &before, 2);
    assert_eq!(condition(&after, "Available").last_transition_time, at(1), "still available, with other words");
    assert_eq!(condition(&after, "Available").message, "2 of 3 voters answer");
    assert_eq!(condition(&after, "Degraded").last_transition_time, at(2));
    observed.answer(1);
    let again = report_after(&observed, &after, 3);
    assert_eq!(condition(&again, "Degraded").last_transition_time, at(3));
    assert_eq!(condition(&again, "Available").last_transition_time, at(1));
}

#[test]
fn the_version_is_what_etcd_says_and_the_leader_whom_most_name() {
    let mut observed = cluster_of(3);
    observed.lead(2);
    observed.etcd.answers.get_mut(&Ordinal(0)).unwrap().as_mut().unwrap().leader = Some(identity_of(0).member_id);
    observed.etcd.cluster_version = Some(version("3.5.0"));
    let status = report(&observed);
    assert_eq!((status.leader.as_deref(), status.cluster_version.as_deref()), (Some("c-2"), Some("3.5.0")));
    assert_eq!(status.members[2].role, Some(MemberRole::Leader));
}

#[test]
fn a_member_that_somebody_else_added_is_called_by_its_id() {
    let mut observed = cluster_of(3);
    let url = "http://10.0.0.9:2380".to_owned();
    let foreign = Member { id: MemberId(0xf), ordinal: None, peer_url: url, started: true, learner: false };
    observed.etcd.membership.as_mut().unwrap().members.push(foreign);
    observed.etcd.answers.values_mut().flatten().for_each(|answer| answer.leader = Some(MemberId(0xf)));
    let status = report(&observed);
    assert_eq!((status.members[3].name.as_str(), status.leader.as_deref()), ("f", Some("f")));
}

#[test]
fn a_database_that_grows_a_little_is_no_news() {
    let mut observed = cluster_of(1);
    let report = |observed: &Observed, previous: &EtcdClusterStatus| {
        let status = status_to_report(observed, &plan(observed), previous, Some(1), &at(100));
        (status.members[0].db_size, status)
    };
    let size = |observed: &mut Observed, bytes: i64| {
        if let Some(Ok(answer)) = observed.etcd.answers.get_mut(&Ordinal(0)) {
            answer.db_size = bytes;
        }
    };
    size(&mut observed, 100 << 20);
    let (first, status) = report(&observed, &EtcdClusterStatus::default());
    assert_eq!(first, Some(100 << 20));
    size(&mut observed, 109 << 20);
    assert_eq!(report(&observed, &status).0, Some(100 << 20));
    size(&mut observed, 111 << 20);
    assert_eq!(report(&observed, &status).0, Some(111 << 20));
    size(&mut observed, 20 << 20);
    assert_eq!(report(&observed, &status).0, Some(20 << 20), "after a defragmentation");
}
