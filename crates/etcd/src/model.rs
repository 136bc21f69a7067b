//! What a member says, in plain types.

use std::fmt;

use crate::wire;

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
    /// The version that the cluster is being downgraded to, as `major.minor.0`. `None` if it is not, and before etcd
    /// 3.6, which does not say.
    pub downgrade_target: Option<String>,
    /// Bytes.
    pub db_size: u64,
    /// Bytes; the rest of `db_size` would be freed by a defragmentation. What a compaction removed is counted until the
    /// next write, so after [`AlarmKind::NoSpace`], when there are none, this can be far too high.
    pub db_size_in_use: u64,
    /// Bytes: the `db_size` at which the member raises [`AlarmKind::NoSpace`]. `None` if it has no quota, and before
    /// etcd 3.6, which does not say.
    pub db_size_quota: Option<u64>,
    /// The revision of the data, as far as this member has got. It begins at 1, and every change adds 1.
    pub revision: u64,
    pub raft_term: u64,
    pub raft_index: u64,
    pub raft_applied_index: u64,
    /// What the member complains about: no leader, alarms.
    pub errors: Vec<String>,
    /// The alarms among `errors`. All members know the alarms of all, so these need not be this member's own.
    pub alarms: Vec<Alarm>,
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
    /// Empty until the member has started for the first time, unless it is an initial member.
    pub name: String,
    pub peer_urls: Vec<String>,
    pub client_urls: Vec<String>,
    pub is_learner: bool,
}

impl Member {
    /// Has it ever started? A member publishes its client URLs when it joins. Its name tells nothing: that of an initial member
    /// is known to the others from the beginning.
    pub fn has_started(&self) -> bool {
        !self.client_urls.is_empty()
    }
}

/// An alarm that stays until somebody disarms it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// Who raised it or is blamed. 0 if etcd found that members differ but not which of them is wrong.
    pub member_id: u64,
    pub kind: AlarmKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlarmKind {
    /// The storage quota is used up; the cluster takes no writes.
    NoSpace,
    /// The member's data differs from the others'; the cluster takes no writes.
    Corrupt,
}

/// A hash of a member's data. Members whose data is the same have the same hash of the same revision, but only if
/// `compact_revision` is the same too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvHash {
    pub hash: u32,
    /// What was compacted away when the hash was made; 0 if nothing ever was. For a revision at which the member itself
    /// compacted, it remembers the hash that it made on the way, and this is the compaction before that one.
    pub compact_revision: u64,
    /// The revision that was hashed. From etcd 3.6 on, before that 0.
    pub hash_revision: u64,
}

impl Status {
    /// `None` if the answer does not say who gave it.
    pub(crate) fn from_answer(answer: wire::StatusResponse) -> Option<Self> {
        let downgrade_target = answer.downgrade_target().map(str::to_owned);
        let alarms = answer.errors.iter().filter_map(|e| Alarm::from_text(e)).collect();
        let header = answer.header?;
        Some(Self {
            member_id: header.member_id,
            cluster_id: header.cluster_id,
            leader: answer.leader,
            is_learner: answer.is_learner,
            version: answer.version,
            storage_version: Some(answer.storage_version).filter(|v| !v.is_empty()),
            downgrade_target,
            db_size: unsigned(answer.db_size),
            db_size_in_use: unsigned(answer.db_size_in_use),
            // A member whose quota is switched off says -1.
            db_size_quota: Some(unsigned(answer.db_size_quota)).filter(|quota| *quota > 0),
            revision: unsigned(header.revision),
            raft_term: answer.raft_term,
            raft_index: answer.raft_index,
            raft_applied_index: answer.raft_applied_index,
            errors: answer.errors,
            alarms,
        })
    }
}

impl Membership {
    /// `None` if the answer does not say which cluster it speaks of.
    pub(crate) fn from_answer(answer: wire::MemberListResponse) -> Option<Self> {
        let mut members: Vec<Member> = answer.members.into_iter().map(Member::from).collect();
        // etcd promises no order.
        members.sort_unstable_by_key(|m| m.id);
        Some(Self { cluster_id: answer.header?.cluster_id, members })
    }
}

impl From<wire::Member> for Member {
    fn from(m: wire::Member) -> Self {
        Self { id: m.id, name: m.name, peer_urls: m.peer_urls, client_urls: m.client_urls, is_learner: m.is_learner }
    }
}

impl Alarm {
    /// Reads an entry of [`Status::errors`], like `memberID:10276657743932975437 alarm:NOSPACE `. That is protobuf's text
    /// format, which leaves out a member ID of 0 and promises nothing about blanks: etcd 3.7 puts them elsewhere than
    /// 3.6. What is not understood completely is no alarm.
    fn from_text(text: &str) -> Option<Self> {
        let mut member_id = 0;
        let mut kind = None;
        for field in text.split_whitespace() {
            match field.split_once(':')? {
                ("memberID", id) => member_id = id.parse().ok()?,
                ("alarm", "NOSPACE") => kind = Some(AlarmKind::NoSpace),
                ("alarm", "CORRUPT") => kind = Some(AlarmKind::Corrupt),
                _ => return None,
            }
        }
        Some(Self { member_id, kind: kind? })
    }
}

impl fmt::Display for AlarmKind {
    /// As etcd calls it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSpace => "NOSPACE",
            Self::Corrupt => "CORRUPT",
        })
    }
}

impl From<wire::HashKvResponse> for KvHash {
    fn from(answer: wire::HashKvResponse) -> Self {
        Self {
            hash: answer.hash,
            compact_revision: unsigned(answer.compact_revision),
            hash_revision: unsigned(answer.hash_revision),
        }
    }
}

/// etcd sends sizes and revisions as signed numbers. A negative one stands for "none".
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_are_parsed_in_the_format_of_each_etcd() {
        let no_space = Some(Alarm { member_id: 10276657743932975437, kind: AlarmKind::NoSpace });
        // 3.5 and 3.6, then 3.7.
        assert_eq!(Alarm::from_text("memberID:10276657743932975437 alarm:NOSPACE "), no_space);
        assert_eq!(Alarm::from_text("memberID:10276657743932975437  alarm:NOSPACE"), no_space);
        let corrupt = Some(Alarm { member_id: 0, kind: AlarmKind::Corrupt });
        assert_eq!(Alarm::from_text("alarm:CORRUPT "), corrupt);
        assert_eq!(Alarm::from_text("alarm:CORRUPT"), corrupt);
    }

    #[test]
    fn status_errors_other_than_alarms_are_ignored() {
        for text in [
            "",
            "etcdserver: no leader",
            "memberID:7",
            "memberID:7 alarm:SOMETHING",
            "memberID:7 alarm:3 ",
            "memberID:-7 alarm:NOSPACE ",
            "memberID:7 alarm:NOSPACE more:1 ",
            "there is an alarm:NOSPACE",
        ] {
            assert_eq!(Alarm::from_text(text), None, "{text:?}");
        }
    }
}
