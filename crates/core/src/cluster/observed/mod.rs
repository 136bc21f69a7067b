//! The observed state of a cluster, from which everything is decided: plain data, free of Kubernetes and of etcd's
//! protocol.

mod etcd;
mod objects;

use std::collections::{BTreeMap, BTreeSet};

pub use etcd_operator_protocol::gate::{DataState, ExpectedData, Identity};
pub use etcd_operator_protocol::ids::{ClusterId, MemberId};
use jiff::{SignedDuration, Timestamp};
use semver::Version;

use crate::names::ClusterNames;
use crate::ordinal::Ordinal;

pub use self::etcd::{Alarm, AlarmKind, Answer, Etcd, Member, Membership, NoAnswer};
pub use self::objects::{
    BackupFirst, Bootstrap, Claim, Defragmentation, Node, Objects, Peer, Pod, Problem, ProblemKind, Replacement,
    ServiceKind, SharedObjects,
};

/// The input of every decision, by where it comes from. Maps are keyed by ordinal.
#[derive(Clone, Debug)]
pub struct Observed {
    pub names: ClusterNames,
    /// The UID of the EtcdCluster. No other object ever had it or will have it.
    pub uid: String,
    pub now: Timestamp,
    pub wanted: Wanted,
    pub recorded: Recorded,
    pub objects: Objects,
    pub etcd: Etcd,
    pub remembered: Remembered,
}

/// What the user asks for, in the EtcdCluster.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The desired number of members.
    pub replicas: u32,
    /// Whether members keep their data in claims. If not, the data is lost with the pod.
    pub durable: bool,
    /// Whether the cluster is bootstrapped from a backup.
    pub restores: bool,
    /// Whether the EtcdCluster is being deleted.
    pub deleting: bool,
    /// Where the cluster is marked as paused, if it is. Nothing is changed while it is.
    pub paused: Option<String>,
    /// How long a member may be unreachable before it is replaced. `None`: forever.
    pub replace_after: Option<SignedDuration>,
    /// Whether databases are defragmented.
    pub defragments: bool,
    /// Whether members may be replaced to move them to other volumes.
    pub migrates: bool,
    /// The desired version of etcd. `None` if what is asked for is no version.
    pub version: Option<Version>,
    /// The flags in the spec, without leading dashes.
    pub flags: Vec<String>,
}

/// What the operator has recorded in the status of the EtcdCluster.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// How the cluster is bootstrapped, recorded before it was.
    pub bootstrap: Option<Bootstrap>,
    /// The ID that etcd gave the cluster. Once it is recorded, nothing is ever bootstrapped again.
    pub cluster_id: Option<ClusterId>,
    /// The desired version that was last found possible. New members are created with it.
    pub version: Option<Version>,
    /// The number of voters in the last status.
    pub voters: usize,
    /// The earliest version whose entries may remain in the members' logs, if known.
    pub oldest_log: Option<Version>,
    /// Since when each unhealthy member has been unhealthy according to the last status, by ID.
    pub unhealthy_since: BTreeMap<MemberId, Timestamp>,
}

/// What only this process knows, from earlier observations of this cluster and of others.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// Since when each unhealthy member was observed to be unhealthy, by ID, while a quorum answered and the cluster was
    /// not paused.
    pub unhealthy_since: BTreeMap<MemberId, Timestamp>,
    /// The members whose data differs from that of a majority, by ID.
    pub differing: BTreeSet<MemberId>,
    /// Whether this cluster may restart members now: the number of concurrent rollouts is limited.
    pub has_rollout_slot: bool,
}

impl Observed {
    /// Whether the desired version was found possible.
    pub fn is_version_accepted(&self) -> bool {
        self.wanted.version.is_some() && self.recorded.version == self.wanted.version
    }

    /// The latest version of the data that is annotated on the claims: all that is left of a cluster that was deleted.
    pub fn noted_version(&self) -> Option<Version> {
        self.objects.claims.values().filter_map(|claim| claim.version.clone()).max()
    }

    /// How long ago something was.
    pub fn elapsed_since(&self, at: Timestamp) -> SignedDuration {
        self.now.duration_since(at)
    }

    /// Whether the spec asks for a member of this ordinal.
    pub fn is_desired(&self, ordinal: Ordinal) -> bool {
        ordinal.is_among_first(self.wanted.replicas)
    }

    pub fn member(&self, ordinal: Ordinal) -> Option<&Member> {
        self.etcd.membership.as_ref()?.members.iter().find(|member| member.ordinal == Some(ordinal))
    }

    /// The name of a member, or its ID if this operator did not create it.
    pub fn name_of(&self, member: &Member) -> String {
        member.ordinal.map_or_else(|| member.id.to_string(), |ordinal| self.names.member_name(ordinal))
    }

    /// Whether a member answers as it should: a voter must answer a linearizable read, a learner any request.
    pub fn is_healthy(&self, member: &Member) -> bool {
        self.answer_of(member)
            .is_some_and(|answer| answer.identity.member_id == member.id && (member.learner || answer.reads))
    }

    /// The response of the process that runs under a member's name, if there is one.
    pub fn answer_of(&self, member: &Member) -> Option<&Answer> {
        self.etcd.answers.get(&member.ordinal?)?.as_ref().ok()
    }

    /// Whether the process that runs under this ordinal answers at all.
    pub fn is_reached(&self, ordinal: Ordinal) -> bool {
        matches!(self.etcd.answers.get(&ordinal), Some(Ok(_)))
    }

    /// Whether a member's pod is terminating.
    pub fn is_stopping(&self, member: &Member) -> bool {
        member.ordinal.and_then(|ordinal| self.objects.pods.get(&ordinal)).is_some_and(|pod| pod.deleting)
    }

    /// Whether a member's data is known to be wrong, because it differs from that of a majority. An alarm alone is no
    /// proof: etcd blames the member that differs from the leader.
    pub fn is_corrupt(&self, member: &Member) -> bool {
        self.remembered.differing.contains(&member.id)
    }

    /// The member that most others see as the leader.
    pub fn leader(&self) -> Option<MemberId> {
        let mut votes: BTreeMap<MemberId, usize> = BTreeMap::new();
        // Another cluster may answer at the address of a member.
        let is_ours = |it: &&Answer| self.recorded.cluster_id.is_none_or(|ours| it.identity.cluster_id == ours);
        for answer in self.etcd.answers.values().flatten().filter(is_ours) {
            if let Some(leader) = answer.leader {
                *votes.entry(leader).or_default() += 1;
            }
        }
        votes.into_iter().max_by_key(|(_, count)| *count).map(|(leader, _)| leader)
    }
}
