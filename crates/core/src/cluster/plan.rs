//! What to do next. `plan` returns the steps that can be taken now, in order, at most one of which changes etcd's
//! membership; or what it waits for. It is called again after every change, so a plan never looks further ahead, and
//! its execution may stop after any step.

use etcd_operator_api::{Pace, WaitReason, format_id};

use crate::cluster::bootstrap::{Stage, stage_of};
use crate::cluster::initial_members;
use crate::cluster::maintenance::{disarm_orphans, next_maintenance};
use crate::cluster::members::{keep_members_running, remove_leftovers, restart_known_members, start_initial_members};
use crate::cluster::observed::{Alarm, Bootstrap, Defragmentation, ExpectedData, Identity, Observed, Pod, Replacement};
use crate::cluster::recovery::{recover_members, restart_unresponsive_initial_member, restart_unresponsive_pod};
use crate::cluster::rollout::{adopt_version, next_change, recreate_broken, recreate_stopped_members};
use crate::cluster::scaling::next_membership_change;
use crate::cluster::volumes::{grow_claims, next_migration};

/// Something to do. Every step is idempotent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Record how the cluster will be bootstrapped, before anything is started.
    RecordBootstrap(Bootstrap),
    /// Record that the cluster is bootstrapped. After that, nothing is bootstrapped again.
    RecordClusterId(u64),
    CreatePeer {
        ordinal: u32,
        initial: bool,
        model: Model,
    },
    /// Record the identity of the member in its EtcdPeer, and whether it was observed running.
    RecordMember {
        ordinal: u32,
        identity: Identity,
        started: bool,
    },
    CreateClaim {
        ordinal: u32,
        bootstrap: Option<Bootstrap>,
        identity: Option<Identity>,
    },
    /// Annotate the claim with the member whose data it holds and the version that can read it, so that this is known
    /// when nothing else is left.
    MarkClaim {
        ordinal: u32,
        identity: Identity,
        version: Option<String>,
    },
    CreatePod {
        ordinal: u32,
        start: Start,
    },
    /// Annotate a running pod with the data that it must find if it starts again, and whether it serves clients.
    AnnotatePod {
        ordinal: u32,
        expected: ExpectedData,
        serves_clients: bool,
    },
    /// Drain clients from a pod that is about to be restarted.
    DrainPod {
        ordinal: u32,
    },
    /// Delete an EtcdPeer and its pod, so that both are recreated from the spec. The volume stays.
    RecreatePeer {
        ordinal: u32,
        why: String,
    },
    /// Give a running pod the labels and annotations in the spec.
    Relabel {
        ordinal: u32,
    },
    /// Give a running pod the resources in the spec, and the labels and annotations.
    Resize {
        ordinal: u32,
    },
    /// Request as much space as the spec does.
    GrowClaim {
        ordinal: u32,
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
        ordinal: u32,
        why: String,
    },
    /// Terminate a pod whose member does not answer, so that it starts again.
    RestartPod {
        ordinal: u32,
        why: String,
    },
    /// Force-delete a pod whose node is down or does not terminate it: no kubelet would confirm that it stopped.
    FencePod {
        ordinal: u32,
        why: String,
    },
    DeleteClaim {
        ordinal: u32,
    },
    DeletePeer {
        ordinal: u32,
    },
    AddLearner {
        ordinal: u32,
    },
    Promote {
        ordinal: u32,
        member_id: u64,
    },
    MoveLeader {
        from: u32,
        to: u32,
        to_id: u64,
    },
    /// Record in the EtcdPeer that a member is replaced, before it is.
    RecordReplacement {
        ordinal: u32,
        replacement: Replacement,
    },
    RemoveMember {
        ordinal: u32,
        member_id: u64,
        why: String,
    },
    /// Record in the EtcdPeer that a database is defragmented, before it is.
    RecordDefragmentation {
        ordinal: u32,
        defragmentation: Defragmentation,
    },
    /// Free the unused space of a database. Its member does not serve meanwhile.
    Defragment {
        ordinal: u32,
    },
    Disarm(Alarm),
}

impl Step {
    /// Whether the step removes something, or could do harm if it is based on stale data. Such a step is taken only if
    /// it is also planned from a live observation that bypasses all caches.
    pub fn needs_live_confirmation(&self) -> bool {
        matches!(
            self,
            Step::RecordBootstrap(_)
                | Step::AcceptVersion(_)
                | Step::AddLearner { .. }
                | Step::RecreatePeer { .. }
                | Step::DeletePod { .. }
                | Step::RestartPod { .. }
                | Step::FencePod { .. }
                | Step::DeleteClaim { .. }
                | Step::DeletePeer { .. }
                | Step::RemoveMember { .. }
        )
    }

