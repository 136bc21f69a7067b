//! What a plan consists of: steps to take now, and what keeps more from being done. Which steps are planned is decided
//! in [`plan`](super::plan) and the files below it; the operator carries them out, and the simulation.

use crate::ordinal::Ordinal;
use etcd_operator_api::WaitReason;

use crate::cluster::observed::{
    Alarm, Bootstrap, ClusterId, Defragmentation, ExpectedData, Identity, MemberId, Replacement,
};

/// Something to do. Every step is idempotent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Record how the cluster will be bootstrapped, before anything is started.
    RecordBootstrap(Bootstrap),
    /// Record that the cluster is bootstrapped. After that, nothing is bootstrapped again.
    RecordClusterId(ClusterId),
    CreatePeer {
        ordinal: Ordinal,
        initial: bool,
        model: Model,
    },
    /// Record the identity of the member in its EtcdPeer, and whether it was observed running.
    RecordMember {
        ordinal: Ordinal,
        identity: Identity,
        started: bool,
    },
    CreateClaim {
        ordinal: Ordinal,
        bootstrap: Option<Bootstrap>,
        identity: Option<Identity>,
    },
    /// Annotate the claim with the member whose data it holds and the version that can read it, so that this is known
    /// when nothing else is left.
    MarkClaim {
        ordinal: Ordinal,
        identity: Identity,
        version: Option<String>,
    },
    CreatePod {
        ordinal: Ordinal,
        start: Start,
    },
    /// Annotate a running pod with the data that it must find if it starts again, and whether it serves clients.
    AnnotatePod {
        ordinal: Ordinal,
        expected: ExpectedData,
        serves_clients: bool,
    },
    /// Drain clients from a pod that is about to be restarted.
    DrainPod {
        ordinal: Ordinal,
    },
    /// Delete an EtcdPeer and its pod, so that both are recreated from the spec. The volume stays.
    RecreatePeer {
        ordinal: Ordinal,
        why: String,
    },
    /// Give a running pod the labels and annotations in the spec.
    Relabel {
        ordinal: Ordinal,
    },
    /// Give a running pod the resources in the spec, and the labels and annotations.
    Resize {
        ordinal: Ordinal,
    },
    /// Request as much space as the spec does.
    GrowClaim {
        ordinal: Ordinal,
    },
    /// Record the version that members are created with from now on.
    AcceptVersion(String),
    /// Take a backup before an upgrade to another minor version.
    TakeBackup,
    /// Record that the members' logs hold no entries from before this version.
    RecordLogVersion(String),
    /// Have etcd make its data readable for an earlier version.
    EnableDowngrade(String),
    CancelDowngrade,
    DeletePod {
        ordinal: Ordinal,
        why: String,
    },
    /// Terminate a pod whose member does not answer, so that it starts again.
    RestartPod {
        ordinal: Ordinal,
        why: String,
    },
    /// Force-delete a pod whose node is down or does not terminate it: no kubelet would confirm that it stopped.
    FencePod {
        ordinal: Ordinal,
        why: String,
    },
    DeleteClaim {
        ordinal: Ordinal,
    },
    DeletePeer {
        ordinal: Ordinal,
    },
    AddLearner {
        ordinal: Ordinal,
    },
    Promote {
        ordinal: Ordinal,
        member_id: MemberId,
    },
    MoveLeader {
        from: Ordinal,
        to: Ordinal,
        to_id: MemberId,
    },
    /// Record in the EtcdPeer that a member is replaced, before it is.
    RecordReplacement {
        ordinal: Ordinal,
        replacement: Replacement,
    },
    RemoveMember {
        ordinal: Ordinal,
        member_id: MemberId,
        why: String,
    },
    /// Record in the EtcdPeer that a database is defragmented, before it is.
    RecordDefragmentation {
        ordinal: Ordinal,
        defragmentation: Defragmentation,
    },
    /// Free the unused space of a database. Its member does not serve meanwhile.
    Defragment {
        ordinal: Ordinal,
    },
    Disarm(Alarm),
}

impl Step {
    /// Whether the step removes something, or could do harm if it is based on stale data. Such a step is taken only if
    /// it is also planned from a live observation that bypasses all caches.
    pub fn needs_live_confirmation(&self) -> bool {
        match self {
            Step::RecordBootstrap(_)
            | Step::AcceptVersion(_)
            | Step::AddLearner { .. }
            | Step::RecreatePeer { .. }
            | Step::DeletePod { .. }
            | Step::RestartPod { .. }
            | Step::FencePod { .. }
            | Step::DeleteClaim { .. }
            | Step::DeletePeer { .. }
            | Step::RemoveMember { .. } => true,
            Step::RecordClusterId(_)
            | Step::CreatePeer { .. }
            | Step::RecordMember { .. }
            | Step::CreateClaim { .. }
            | Step::MarkClaim { .. }
            | Step::CreatePod { .. }
            | Step::AnnotatePod { .. }
            | Step::DrainPod { .. }
            | Step::Relabel { .. }
            | Step::Resize { .. }
            | Step::GrowClaim { .. }
            | Step::TakeBackup
            | Step::RecordLogVersion(_)
            | Step::EnableDowngrade(_)
            | Step::CancelDowngrade
            | Step::Promote { .. }
            | Step::MoveLeader { .. }
            | Step::RecordReplacement { .. }
            | Step::RecordDefragmentation { .. }
            | Step::Defragment { .. }
            | Step::Disarm(_) => false,
        }
    }

