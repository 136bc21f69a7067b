//! Databases with much unused space are defragmented, and alarms without a cause disarmed; nothing else.

use super::support::*;
use crate::cluster::observed::{Alarm, AlarmKind, Defragmentation, MemberId, Observed};
use crate::cluster::plan::Step;
use crate::cluster::step::{ClusterStep, MemberStep};
use crate::ordinal::Ordinal;

const MIB: i64 = 1 << 20;
const PAUSE: i64 = 3600;

fn with_sizes(size: i64, in_use: i64) -> Observed {
    let mut observed = cluster_of(3);
    observed.objects.quota = 1000 * MIB;
    for answer in observed.etcd.answers.values_mut().flatten() {
        (answer.db_size, answer.db_in_use) = (size, in_use);
    }
    observed
}

fn out_of_space(ordinal: u32) -> Alarm {
    Alarm { member_id: identity_of(ordinal).member_id, kind: AlarmKind::NoSpace }
}

#[test]
fn the_leader_is_defragmented_last() {
    let mut observed = with_sizes(500 * MIB, 100 * MIB);
    for ordinal in [1, 2, 0] {
        let defragmentation = Defragmentation { at: NOW, compacted: None };
        let record = Step::Member(Ordinal(ordinal), MemberStep::RecordDefragmentation { defragmentation });
        assert_eq!(steps_of(&observed), [record, Step::Member(Ordinal(ordinal), MemberStep::Defragment)]);
        observed.objects.peers.get_mut(&Ordinal(ordinal)).unwrap().defragmented = Some(defragmentation);
    }
    assert_eq!(steps_of(&observed), []);
}

#[test]
fn only_what_is_worth_it_is_defragmented() {
    assert_eq!(steps_of(&with_sizes(90 * MIB, MIB)), [], "too small");
    assert_eq!(steps_of(&with_sizes(500 * MIB, 300 * MIB)), [], "too full");
    let mut unwanted = with_sizes(500 * MIB, 100 * MIB);
    unwanted.wanted.defragments = false;
    assert_eq!(steps_of(&unwanted), []);
}

#[test]
fn defragmentation_waits_while_a_member_is_unhealthy() {
    let mut observed = with_sizes(500 * MIB, 100 * MIB);
    observed.stop_answering(2);
    assert_eq!(steps_of(&observed), []);
}

#[test]
fn when_space_is_short_it_is_tried_whenever_somebody_made_room() {
    let mut observed = with_sizes(16 * MIB, 15 * MIB);
    observed.objects.quota = 16 * MIB;
    observed.etcd.alarms.insert(out_of_space(1));
    let next = |observed: &Observed| steps_of(observed).pop();
    assert_eq!(next(&observed), Some(Step::Member(Ordinal(1), MemberStep::Defragment)));
    observed.etcd.compacted = Some(7);
    let in_vain = Some(Defragmentation { at: NOW - seconds(60), compacted: Some(7) });
    observed.objects.peers.values_mut().for_each(|peer| peer.defragmented = in_vain);
    assert_eq!(next(&observed), None, "nothing has changed since");
    observed.etcd.compacted = Some(70);
    assert_eq!(next(&observed), Some(Step::Member(Ordinal(1), MemberStep::Defragment)));
    observed.etcd.compacted = None;
    assert_eq!(next(&observed), None, "nobody can tell");
    observed.now += seconds(PAUSE);
    assert_eq!(
        next(&observed),
        Some(Step::Member(Ordinal(1), MemberStep::Defragment)),
        "once in a while it is tried anyway"
    );
}

#[test]
fn the_alarm_is_disarmed_once_everybody_has_room() {
    let mut observed = with_sizes(2 * MIB, 2 * MIB);
    observed.objects.quota = 16 * MIB;
    observed.etcd.alarms.insert(out_of_space(1));
    assert_eq!(steps_of(&observed), [Step::Cluster(ClusterStep::Disarm(out_of_space(1)))]);
    let answer = observed.etcd.answers.get_mut(&Ordinal(2)).unwrap().as_mut().unwrap();
    (answer.db_size, answer.db_in_use) = (15 * MIB, 15 * MIB);
    assert!(!steps_of(&observed).contains(&Step::Cluster(ClusterStep::Disarm(out_of_space(1)))));
}

#[test]
fn alarms_of_members_that_left_are_disarmed() {
    let mut observed = cluster_of(3);
    let orphan = Alarm { member_id: MemberId(0xdead), kind: AlarmKind::Corrupt };
    observed.etcd.alarms.insert(orphan);
    assert_eq!(steps_of(&observed), [Step::Cluster(ClusterStep::Disarm(orphan))]);
}
