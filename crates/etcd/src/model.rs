//! What a member says, in plain types.

use crate::messages;

/// What a member says of itself. It answers without asking the others, so it may be behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub member_id: u64,
    pub cluster_id: u64,
    /// The member ID of the leader; 0 if this member knows none.
    pub leader: u64,
    pub is_learner: bool,
    pub version: String,
    /// The version of the storage's schema, as `major.minor.patch`. From etcd 3.6 on, and there only once it is known.
    pub storage_version: Option<String>,
    /// Bytes.
    pub db_size: u64,
    /// Bytes; the rest of `db_size` would be freed by a defragmentation.
    pub db_size_in_use: u64,
    pub raft_term: u64,
    pub raft_index: u64,
    pub raft_applied_index: u64,
    /// What the member complains about: no leader, alarms.
    pub errors: Vec<String>,
}

/// The members of a cluster, sorted by ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    pub cluster_id: u64,
    pub members: Vec<Member>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub id: u64,
    /// Empty until the member has started for the first time, unless it is a founder.
    pub name: String,
    pub peer_urls: Vec<String>,
    pub client_urls: Vec<String>,
    pub is_learner: bool,
}

impl Member {
    /// Has it ever started? A member publishes its client URLs when it joins. Its name tells nothing: that of a founder
    /// is known to the others from the beginning.
    pub fn has_started(&self) -> bool {
        !self.client_urls.is_empty()
    }
}

/// An alarm that stays until somebody disarms it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm {
    pub member_id: u64,
    pub kind: AlarmKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlarmKind {
    /// The storage quota is used up; the cluster takes no writes.
    NoSpace,
    /// The member's data differs from the others'.
    Corrupt,
    /// A kind that a newer etcd knows.
    Unknown(i32),
}

impl Status {
    /// `None` if the answer does not say who gave it.
    pub(crate) fn from_answer(answer: messages::StatusResponse) -> Option<Self> {
        let header = answer.header?;
        Some(Self {
            member_id: header.member_id,
            cluster_id: header.cluster_id,
            leader: answer.leader,
            is_learner: answer.is_learner,
            version: answer.version,
            storage_version: Some(answer.storage_version).filter(|v| !v.is_empty()),
            db_size: bytes(answer.db_size),
            db_size_in_use: bytes(answer.db_size_in_use),
            raft_term: answer.raft_term,
            raft_index: answer.raft_index,
            raft_applied_index: answer.raft_applied_index,
            errors: answer.errors,
        })
    }
}

impl Membership {
    /// `None` if the answer does not say which cluster it speaks of.
    pub(crate) fn from_answer(answer: messages::MemberListResponse) -> Option<Self> {
        let mut members: Vec<Member> = answer.members.into_iter().map(Member::from).collect();
        // etcd promises no order.
        members.sort_unstable_by_key(|m| m.id);
        Some(Self { cluster_id: answer.header?.cluster_id, members })
    }
}

impl From<messages::Member> for Member {
    fn from(m: messages::Member) -> Self {
        Self { id: m.id, name: m.name, peer_urls: m.peer_urls, client_urls: m.client_urls, is_learner: m.is_learner }
    }
}

impl From<messages::AlarmMember> for Alarm {
    fn from(alarm: messages::AlarmMember) -> Self {
        let kind = match alarm.alarm {
            1 => AlarmKind::NoSpace,
            2 => AlarmKind::Corrupt,
            other => AlarmKind::Unknown(other),
        };
        Self { member_id: alarm.member_id, kind }
    }
}

/// etcd sends sizes as signed numbers, and never a negative one.
fn bytes(size: i64) -> u64 {
    u64::try_from(size).unwrap_or(0)
}