    /// The member that the step is about. `None` if it is about the whole cluster.
    pub fn ordinal(&self) -> Option<Ordinal> {
        match self {
            Step::RecordBootstrap(_)
            | Step::RecordClusterId(_)
            | Step::Disarm(_)
            | Step::AcceptVersion(_)
            | Step::TakeBackup
            | Step::RecordLogVersion(_)
            | Step::EnableDowngrade(_)
            | Step::CancelDowngrade => None,
            Step::CreatePeer { ordinal, .. }
            | Step::RecordMember { ordinal, .. }
            | Step::CreateClaim { ordinal, .. }
            | Step::MarkClaim { ordinal, .. }
            | Step::CreatePod { ordinal, .. }
            | Step::AnnotatePod { ordinal, .. }
            | Step::DrainPod { ordinal }
            | Step::RecreatePeer { ordinal, .. }
            | Step::Relabel { ordinal }
            | Step::Resize { ordinal }
            | Step::GrowClaim { ordinal }
            | Step::DeletePod { ordinal, .. }
            | Step::RestartPod { ordinal, .. }
            | Step::FencePod { ordinal, .. }
            | Step::DeleteClaim { ordinal }
            | Step::DeletePeer { ordinal }
            | Step::AddLearner { ordinal }
            | Step::Promote { ordinal, .. }
            | Step::MoveLeader { from: ordinal, .. }
            | Step::RecordReplacement { ordinal, .. }
            | Step::RemoveMember { ordinal, .. }
            | Step::RecordDefragmentation { ordinal, .. }
            | Step::Defragment { ordinal } => Some(*ordinal),
        }
    }

    /// Whether the step changes the members or the leader of the cluster.
    pub fn changes_membership(&self) -> bool {
        matches!(
            self,
            Step::AddLearner { .. } | Step::Promote { .. } | Step::MoveLeader { .. } | Step::RemoveMember { .. }
        )
    }

    /// Whether both steps do the same, for whatever reason.
    pub(crate) fn is_same_act(&self, other: &Step) -> bool {
        match (self, other) {
            (Step::DeletePod { ordinal, .. }, Step::DeletePod { ordinal: other, .. })
            | (Step::RecreatePeer { ordinal, .. }, Step::RecreatePeer { ordinal: other, .. })
            | (Step::RestartPod { ordinal, .. }, Step::RestartPod { ordinal: other, .. })
            | (Step::FencePod { ordinal, .. }, Step::FencePod { ordinal: other, .. }) => ordinal == other,
            (Step::RemoveMember { member_id, .. }, Step::RemoveMember { member_id: other, .. }) => member_id == other,
            _ => self == other,
        }
    }
}

/// What a new EtcdPeer is created from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Model {
    Spec,
    /// The spec, but with the version that was last found possible.
    SpecWithVersion(String),
    /// The EtcdPeer of another member, because the spec may not be rolled out yet.
    Member(Ordinal),
}

/// How a member starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The token if the member bootstraps the cluster together with the others; `None` if it joins an existing one.
    pub bootstrap_token: Option<String>,
    /// Name and peer URL of each current member. etcd ignores it if there is data.
    pub initial_cluster: Vec<(String, String)>,
    pub expected: ExpectedData,
    pub serves_clients: bool,
}

/// Why nothing more can be done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub reason: WaitReason,
    /// A sentence for the user.
    pub message: String,
}

impl Waiting {
    pub fn new(reason: WaitReason, message: impl Into<String>) -> Self {
        Waiting { reason, message: message.into() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub steps: Vec<Step>,
    pub waiting: Option<Waiting>,
}

impl Plan {
    pub fn steps(steps: Vec<Step>) -> Self {
        Plan { steps, waiting: None }
    }

    /// This plan, or another one if this has no steps and waits for nothing.
    pub fn or_else(self, other: impl FnOnce() -> Plan) -> Self {
        if self == Plan::default() { other() } else { self }
    }

    pub fn waiting(reason: WaitReason, message: impl Into<String>) -> Self {
        Plan { steps: Vec::new(), waiting: Some(Waiting::new(reason, message)) }
    }
}
