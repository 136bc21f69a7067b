//! What exists in Kubernetes of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use etcd_operator_protocol::gate::{ExpectedData, Identity};
use etcd_operator_protocol::ids::MemberId;
use jiff::Timestamp;
use semver::Version;

use crate::cluster::spec_diff::SpecDiff;
use crate::ordinal::Ordinal;

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