    /// The member that the step is about. `None` if it is about the whole cluster.
    pub fn ordinal(&self) -> Option<u32> {
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

/// Whether a step is also planned from a live observation. A cache may be stale: that is good enough to create
/// something, never to remove something.
pub fn is_confirmed(step: &Step, live: &Observed) -> bool {
    plan(live).steps.iter().any(|planned| planned.is_same_act(step))
}

/// What a new EtcdPeer is created from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Model {
    Spec,
    /// The spec, but with the version that was last found possible.
    SpecWithVersion(String),
    /// The EtcdPeer of another member, because the spec may not be rolled out yet.
    Member(u32),
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

pub fn plan(observed: &Observed) -> Plan {
    // Kubernetes garbage-collects what the cluster owns. It does not own the claims, unless the user wants them
    // deleted.
    if observed.deleting {
        return Plan::default();
    }
    if let Some(source) = &observed.paused {
        return Plan::waiting(WaitReason::Paused, format!("paused: {source}"));
    }
    let planned = match stage_of(observed) {
        Stage::Refused(message) => Plan::waiting(WaitReason::VolumesConflict, message),
        Stage::ToWait(message) => Plan::waiting(WaitReason::WaitingForCleanup, message),
        Stage::ToRecord(bootstrap) => Plan::steps(vec![Step::RecordBootstrap(bootstrap)]),
        Stage::ToAdopt(cluster_id) => Plan::steps(vec![Step::RecordClusterId(cluster_id)]),
        Stage::Bootstrapping(bootstrap) => form_cluster(observed, &bootstrap),
        Stage::Bootstrapped(cluster_id) => keep(observed, cluster_id),
    };
    without_obsolete_pods(planned)
}

/// A member that is about to be recreated or removed gets no pod first. Kubernetes may reject the pod, and a failed
/// step for a member blocks the later steps for it.
fn without_obsolete_pods(plan: Plan) -> Plan {
    let goes = |step: &Step| matches!(step, Step::RecreatePeer { .. } | Step::RemoveMember { .. });
    let going: Vec<u32> = plan.steps.iter().filter(|step| goes(step)).filter_map(Step::ordinal).collect();
    let is_obsolete = |step: &Step| matches!(step, Step::CreatePod { ordinal, .. } if going.contains(ordinal));
    Plan { steps: plan.steps.into_iter().filter(|step| !is_obsolete(step)).collect(), ..plan }
}

/// Starts all initial members at once. The cluster is bootstrapped when a quorum of them answers.
fn form_cluster(observed: &Observed, bootstrap: &Bootstrap) -> Plan {
    let expected = initial_members::cluster_id(&observed.names, bootstrap);
    match &observed.membership {
        Some(membership) if membership.cluster_id == expected => {
            return Plan::steps(vec![Step::RecordClusterId(expected)]);
        }
        Some(membership) => return wrong_cluster(membership.cluster_id, expected),
        None => {}
    }
    if let Some(plan) = adopt_version(observed) {
        return plan;
    }
    let mut steps = start_initial_members(observed, bootstrap);
    steps.extend(recreate_stopped_members(observed));
    steps.extend(restart_unresponsive_initial_member(observed));
    Plan { steps, waiting: Some(Waiting::new(WaitReason::Bootstrapping, bootstrap_progress(observed, bootstrap))) }
}

/// For how long after its pod was created an initial member that is ready may still be unreachable without a report.
const REACHED_WITHIN: i64 = 60;

/// How many initial members answer. Members that are healthy but unreachable for the operator are reported.
fn bootstrap_progress(observed: &Observed, bootstrap: &Bootstrap) -> String {
    let answering = observed.answers.values().filter(|answer| answer.is_ok()).count();
    let message = format!("{answering} of {} initial members answer", bootstrap.size);
    // A pod that has only just become ready may be reached at the next reconcile.
    let is_old = |pod: &Pod| observed.now - pod.created >= REACHED_WITHIN;
    let is_unreached = |(ordinal, pod): &(&u32, &Pod)| pod.ready && is_old(pod) && !observed.is_reached(**ordinal);
    let unreached = observed.pods.iter().filter(is_unreached);
    let unreached: Vec<String> = unreached.map(|(ordinal, _)| observed.names.member_name(*ordinal)).collect();
    if unreached.is_empty() {
        return message;
    }
    format!("{message}; {} ready, but the operator can't connect: check network policies", unreached.join(", "))
}

fn keep(observed: &Observed, cluster_id: u64) -> Plan {
    let Some(membership) = &observed.membership else {
        if let Some(plan) = adopt_version(observed) {
            return plan;
        }
        let mut steps = restart_known_members(observed, cluster_id);
        steps.extend(recreate_stopped_members(observed));
        steps.extend(restart_unresponsive_pod(observed));
        return Plan { steps, waiting: Some(Waiting::new(WaitReason::NoQuorum, "no quorum of the members answers")) };
    };
    if membership.cluster_id != cluster_id {
        return wrong_cluster(membership.cluster_id, cluster_id);
    }
    let mut steps = keep_members_running(observed, membership);
    steps.extend(remove_leftovers(observed, membership));
    steps.extend(disarm_orphans(observed, membership));
    // Unhealthy members come before scaling, and both come before changes to healthy members.
    let next = recover_members(observed, membership, || {
        recreate_broken(observed, membership)
            .or_else(|| next_membership_change(observed, membership))
            .or_else(|| next_change(observed, membership))
            .or_else(|| next_migration(observed, membership))
    });
    // Waiting for a user does not block maintenance.
    let idle = next.steps.is_empty() && next.waiting.as_ref().is_none_or(|waiting| waiting.reason.pace() == Pace::Long);
    let maintenance = if idle { next_maintenance(observed, membership).steps } else { Vec::new() };
    // A failed step for a member blocks the later steps for it, so steps that may be rejected come last.
    steps.extend(next.steps.into_iter().chain(maintenance).chain(grow_claims(observed)));
    Plan { steps, waiting: next.waiting }
}

fn wrong_cluster(found: u64, expected: u64) -> Plan {
    let message = format!(
        "members belong to etcd cluster {}, expected {}; nothing is changed",
        format_id(found),
        format_id(expected)
    );
    Plan::waiting(WaitReason::WrongCluster, message)
}
