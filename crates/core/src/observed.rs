//! What was observed of a cluster before anything is decided: plain data, free of Kubernetes and of etcd's protocol.

use std::collections::{BTreeMap, BTreeSet};

use etcd_operator_api::format_id;

use crate::names::ClusterNames;
use crate::spec_diff::SpecDiff;

/// Everything that decisions are made from. Maps go by ordinal, the number at the end of a member's name. Moments are
/// seconds since 1970, and lengths of time are seconds.
#[derive(Clone, Debug)]
pub struct Observed {
    pub names: ClusterNames,
    /// The UID of the EtcdCluster, which no other object ever had or will have.
    pub uid: String,
    /// How many members the user wants.
    pub replicas: u32,
    /// Whether members keep their data in claims; if not, it goes with their pods.
    pub durable: bool,
    /// Whether the cluster begins with the data of a backup.
    pub restores: bool,
    /// Whether the EtcdCluster is being deleted.
    pub deleting: bool,
    /// Where it is written that nothing may be done, if it is.
    pub paused: Option<String>,
    pub now: i64,
    /// After how long a member that is out of reach is replaced. `None`: never.
    pub replace_after: Option<i64>,
    /// Whether databases are defragmented.
    pub defragments: bool,
    /// How large a database may become, in bytes.
    pub quota: i64,
    /// What was recorded about the bootstrap of the cluster, before it.
    pub bootstrap: Option<Bootstrap>,
    /// The ID that etcd gave the cluster. From the moment that it is recorded, nothing is ever bootstrapped again.
    pub cluster_id: Option<u64>,
    pub versions: Versions,
    /// What became of the backup that is to be taken before another minor version.
    pub backup_first: BackupFirst,
    /// What differs between the spec and what members were made from, for those that were made from something else.
    pub outdated: BTreeMap<u32, SpecDiff>,
    /// Whether this cluster may restart members now: not all clusters do so at the same time.
    pub has_rollout_slot: bool,
    /// Whether members may be replaced for the sake of their volumes.
    pub migrates: bool,
    pub peers: BTreeMap<u32, Peer>,
    pub pods: BTreeMap<u32, Pod>,
    pub claims: BTreeMap<u32, Claim>,
    /// What each member that was asked answered, or why it didn't.
    pub answers: BTreeMap<u32, Result<Answer, String>>,
    /// The membership as a quorum knows it. `None` means that no quorum could be asked, and nothing else.
    pub membership: Option<Membership>,
    /// Who belongs to the cluster as far as a member knows that answers without a quorum. Good enough to tell, not to act.
    pub local_membership: Option<Membership>,
    /// Since when members that were not well at the last look were not, by ID, as it was reported.
    pub unhealthy_since: BTreeMap<u64, i64>,
    /// The same as far as this process has seen it itself, while a quorum answered and nothing was paused.
    pub observed_unhealthy_since: BTreeMap<u64, i64>,
    pub alarms: BTreeSet<Alarm>,
    /// The revision up to which history was compacted. It is asked for only when space is short.
    pub compacted: Option<i64>,
    /// The members whose data differs from that which a majority agrees on, by ID.
    pub differing: BTreeSet<u64>,
}

/// What is known about versions of etcd, as they are written: `3.6.16`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// What the user asks for.
    pub wanted: String,
    /// What was last found possible: new members are made with it.
    pub accepted: Option<String>,
    /// What the members have agreed on, as etcd says; as it said last, while it can't be asked.
    pub cluster: Option<String>,
    /// What is noted on the members' volumes: the latest of which there is data.
    pub noted: Option<String>,
    /// Where a downgrade that was begun leads.
    pub downgrade: Option<String>,
    /// The earliest one of which entries may be left in the members' logs, if it is known.
    pub oldest_log: Option<String>,
    /// The flags that the user asks for, without leading dashes.
    pub flags: Vec<String>,
}

impl Versions {
    /// Whether what the user asks for was found possible.
    pub fn is_accepted(&self) -> bool {
        self.accepted.as_ref() == Some(&self.wanted)
    }
}

/// What etcd raises when it can't go on by itself. It stays until somebody disarms it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alarm {
    pub member_id: u64,
    pub kind: AlarmKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlarmKind {
    /// A database has reached its quota; nothing is written any more.
    NoSpace,
    /// A member's data is not that of the others.
    Corrupt,
}

/// How a cluster is brought into being: by members that all know this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    pub token: String,
    pub size: u32,
}

/// Who a member is. An emptied member never comes back under the same identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub member_id: u64,
    pub cluster_id: u64,
}

/// An EtcdPeer.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    pub identity: Option<Identity>,
    /// Whether the member was ever seen running under that identity, so that its data must be there.
    pub started: bool,
    pub deleting: bool,
    /// The version of etcd that it asks for.
    pub version: String,
    /// Whether its member was ever seen to answer, so that what it was made from is known to work.
    pub proven: bool,
    /// The last time that a member of this name was given up.
    pub replacement: Option<Replacement>,
    pub defragmented: Option<Defragmentation>,
}

/// The last time that a database was defragmented, and the revision up to which its history was compacted by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defragmentation {
    pub at: i64,
    pub compacted: Option<i64>,
}

/// The giving up of a member for a new one of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The member that was given up.
    pub member_id: u64,
    pub at: i64,
    /// How often members of this name were given up in close succession.
    pub count: u32,
    pub why: String,
}

/// A node, as far as it matters for what is on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Since when Kubernetes has not heard of it, or it is gone.
    pub down_since: Option<i64>,
    /// Whether somebody vouches that nothing runs on it any more (the taint `node.kubernetes.io/out-of-service`).
    pub fenced: bool,
}

