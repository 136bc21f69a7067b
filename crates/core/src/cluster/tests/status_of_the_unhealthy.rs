//! The status of clusters in trouble: which members lost their data, since when, and what can be done.

use etcd_operator_api::EtcdClusterStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::support::*;
use crate::cluster::observed::{Alarm, AlarmKind, MemberId, Node, Observed, Problem, ProblemKind};
use crate::cluster::plan::plan;
use crate::cluster::status::status_to_report;
use crate::ordinal::Ordinal;

fn report_after(observed: &Observed, previous: &EtcdClusterStatus) -> EtcdClusterStatus {
    let now = Time(observed.now);
    status_to_report(observed, &plan(observed), previous, None, &now)
}

/// Status, reason and message of a condition.
fn said(status: &EtcdClusterStatus, kind: &str) -> (String, String, String) {
    let found = status.conditions.iter().find(|condition| condition.type_ == kind).unwrap();
    (found.status.clone(), found.reason.clone(), found.message.clone())
}

fn lose_data(observed: &mut Observed, ordinal: u32) {
    observed.objects.pods.get_mut(&Ordinal(ordinal)).unwrap().problem =
        Some(Problem::new(ProblemKind::DataLost, "refused: its data is gone"));
}

#[test]
fn a_quorum_that_is_lost_for_good_is_told_with_names_since_when_and_what_to_do() {
    let well = cluster_of(3);
    let before = report_after(&well, &EtcdClusterStatus::default());
    let mut lost = cluster_of(3);
    lost.now += seconds(60);
    lost.lose_quorum();
    lose_data(&mut lost, 0);
    lost.objects.pods.remove(&Ordinal(1));
    lost.objects.claims.remove(&Ordinal(1));
    let status = report_after(&lost, &before);
    let (available, reason, message) = said(&status, "Available");
    assert_eq!((available.as_str(), reason.as_str()), ("False", "QuorumLost"));
    assert!(message.starts_with("2 of 3 members lost their data"), "{message}");
    assert!(
        message.contains("c-0 (refused: its data is gone), c-1 (the volume claim c-1 is gone); left: c-2"),
        "{message}"
    );
    assert!(message.contains("unavailable since 2027-01-15T08:01:00Z"), "{message}");
    assert!(message.contains("Nothing is deleted or bootstrapped again"), "{message}");
    let later = report_after(&lost.with(|it| it.now += seconds(600)), &status);
    assert_eq!(said(&later, "Available").2, message, "the time is that of the loss");
}

#[test]
fn a_quorum_that_may_come_back_is_not_called_lost() {
    let before = report_after(&cluster_of(3), &EtcdClusterStatus::default());
    let mut away = cluster_of(3);
    away.lose_quorum();
    lose_data(&mut away, 0);
    assert_eq!(said(&report_after(&away, &before), "Available").1, "NoQuorum");
}

#[test]
fn membership_known_to_a_survivor_replaces_the_reported_one() {
    // Two of the five reported members have left since.
    let mut five = cluster_of(5);
    let before = report_after(&five, &EtcdClusterStatus::default());
    five.etcd.local_membership = cluster_of(3).etcd.membership;
    five.lose_quorum();
    lose_data(&mut five, 0);
    lose_data(&mut five, 1);
    assert_eq!(said(&report_after(&five, &before), "Available").1, "QuorumLost");
}

#[test]
fn a_full_database_is_told_with_numbers() {
    let mut observed = cluster_of(3);
    observed.objects.quota = 16 << 20;
    observed.etcd.alarms.insert(Alarm { member_id: MemberId(7), kind: AlarmKind::NoSpace });
    let answer = observed.etcd.answers.get_mut(&Ordinal(1)).unwrap().as_mut().unwrap();
    (answer.db_size, answer.db_in_use) = (17_000_000, 8 << 20);
    let status = report_after(&observed, &EtcdClusterStatus::default());
    for (kind, expected) in [("Available", "False"), ("Degraded", "True")] {
        let (status, reason, message) = said(&status, kind);
        assert_eq!((status.as_str(), reason.as_str()), (expected, "NoSpace"));
        assert!(message.contains("its quota of 16Mi: "), "{message}");
        assert!(message.contains("c-1 16.2Mi (8Mi in use)"), "{message}");
    }
}

#[test]
fn since_when_a_member_is_unhealthy_is_kept_until_it_is_well() {
    let mut observed = cluster_of(3);
    observed.stop_answering(1);
    let since = |status: &EtcdClusterStatus| {
        status.members.iter().map(|it| it.unhealthy_since.as_ref().map(|time| time.0)).collect::<Vec<_>>()
    };
    let first = report_after(&observed, &EtcdClusterStatus::default());
    assert_eq!(since(&first), [None, Some(NOW), None]);
    observed.recorded.unhealthy_since.insert(identity_of(1).member_id, NOW);
    observed.now += seconds(100);
    let second = report_after(&observed, &first);
    assert_eq!(since(&second), [None, Some(NOW), None]);
    let mut nobody = observed.clone();
    nobody.lose_quorum();
    assert_eq!(since(&report_after(&nobody, &second)), [Some(NOW + seconds(100)), Some(NOW), Some(NOW + seconds(100))]);
    observed.answer(1);
    assert_eq!(since(&report_after(&observed, &second)), [None, None, None]);
}

#[test]
fn a_pause_is_told_and_who_is_not_well_too() {
    let mut observed = cluster_of(3);
    observed.stop_answering(1);
    observed.wanted.paused = Some("the Pod c-1 has the annotation etcd.improbable.io/paused".into());
    let status = report_after(&observed, &EtcdClusterStatus::default());
    let (progressing, reason, message) = said(&status, "Progressing");
    assert_eq!((progressing.as_str(), reason.as_str()), ("False", "Paused"));
    assert!(message.ends_with("the Pod c-1 has the annotation etcd.improbable.io/paused"), "{message}");
    assert_eq!(said(&status, "Degraded").0, "True");
}

#[test]
fn nodes_and_wrong_data_are_named_as_the_cause() {
    let mut observed = cluster_of(3);
    observed.stop_answering(1);
    observed.objects.pods.get_mut(&Ordinal(1)).unwrap().node = Some(Node { down_since: Some(NOW), fenced: false });
    observed.remembered.differing.insert(identity_of(2).member_id);
    observed.etcd.alarms.insert(Alarm { member_id: MemberId(0), kind: AlarmKind::Corrupt });
    let status = report_after(&observed, &EtcdClusterStatus::default());
    assert_eq!(said(&status, "Available").1, "Corrupt", "etcd writes nothing");
    let message = said(&report_after(&observed, &EtcdClusterStatus::default()), "Degraded").2;
    let expected = "c-1 not answering: its node is down; c-2's data differs from that of the other members; \
                    etcd found that members' data differs, but not whose is wrong";
    assert_eq!(message, expected);
}
