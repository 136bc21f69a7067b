//! What etcd itself reports about a cluster.

use std::collections::{BTreeMap, BTreeSet};

use etcd_operator_protocol::gate::Identity;
use etcd_operator_protocol::ids::{ClusterId, MemberId};
use semver::Version;

use crate::ordinal::Ordinal;

/// What etcd itself reports.
#[derive(Clone, Debug, Default)]
pub struct Etcd {
    /// The response of each member that was queried, or why there was none.
    pub answers: BTreeMap<Ordinal, Result<Answer, NoAnswer>>,
    /// The membership as a quorum knows it. `None` only ever means that no quorum could be queried.
    pub membership: Option<Membership>,
    /// The membership as a member without a quorum knows it. Good enough to report, not to act on.
    pub local_membership: Option<Membership>,
    /// The cluster version that the members agreed on, as etcd reports it, or last reported it while it can't be
    /// queried.
    pub cluster_version: Option<Version>,
    /// The target of a downgrade that is in progress.
    pub downgrade: Option<Version>,
    pub alarms: BTreeSet<Alarm>,
    /// The revision up to which history was compacted. Queried only when space is short.
    pub compacted: Option<i64>,
}

/// An alarm of etcd, raised when it can't continue by itself. It stays until a client disarms it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alarm {
    pub member_id: MemberId,
    pub kind: AlarmKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlarmKind {
    /// A database has reached its quota; etcd refuses writes.
    NoSpace,
    /// A member's data differs from that of the others.
    Corrupt,
}

/// Why a member that was queried did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoAnswer(pub String);

/// What a member reports about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub identity: Identity,
    /// The leader, as this member sees it.
    pub leader: Option<MemberId>,
    pub learner: bool,
    /// The version of etcd that it runs, unless it reports none that can be understood.
    pub version: Option<Version>,
    /// The version whose binaries could read its data, if it reports one.
    pub storage_version: Option<Version>,
    /// The size of its database, in bytes, and how much of that is in use.
    pub db_size: i64,
    pub db_in_use: i64,
    /// Whether it answered a linearizable read, which needs a quorum. A learner can't.
    pub reads: bool,
}

/// The members of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    pub cluster_id: ClusterId,
    pub members: Vec<Member>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub id: MemberId,
    /// The ordinal from its name or its peer URL. `None` if this operator did not create it.
    pub ordinal: Option<Ordinal>,
    pub peer_url: String,
    /// Whether it has ever connected to the others.
    pub started: bool,
    pub learner: bool,
}

impl Membership {
    pub fn member(&self, id: MemberId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.learner)
    }

    pub fn learner(&self) -> Option<&Member> {
        self.members.iter().find(|member| member.learner)
    }
}
