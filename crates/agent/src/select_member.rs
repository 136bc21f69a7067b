//! Which member is asked for its snapshot.

use std::cmp::Reverse;

use etcd_operator_etcd::{AlarmKind, Status};
use etcd_operator_protocol::report::{Failure, Reason};

/// The result of asking one address. The error names the address and the cause.
pub type Answer = Result<MemberStatus, String>;

#[derive(Clone, Debug)]
pub struct MemberStatus {
    pub url: String,
    pub status: Status,
    /// Whether the member served a linearizable read. Learners never do.
    pub linearizable_read_ok: bool,
}

/// The members to ask.
#[derive(Debug, PartialEq, Eq)]
pub struct Choice {
    pub with_quorum: bool,
    /// Indices of the answers, the best first.
    pub best_first: Vec<usize>,
}

/// With a quorum, the members that are part of it: each has all that was acknowledged when it was asked. Without one, all
/// that answer: the one that has most comes first. Never a member whose data is known to be wrong.
pub fn members_to_try(answers: &[Answer]) -> Result<Choice, Failure> {
    let answered = || answers.iter().enumerate().filter_map(|(index, answer)| Some((index, answer.as_ref().ok()?)));
    are_of_one_cluster(answered().map(|(_, member)| member))?;
    let with_quorum = answered().any(|(_, member)| is_in_quorum(member));
    let mut chosen: Vec<(usize, &MemberStatus)> =
        answered().filter(|(_, member)| !is_corrupt(&member.status)).collect();
    if with_quorum {
        chosen.retain(|(_, member)| is_in_quorum(member) || (member.status.is_learner && member.status.leader != 0));
        chosen.sort_by_key(|(_, MemberStatus { status, .. })| {
            let leads = status.leader == status.member_id;
            (status.is_learner, !is_healthy(status), leads, Reverse(status.raft_applied_index))
        });
    } else {
        chosen.sort_by_key(|(_, MemberStatus { status, .. })| {
            (Reverse(status.revision), status.is_learner, Reverse(status.raft_applied_index))
        });
    }
    if chosen.is_empty() {
        return Err(Failure { reason: Reason::EtcdUnreachable, message: no_member_reason(answers) });
    }
    Ok(Choice { with_quorum, best_first: chosen.into_iter().map(|(index, _)| index).collect() })
}

fn is_in_quorum(member: &MemberStatus) -> bool {
    member.status.leader != 0 && member.linearizable_read_ok
}

/// A full member has no room for more, but nothing is wrong with what it has.
fn is_healthy(status: &Status) -> bool {
    status.errors.len() == status.alarms.len() && status.alarms.iter().all(|alarm| alarm.kind == AlarmKind::NoSpace)
}

/// Is it known that this member's data is not that of the others? If etcd can't tell whose is wrong it blames nobody, and
/// then a backup that may be wrong is better than none.
fn is_corrupt(status: &Status) -> bool {
    status.alarms.iter().any(|alarm| alarm.kind == AlarmKind::Corrupt && alarm.member_id == status.member_id)
}

fn are_of_one_cluster<'a>(mut answered: impl Iterator<Item = &'a MemberStatus>) -> Result<(), Failure> {
    let Some(first) = answered.next() else { return Ok(()) };
    let Some(other) = answered.find(|member| member.status.cluster_id != first.status.cluster_id) else {
        return Ok(());
    };
    let message = format!(
        "{} belongs to cluster {:x} and {} to cluster {:x}: which of them to back up is ambiguous",
        first.url, first.status.cluster_id, other.url, other.status.cluster_id
    );
    Err(Failure { reason: Reason::InvalidRequest, message })
}

