//! What a plan consists of: steps to take now, and what keeps more from being done. Which steps are planned is decided
//! in [`plan`](super::plan) and the files below it; the operator carries them out, and the simulation.

use etcd_operator_api::WaitReason;
use semver::Version;

use crate::cluster::observed::{
    Alarm, Bootstrap, ClusterId, Defragmentation, ExpectedData, Identity, MemberId, Replacement, ServiceKind,
};
use crate::ordinal::Ordinal;

/// Something to do. Every step is idempotent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Cluster(ClusterStep),
    Member(Ordinal, MemberStep),
}

/// A step about the cluster as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterStep {
    /// Record how the cluster will be bootstrapped, before anything is started.
    RecordBootstrap(Bootstrap),
    /// Record that the cluster is bootstrapped. After that, nothing is bootstrapped again.
    RecordClusterId(ClusterId),
    /// Record the version that members are created with from now on.
    AcceptVersion(Version),
    /// Take a backup before an upgrade to another minor version.
    TakeBackup,
    /// Record that the members' logs hold no entries from before this version.
    RecordLogVersion(Version),
    /// Have etcd make its data readable for an earlier version.
    EnableDowngrade(Version),
    CancelDowngrade,
    Disarm(Alarm),
    /// Create a Service, or make it what it should be again.
    ApplyService(ServiceKind),
    ApplyDisruptionBudget {
        min_available: usize,
    },
}

/// A step about one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberStep {
    CreatePeer {
        initial: bool,
        model: Model,
    },
    /// Record the identity of the member in its EtcdPeer, and whether it was observed running.
    RecordMember {
        identity: Identity,
        started: bool,
    },
    CreateClaim {
        bootstrap: Option<Bootstrap>,
        identity: Option<Identity>,
    },
    /// Annotate the claim with the member whose data it holds and the version that can read it, so that this is known
    /// when nothing else is left.
    MarkClaim {
        identity: Identity,
        version: Option<Version>,
    },
    /// Give a claim back its labels and owners. Without the labels it is in no cache, and its data would count as lost.
    RepairClaim,
    CreatePod {
        start: Start,
    },
    /// Annotate a running pod with the data that it must find if it starts again, and whether it serves clients.
    AnnotatePod {
        expected: ExpectedData,
        serves_clients: bool,
    },
    /// Drain clients from a pod that is about to be restarted.
    DrainPod,
    /// Delete an EtcdPeer and its pod, so that both are recreated from the spec. The volume stays.
    RecreatePeer {
        why: String,
    },
    /// Give a running pod the labels and annotations in the spec.
    Relabel,
    /// Give a running pod the resources in the spec, and the labels and annotations.
    Resize,
    /// Request as much space as the spec does.
    GrowClaim,
    DeletePod {
        why: String,
    },
    /// Terminate a pod whose member does not answer, so that it starts again.
    RestartPod {
        why: String,
    },
    /// Force-delete a pod whose node is down or does not terminate it: no kubelet would confirm that it stopped.
    FencePod {
        why: String,
    },
    DeleteClaim,
    DeletePeer,
    AddLearner,
    Promote {
        member_id: MemberId,
    },
    /// Move the leadership from this member to another one.
    MoveLeader {
        to: Ordinal,
        to_id: MemberId,
    },
    /// Record in the EtcdPeer that a member is replaced, before it is.
    RecordReplacement {
        replacement: Replacement,
    },
    RemoveMember {
        member_id: MemberId,
        why: String,
    },
    /// Record in the EtcdPeer that a database is defragmented, before it is.
    RecordDefragmentation {
        defragmentation: Defragmentation,
    },
    /// Free the unused space of a database. Its member does not serve meanwhile.
    Defragment,
}

