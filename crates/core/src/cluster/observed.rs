//! The observed state of a cluster, from which everything is decided: plain data, free of Kubernetes and of etcd's
//! protocol.

use std::collections::{BTreeMap, BTreeSet};

pub use etcd_operator_protocol::gate::{DataState, ExpectedData, Identity};
pub use etcd_operator_protocol::ids::{ClusterId, MemberId};
use jiff::{SignedDuration, Timestamp};
use semver::Version;

use crate::cluster::spec_diff::SpecDiff;
use crate::names::ClusterNames;
use crate::ordinal::Ordinal;

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

/// What exists in Kubernetes.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    pub peers: BTreeMap<Ordinal, Peer>,
    pub pods: BTreeMap<Ordinal, Pod>,
    pub claims: BTreeMap<Ordinal, Claim>,
    /// How the spec differs from what a member was created from, for every member that is outdated.
    pub outdated: BTreeMap<Ordinal, SpecDiff>,
    /// The quota of a database that the members were created with, in bytes.
    pub quota: i64,
    /// The state of the backup that precedes an upgrade to another minor version.
    pub backup_first: BackupFirst,
    pub shared: SharedObjects,
}

/// The objects that every cluster has beside those of its members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedObjects {
    /// The Services that are as this process applied them: none that is missing, or that another client has changed since.
    pub services: BTreeSet<ServiceKind>,
    /// How many voters the PodDisruptionBudget keeps available, if there is one.
    pub min_available: Option<usize>,
    /// Whether the PodDisruptionBudget is as this process applied it.
    pub budget_is_as_applied: bool,
}

/// A Service of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServiceKind {
    /// The headless one, by which members and `etcdctl --discovery-srv` find each member.
    Peers,
    /// The one that clients connect to.
    Clients,
}

impl ServiceKind {
    pub const ALL: [ServiceKind; 2] = [ServiceKind::Peers, ServiceKind::Clients];
}

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

/// How a cluster is bootstrapped. All initial members share this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    pub token: String,
    pub size: u32,
}

/// An EtcdPeer.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    pub identity: Option<Identity>,
    /// Whether the member was ever observed running under that identity, so that its data must exist.
    pub started: bool,
    pub deleting: bool,
    /// The version of etcd in its spec.
    pub version: Option<Version>,
    /// Whether its member ever answered, so that what it was created from is known to work.
    pub proven: bool,
    /// The last time that a member of this name was replaced.
    pub replacement: Option<Replacement>,
    pub defragmented: Option<Defragmentation>,
}

/// The last defragmentation of a database, and the revision up to which its history was compacted by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defragmentation {
    pub at: Timestamp,
    pub compacted: Option<i64>,
}

/// The replacement of a member by a new one of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The member that was replaced.
    pub member_id: MemberId,
    pub at: Timestamp,
    /// How often members of this name were replaced in close succession.
    pub count: u32,
    pub why: String,
}

/// A node, as far as it matters for the pods and volumes on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Since when it has not reported to Kubernetes, or it is gone.
    pub down_since: Option<Timestamp>,
    /// Whether an administrator confirms that nothing runs on it any more (the taint
    /// `node.kubernetes.io/out-of-service`).
    pub fenced: bool,
}

/// The state of the backup that precedes an upgrade to another minor version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BackupFirst {
    /// No backup is required.
    #[default]
    NotRequired,
    /// A backup is required, but no schedule says where it goes.
    NoSchedule,
    /// The EtcdBackupSchedule of this name requires it, but is invalid.
    InvalidSchedule {
        name: String,
        why: String,
    },
    /// The backup has not been started.
    ToTake,
    /// The EtcdBackup of this name is running.
    Running(String),
    Failed {
        name: String,
        message: String,
    },
    Taken,
}

/// The pod of a member.
#[derive(Clone, Debug, Default)]
pub struct Pod {
    pub deleting: bool,
    /// It has terminated (it was evicted, say) and will never run again.
    pub finished: bool,
    /// The data that the pod expects, as annotated when it was created or since.
    pub expected: Option<ExpectedData>,
    /// Whether the client Service routes clients to it.
    pub serves_clients: bool,
    /// Since when clients are drained from it because it is about to be restarted.
    pub leaving_since: Option<Timestamp>,
    pub created: Timestamp,
    /// When it should have terminated, if it is being deleted.
    pub deleting_since: Option<Timestamp>,
    /// Whether any of its containers was ever started.
    pub began: bool,
    /// Whether it is fetching or restoring a backup.
    pub restoring: bool,
    /// Whether the kubelet reports it ready.
    pub ready: bool,
    /// The node that it is scheduled to.
    pub node: Option<Node>,
    pub problem: Option<Problem>,
}

/// What keeps a pod from running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub kind: ProblemKind,
    /// As reported by Kubernetes or by the gate.
    pub message: String,
    /// When it was last observed, if known.
    pub at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// The gate did not find the member's data.
    DataLost,
    /// It can't be scheduled.
    NoNode,
    /// Its image, or something else that it needs, is missing.
    NoImage,
    Other,
}

/// The claim of a member.
#[derive(Clone, Debug, Default)]
pub struct Claim {
    pub deleting: bool,
    /// The bootstrap that it was created for.
    pub bootstrap: Option<Bootstrap>,
    /// The member whose data it holds.
    pub identity: Option<Identity>,
    /// The version of etcd whose minor is the earliest that can read the data.
    pub version: Option<Version>,
    /// The node that its volume is bound to, if any. Observed only if the pod can't be scheduled.
    pub node: Option<Node>,
    /// Whether it lacks a label or an owner that it should have, or has another one.
    pub strayed: bool,
    /// The size of its volume, as Kubernetes writes it.
    pub size: Option<String>,
    /// Whether it requests less space than the spec.
    pub too_small: bool,
    /// Why it can't be expanded, if that was checked and it can't.
    pub cannot_grow: Option<String>,
    /// How it differs from the spec in a way that an existing volume can't follow.
    pub misfit: Option<String>,
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
        for answer in self.etcd.answers.values().flatten() {
            if let Some(leader) = answer.leader {
                *votes.entry(leader).or_default() += 1;
            }
        }
        votes.into_iter().max_by_key(|(_, count)| *count).map(|(leader, _)| leader)
    }
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