fn no_member_reason(answers: &[Answer]) -> String {
    let reasons = answers.iter().map(|answer| match answer {
        Ok(member) => format!("the data of {} is not that of the other members (alarm CORRUPT)", member.url),
        Err(why) => why.clone(),
    });
    let reasons: Vec<String> = reasons.collect();
    if reasons.is_empty() {
        return "there is no member to ask".into();
    }
    format!("no member can be asked for a snapshot: {}", reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use etcd_operator_etcd::Alarm;

    use super::*;

    const LEADER: u64 = 1;

    /// A healthy follower that is part of the quorum.
    fn member(member_id: u64) -> MemberStatus {
        let status = Status {
            member_id,
            cluster_id: 0xc1,
            leader: LEADER,
            is_learner: false,
            version: "3.6.16".into(),
            storage_version: None,
            downgrade_target: None,
            db_size: 1,
            db_size_in_use: 1,
            db_size_quota: None,
            revision: 100,
            raft_term: 2,
            raft_index: 200,
            raft_applied_index: 200,
            errors: Vec::new(),
            alarms: Vec::new(),
        };
        MemberStatus { url: format!("http://m{member_id}:2379"), status, linearizable_read_ok: true }
    }

    fn behind(mut member: MemberStatus, by: u64) -> MemberStatus {
        member.status.revision -= by;
        member.status.raft_applied_index -= by;
        member
    }

    fn learner(mut member: MemberStatus) -> MemberStatus {
        member.status.is_learner = true;
        member.linearizable_read_ok = false;
        member
    }

    fn alone(mut member: MemberStatus) -> MemberStatus {
        member.status.leader = 0;
        member.status.errors.push("etcdserver: no leader".into());
        member.linearizable_read_ok = false;
        member
    }

    fn alarmed(mut member: MemberStatus, kind: AlarmKind, member_id: u64) -> MemberStatus {
        member.status.errors.push(format!("memberID:{member_id} alarm:{kind} "));
        member.status.alarms.push(Alarm { member_id, kind });
        member
    }

    fn silent(member_id: u64) -> Answer {
        Err(format!("asking for the status at http://m{member_id}:2379: no answer within 5s"))
    }

    #[track_caller]
    fn assert_order(with_quorum: bool, expected: &[u64], answers: Vec<Answer>) {
        let choice = members_to_try(&answers).unwrap();
        let ids: Vec<u64> = choice.best_first.iter().map(|n| answers[*n].as_ref().unwrap().status.member_id).collect();
        assert_eq!((choice.with_quorum, &ids[..]), (with_quorum, expected));
    }

    #[test]
    fn followers_come_before_the_leader_and_learners_last() {
        assert_order(true, &[2, 1, 3], vec![Ok(member(1)), Ok(member(2)), Ok(learner(member(3)))]);
        assert_order(true, &[3, 2, 1], vec![Ok(member(1)), Ok(behind(member(2), 5)), Ok(member(3))]);
        assert_order(true, &[LEADER], vec![Ok(member(LEADER)), silent(2), silent(3)]);
    }

    #[test]
    fn member_outside_the_quorum_is_not_selected_while_there_is_a_quorum() {
        assert_order(true, &[2, 1], vec![Ok(member(1)), Ok(member(2)), Ok(alone(member(3)))]);
        let mut cut_off = member(3);
        cut_off.linearizable_read_ok = false;
        assert_order(true, &[2, 1], vec![Ok(member(1)), Ok(member(2)), Ok(cut_off)]);
        // A learner that has no leader has lost touch.
        assert_order(true, &[1], vec![Ok(member(1)), Ok(alone(learner(member(2))))]);
    }

    #[test]
    fn member_with_highest_revision_is_selected_without_a_quorum() {
        let answers = vec![Ok(alone(behind(member(1), 7))), silent(2), Ok(alone(member(3)))];
        assert_order(false, &[3, 1], answers);
        assert_order(false, &[2, 1], vec![Ok(alone(learner(member(1)))), Ok(alone(member(2)))]);
        assert_order(false, &[1, 2], vec![Ok(alone(learner(member(1)))), Ok(alone(behind(member(2), 1)))]);
    }

    #[test]
    fn member_with_nospace_alarm_keeps_its_rank_and_member_with_errors_comes_last() {
        let full = |id| alarmed(member(id), AlarmKind::NoSpace, 3);
        assert_order(true, &[2, 3, 1], vec![Ok(full(1)), Ok(full(2)), Ok(full(3))]);
        let mut complaining = member(2);
        complaining.status.errors.push("something".into());
        assert_order(true, &[3, 1, 2], vec![Ok(member(1)), Ok(complaining), Ok(member(3))]);
    }

    #[test]
    fn corrupt_member_is_never_selected() {
        let blamed = |id| alarmed(member(id), AlarmKind::Corrupt, 3);
        assert_order(true, &[2, 1], vec![Ok(blamed(1)), Ok(blamed(2)), Ok(blamed(3))]);
        let failure = members_to_try(&[silent(1), silent(2), Ok(blamed(3))]).unwrap_err();
        assert_eq!(failure.reason, Reason::EtcdUnreachable);
        for part in ["http://m1:2379: no answer within 5s", "http://m2:2379", "data of http://m3:2379 is not that of"] {
            assert!(failure.message.contains(part), "{}", failure.message);
        }
        // etcd names no member: which one is right is unknown.
        assert_order(true, &[2], vec![Ok(alarmed(member(2), AlarmKind::Corrupt, 0))]);
    }

    #[test]
    fn members_of_different_clusters_are_refused() {
        let mut stranger = member(2);
        stranger.status.cluster_id = 0xc2;
        let failure = members_to_try(&[Ok(member(1)), silent(3), Ok(stranger)]).unwrap_err();
        assert_eq!(failure.reason, Reason::InvalidRequest);
        assert!(failure.message.contains("http://m1:2379 belongs to cluster c1"), "{}", failure.message);
        assert!(failure.message.contains("http://m2:2379 to cluster c2"), "{}", failure.message);
    }

    #[test]
    fn selection_without_members_fails_with_a_message() {
        let failure = members_to_try(&[]).unwrap_err();
        assert_eq!(failure, Failure { reason: Reason::EtcdUnreachable, message: "there is no member to ask".into() });
        assert!(members_to_try(&[silent(1)]).unwrap_err().message.contains("http://m1:2379"));
    }
}