impl Step {
    /// Whether the step removes something, or could do harm if it is based on stale data. Such a step is taken only if
    /// it is also planned from a live observation that bypasses all caches.
    pub fn needs_live_confirmation(&self) -> bool {
        match self {
            Step::Cluster(step) => match step {
                ClusterStep::RecordBootstrap(_)
                // Volumes of another cluster may not be in the cache yet.
                | ClusterStep::RecordClusterId(_)
                | ClusterStep::AcceptVersion(_) => true,
                ClusterStep::TakeBackup
                | ClusterStep::RecordLogVersion(_)
                | ClusterStep::EnableDowngrade(_)
                | ClusterStep::CancelDowngrade
                | ClusterStep::Disarm(_)
                | ClusterStep::ApplyService(_)
                | ClusterStep::ApplyDisruptionBudget { .. } => false,
            },
            Step::Member(_, step) => match step {
                MemberStep::AddLearner
                | MemberStep::RecreatePeer { .. }
                | MemberStep::DeletePod { .. }
                | MemberStep::RestartPod { .. }
                | MemberStep::FencePod { .. }
                | MemberStep::DeleteClaim
                | MemberStep::DeletePeer
                | MemberStep::RemoveMember { .. } => true,
                MemberStep::CreatePeer { .. }
                | MemberStep::RecordMember { .. }
                | MemberStep::CreateClaim { .. }
                | MemberStep::MarkClaim { .. }
                | MemberStep::RepairClaim
                | MemberStep::CreatePod { .. }
                | MemberStep::AnnotatePod { .. }
                | MemberStep::DrainPod
                | MemberStep::Relabel
                | MemberStep::Resize
                | MemberStep::GrowClaim
                | MemberStep::Promote { .. }
                | MemberStep::MoveLeader { .. }
                | MemberStep::RecordReplacement { .. }
                | MemberStep::RecordDefragmentation { .. }
                | MemberStep::Defragment => false,
            },
        }
    }

    /// The member that the step is about. `None` if it is about the whole cluster.
    pub fn ordinal(&self) -> Option<Ordinal> {
        match self {
            Step::Cluster(_) => None,
            Step::Member(ordinal, _) => Some(*ordinal),
        }
    }

    /// What is not done any more if the step fails: a failure for one member does not block the others.
    pub fn blocked_by_failure(&self) -> Blocked {
        match self {
            Step::Cluster(ClusterStep::ApplyService(_) | ClusterStep::ApplyDisruptionBudget { .. })
            // A policy may refuse a label or an owner; the member needs its pod all the same.
            | Step::Member(_, MemberStep::RepairClaim) => Blocked::Nothing,
            Step::Cluster(_) => Blocked::Everything,
            Step::Member(ordinal, _) => Blocked::Member(*ordinal),
        }
    }

    /// Whether the step changes the members or the leader of the cluster.
    pub fn changes_membership(&self) -> bool {
        let Step::Member(_, step) = self else { return false };
        matches!(
            step,
            MemberStep::AddLearner
                | MemberStep::Promote { .. }
                | MemberStep::MoveLeader { .. }
                | MemberStep::RemoveMember { .. }
        )
    }

    /// Whether both steps do the same, for whatever reason.
    pub(crate) fn is_same_act(&self, other: &Step) -> bool {
        match (self, other) {
            (Step::Member(ordinal, step), Step::Member(other, same)) => ordinal == other && step.is_same_act(same),
            _ => self == other,
        }
    }
}

impl MemberStep {
    fn is_same_act(&self, other: &MemberStep) -> bool {
        match (self, other) {
            (MemberStep::DeletePod { .. }, MemberStep::DeletePod { .. })
            | (MemberStep::RecreatePeer { .. }, MemberStep::RecreatePeer { .. })
            | (MemberStep::RestartPod { .. }, MemberStep::RestartPod { .. })
            | (MemberStep::FencePod { .. }, MemberStep::FencePod { .. }) => true,
            (MemberStep::RemoveMember { member_id, .. }, MemberStep::RemoveMember { member_id: other, .. }) => {
                member_id == other
            }
            _ => self == other,
        }
    }
}

/// Which of the later steps of a plan are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    Nothing,
    Member(Ordinal),
    Everything,
}

/// What a new EtcdPeer is created from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Model {
    Spec,
    /// The spec, but with the version that was last found possible.
    SpecWithVersion(Version),
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
