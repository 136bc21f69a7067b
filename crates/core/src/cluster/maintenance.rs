//! Maintenance of members: databases with much unused space are defragmented, and alarms whose cause is gone are
//! disarmed. It waits until there is nothing else to do.

use jiff::SignedDuration;

use crate::cluster::observed::{Alarm, AlarmKind, Defragmentation, Member, MemberId, Membership, Observed};
use crate::cluster::step::{ClusterStep, MemberStep, Plan, Step};
use crate::ordinal::Ordinal;

/// A database is worth defragmenting from this size in bytes on, if this percentage of it is unused.
const WORTHWHILE_SIZE: i64 = 100_000_000;
const WORTHWHILE_PERCENT: i64 = 45;
/// A database has room again if it is below this percentage of its quota.
const ROOMY_PERCENT: i64 = 80;
/// The minimum time between two defragmentations of the same database: in general, and when space is short.
const PAUSE: SignedDuration = SignedDuration::from_secs(3600);
const SHORT_PAUSE: SignedDuration = SignedDuration::from_secs(10);

/// The alarms of members that are gone: nothing else would ever disarm them, and etcd refuses writes until then. An
/// alarm without a member (0) is about the current ones.
pub fn disarm_orphans(observed: &Observed, membership: &Membership) -> Vec<Step> {
    let is_about_others = |id: MemberId| id != MemberId::default() && membership.member(id).is_none();
    observed.etcd.alarms.iter().filter(|alarm| is_about_others(alarm.member_id)).copied().map(disarm).collect()
}

fn disarm(alarm: Alarm) -> Step {
    Step::Cluster(ClusterStep::Disarm(alarm))
}

pub fn next_maintenance(observed: &Observed, membership: &Membership) -> Plan {
    let mut steps = Vec::new();
    let all_healthy = membership.members.iter().all(|member| observed.is_healthy(member));
    if observed.wanted.defragments && all_healthy {
        steps.extend(alarms_without_cause(observed, membership).map(disarm));
        steps.extend(
            next_to_defragment(observed, membership).into_iter().flat_map(|ordinal| defragment(observed, ordinal)),
        );
    }
    Plan::steps(steps)
}

/// It is recorded first, so that a defragmentation that takes too long is not started again and again.
fn defragment(observed: &Observed, ordinal: Ordinal) -> [Step; 2] {
    let defragmentation = Defragmentation { at: observed.now, compacted: observed.etcd.compacted };
    [
        Step::Member(ordinal, MemberStep::RecordDefragmentation { defragmentation }),
        Step::Member(ordinal, MemberStep::Defragment),
    ]
}

/// Whether etcd refuses writes because a database has reached its quota.
pub fn is_out_of_space(observed: &Observed) -> bool {
    observed.etcd.alarms.iter().any(|alarm| alarm.kind == AlarmKind::NoSpace)
}

/// The alarms about space, once every database has room.
fn alarms_without_cause<'a>(observed: &'a Observed, membership: &'a Membership) -> impl Iterator<Item = Alarm> + 'a {
    let has_room =
        |member: &Member| observed.answer_of(member).is_some_and(|answer| is_roomy(observed, answer.db_size));
    let all_have_room = membership.members.iter().all(has_room);
    let of_members = move |alarm: &&Alarm| membership.member(alarm.member_id).is_some();
    let alarms = observed.etcd.alarms.iter().filter(move |alarm| alarm.kind == AlarmKind::NoSpace && all_have_room);
    alarms.filter(of_members).copied()
}

fn is_roomy(observed: &Observed, size: i64) -> bool {
    size < observed.objects.quota / 100 * ROOMY_PERCENT
}

/// The member whose database is defragmented next: the leader last, so that the leadership moves as rarely as possible.
fn next_to_defragment(observed: &Observed, membership: &Membership) -> Option<Ordinal> {
    let leader = observed.leader();
    let fragmented = membership.members.iter().filter(|member| is_worth_defragmenting(observed, member));
    let ours = fragmented.filter_map(|member| Some((Some(member.id) == leader, member.ordinal?)));
    ours.min().map(|(_, ordinal)| ordinal)
}

fn is_worth_defragmenting(observed: &Observed, member: &Member) -> bool {
    let Some(answer) = observed.answer_of(member) else { return false };
    let peer = member.ordinal.and_then(|ordinal| observed.objects.peers.get(&ordinal));
    let last = peer.and_then(|peer| peer.defragmented);
    let rested = |pause: SignedDuration| last.is_none_or(|last| observed.elapsed_since(last.at) >= pause);
    if is_out_of_space(observed) && !is_roomy(observed, answer.db_size) {
        // Room is made by compacting history. The size in use does not show that: etcd counts what a compaction frees
        // only with the next write, and there is none.
        let made_room =
            last.is_none_or(|last| observed.etcd.compacted.is_some() && last.compacted != observed.etcd.compacted);
        return rested(if made_room { SHORT_PAUSE } else { PAUSE });
    }
    let unused = answer.db_size - answer.db_in_use;
    answer.db_size >= WORTHWHILE_SIZE && unused >= answer.db_size / 100 * WORTHWHILE_PERCENT && rested(PAUSE)
}