/// What became of the backup that is to be taken before the cluster is brought to another minor version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BackupFirst {
    /// None is asked for.
    #[default]
    NotAsked,
    /// It is asked for, and nothing says where to.
    Nowhere,
    /// The EtcdBackupSchedule of this name asks for it, but can't be understood.
    InvalidSchedule {
        name: String,
        why: String,
    },
    /// It has not been begun.
    ToTake,
    /// The EtcdBackup of this name is being taken.
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
    /// It ran to an end (it was evicted, say) and will never run again.
    pub finished: bool,
    /// What data the pod expects, as it was annotated when it was made or since.
    pub expected: Option<ExpectedData>,
    /// Whether the client Service sends clients to it.
    pub serves_clients: bool,
    /// Since when clients are sent elsewhere because it is going to be restarted.
    pub leaving_since: Option<i64>,
    pub created: i64,
    /// Since when it should have stopped, if it is being deleted.
    pub deleting_since: Option<i64>,
    /// Whether any of its containers was ever started.
    pub began: bool,
    /// Whether it is busy with fetching or restoring a backup.
    pub restoring: bool,
    /// Whether its node finds that it is well.
    pub ready: bool,
    /// The node that it was given to.
    pub node: Option<Node>,
    pub problem: Option<Problem>,
}

/// What keeps a pod from running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub kind: ProblemKind,
    /// In the words of whoever knows.
    pub message: String,
    /// When it was last found, if that is known.
    pub at: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// The gate did not find the member's data.
    DataLost,
    /// No node takes it.
    NoNode,
    /// Its image or something else that it is made of is missing.
    NoImage,
    Other,
}

/// The data that a pod expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedData {
    pub data: DataState,
    pub identity: Option<Identity>,
}

/// Whether a member's data must be there when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataState {
    /// It starts for the first time: there is none, or it is somebody's that was here before.
    New,
    /// It ran before: without its data it must not start.
    Existing,
}

/// The claim of a member.
#[derive(Clone, Debug, Default)]
pub struct Claim {
    pub deleting: bool,
    /// The bootstrap that it was made for.
    pub bootstrap: Option<Bootstrap>,
    /// The member whose data it holds.
    pub identity: Option<Identity>,
    /// The version of etcd whose minor can read the data, and no earlier one.
    pub version: Option<String>,
    /// The node that its volume is bound to, if it is bound to one. It is looked at only if no node takes the pod.
    pub node: Option<Node>,
    /// How large its volume is, as Kubernetes writes it.
    pub size: Option<String>,
    /// Whether it asks for less space than the spec does.
    pub too_small: bool,
    /// Why it can't be made larger, if that was looked at and it can't.
    pub cannot_grow: Option<String>,
    /// How it differs from what the spec asks for in a way that a volume can't follow.
    pub misfit: Option<String>,
}

/// What a member says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub identity: Identity,
    /// The member that it takes for the leader.
    pub leader: Option<u64>,
    pub learner: bool,
    pub version: String,
    /// The version whose programs could read its data, if it says so.
    pub storage_version: Option<String>,
    /// How large its database is, in bytes, and how much of that is used.
    pub db_size: i64,
    pub db_in_use: i64,
    /// Whether it answered a read that needs a quorum. A learner can't.
    pub reads: bool,
}

/// Who belongs to the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    pub cluster_id: u64,
    pub members: Vec<Member>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub id: u64,
    /// The ordinal in its name or its address. None if it is no member that we made.
    pub ordinal: Option<u32>,
    pub peer_url: String,
    /// Whether it has ever connected to the others.
    pub started: bool,
    pub learner: bool,
}

impl Observed {
    pub fn member(&self, ordinal: u32) -> Option<&Member> {
        self.membership.as_ref()?.members.iter().find(|member| member.ordinal == Some(ordinal))
    }

    /// The name of a member; its ID if it is none that we made.
    pub fn name_of(&self, member: &Member) -> String {
        member.ordinal.map_or_else(|| format_id(member.id), |ordinal| self.names.member_name(ordinal))
    }

    /// Whether a member answers as it should: a voter with a read that needs a quorum, a learner at all.
    pub fn is_healthy(&self, member: &Member) -> bool {
        self.answer_of(member)
            .is_some_and(|answer| answer.identity.member_id == member.id && (member.learner || answer.reads))
    }

    /// What whoever runs under a member's name answered, if anybody did.
    pub fn answer_of(&self, member: &Member) -> Option<&Answer> {
        self.answers.get(&member.ordinal?)?.as_ref().ok()
    }

    /// Whether whoever runs under this ordinal answers at all.
    pub fn is_reached(&self, ordinal: u32) -> bool {
        matches!(self.answers.get(&ordinal), Some(Ok(_)))
    }

    /// Whether a member's data is known to be wrong: a majority says so. An alarm alone does not prove it, because etcd
    /// blames whoever differs from the leader.
    pub fn is_corrupt(&self, member: &Member) -> bool {
        self.differing.contains(&member.id)
    }

    /// The member that most others take for the leader.
    pub fn leader(&self) -> Option<u64> {
        let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
        for answer in self.answers.values().flatten() {
            if let Some(leader) = answer.leader {
                *votes.entry(leader).or_default() += 1;
            }
        }
        votes.into_iter().max_by_key(|(_, count)| *count).map(|(leader, _)| leader)
    }
}

impl Membership {
    pub fn member(&self, id: u64) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.learner)
    }

    pub fn learner(&self) -> Option<&Member> {
        self.members.iter().find(|member| member.learner)
    }
}
