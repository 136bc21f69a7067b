//! Descriptions of steps for the user.

use etcd_operator_api::ConditionReason;

use crate::cluster::observed::{Alarm, Observed};
use crate::cluster::step::{ClusterStep, MemberStep, Step};
use crate::ordinal::Ordinal;

/// What a step does, as a reason and a sentence. Records for the operator's own use are not described.
pub fn describe(observed: &Observed, step: &Step) -> Option<(ConditionReason, String)> {
    match step {
        Step::Cluster(step) => describe_for_cluster(step),
        Step::Member(ordinal, step) => describe_for_member(observed, *ordinal, step),
    }
}

fn describe_for_cluster(step: &ClusterStep) -> Option<(ConditionReason, String)> {
    Some(match step {
        ClusterStep::RecordBootstrap(bootstrap) => {
            (ConditionReason::Bootstrapping, format!("bootstrapping a cluster of {} members", bootstrap.size))
        }
        ClusterStep::RecordClusterId(id) => {
            (ConditionReason::Bootstrapped, format!("members formed etcd cluster {id}"))
        }
        ClusterStep::TakeBackup => (ConditionReason::BackingUp, "taking a backup before the upgrade".to_owned()),
        ClusterStep::AcceptVersion(version) => {
            (ConditionReason::ChangingVersion, format!("rolling out etcd {version}"))
        }
        ClusterStep::EnableDowngrade(version) => {
            (ConditionReason::EnablingDowngrade, format!("asking etcd to make its data readable for {version}"))
        }
        ClusterStep::CancelDowngrade => {
            (ConditionReason::CancellingDowngrade, "cancelling the downgrade in etcd".to_owned())
        }
        ClusterStep::Disarm(Alarm { kind, .. }) => {
            (ConditionReason::DisarmingAlarm, format!("disarming the {kind:?} alarm"))
        }
        ClusterStep::RecordLogVersion(_) | ClusterStep::ApplyService(_) | ClusterStep::ApplyDisruptionBudget { .. } => {
            return None;
        }
    })
}

fn describe_for_member(observed: &Observed, ordinal: Ordinal, step: &MemberStep) -> Option<(ConditionReason, String)> {
    let name = observed.names.member_name(ordinal);
    Some(match step {
        MemberStep::CreatePeer { .. } | MemberStep::CreateClaim { .. } | MemberStep::CreatePod { .. } => {
            (ConditionReason::StartingMember, format!("starting {name}"))
        }
        MemberStep::DeletePod { why } => (ConditionReason::StoppingPod, format!("stopping pod {name}: {why}")),
        MemberStep::DrainPod => {
            (ConditionReason::RecreatingMember, format!("draining clients from {name} before its restart"))
        }
        MemberStep::RecreatePeer { why } => (ConditionReason::RecreatingMember, format!("recreating {name}: {why}")),
        MemberStep::Relabel => (ConditionReason::UpdatingPod, format!("updating labels and annotations of pod {name}")),
        MemberStep::Resize => (ConditionReason::UpdatingPod, format!("resizing pod {name}")),
        MemberStep::GrowClaim => (ConditionReason::ExpandingVolume, format!("expanding the volume of {name}")),
        MemberStep::RestartPod { why } => (ConditionReason::RestartingPod, format!("restarting pod {name}: {why}")),
        MemberStep::FencePod { why } => (ConditionReason::StoppingPod, format!("force-deleting pod {name}: {why}")),
        MemberStep::DeleteClaim | MemberStep::DeletePeer => {
            (ConditionReason::CleaningUp, format!("cleaning up after {name}"))
        }
        MemberStep::AddLearner => (ConditionReason::AddingMember, format!("adding {name} as a learner")),
        MemberStep::Promote { .. } => (ConditionReason::PromotingMember, format!("promoting {name} to voter")),
        MemberStep::MoveLeader { to, .. } => {
            let to = observed.names.member_name(*to);
            (ConditionReason::MovingLeader, format!("moving leadership from {name} to {to}"))
        }
        MemberStep::RemoveMember { why, .. } => (ConditionReason::RemovingMember, format!("removing {name}: {why}")),
        MemberStep::Defragment => (ConditionReason::Defragmenting, format!("defragmenting {name}")),
        MemberStep::RecordMember { .. }
        | MemberStep::RecordReplacement { .. }
        | MemberStep::RecordDefragmentation { .. }
        | MemberStep::MarkClaim { .. }
        | MemberStep::RepairClaim
        | MemberStep::AnnotatePod { .. } => return None,
    })
}
