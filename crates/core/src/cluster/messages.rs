//! Descriptions of steps for the user.

use crate::ordinal::Ordinal;
use etcd_operator_api::ConditionReason;

use crate::cluster::observed::{Alarm, Observed};
use crate::cluster::step::Step;

/// What a step does, as a reason and a sentence. Records for the operator's own use are not described.
pub fn describe(observed: &Observed, step: &Step) -> Option<(ConditionReason, String)> {
    let name = |ordinal: &Ordinal| observed.names.member_name(*ordinal);
    Some(match step {
        Step::RecordBootstrap(bootstrap) => {
            (ConditionReason::Bootstrapping, format!("bootstrapping a cluster of {} members", bootstrap.size))
        }
        Step::RecordClusterId(id) => {
            (ConditionReason::Bootstrapped, format!("members formed etcd cluster {}", id.to_string()))
        }
        Step::CreatePeer { ordinal, .. } | Step::CreateClaim { ordinal, .. } | Step::CreatePod { ordinal, .. } => {
            (ConditionReason::StartingMember, format!("starting {}", name(ordinal)))
        }
        Step::DeletePod { ordinal, why } => {
            (ConditionReason::StoppingPod, format!("stopping pod {}: {why}", name(ordinal)))
        }
        Step::DrainPod { ordinal } => {
            (ConditionReason::RecreatingMember, format!("draining clients from {} before its restart", name(ordinal)))
        }
        Step::RecreatePeer { ordinal, why } => {
            (ConditionReason::RecreatingMember, format!("recreating {}: {why}", name(ordinal)))
        }
        Step::Relabel { ordinal } => {
            (ConditionReason::UpdatingPod, format!("updating labels and annotations of pod {}", name(ordinal)))
        }
        Step::Resize { ordinal } => (ConditionReason::UpdatingPod, format!("resizing pod {}", name(ordinal))),
        Step::GrowClaim { ordinal } => {
            (ConditionReason::ExpandingVolume, format!("expanding the volume of {}", name(ordinal)))
        }
        Step::TakeBackup => (ConditionReason::BackingUp, "taking a backup before the upgrade".to_owned()),
        Step::AcceptVersion(version) => (ConditionReason::ChangingVersion, format!("rolling out etcd {version}")),
        Step::EnableDowngrade(version) => {
            (ConditionReason::EnablingDowngrade, format!("asking etcd to make its data readable for {version}"))
        }
        Step::CancelDowngrade => (ConditionReason::CancellingDowngrade, "cancelling the downgrade in etcd".to_owned()),
        Step::RestartPod { ordinal, why } => {
            (ConditionReason::RestartingPod, format!("restarting pod {}: {why}", name(ordinal)))
        }
        Step::FencePod { ordinal, why } => {
            (ConditionReason::StoppingPod, format!("force-deleting pod {}: {why}", name(ordinal)))
        }
        Step::DeleteClaim { ordinal } | Step::DeletePeer { ordinal } => {
            (ConditionReason::CleaningUp, format!("cleaning up after {}", name(ordinal)))
        }
        Step::AddLearner { ordinal } => {
            (ConditionReason::AddingMember, format!("adding {} as a learner", name(ordinal)))
        }
        Step::Promote { ordinal, .. } => {
            (ConditionReason::PromotingMember, format!("promoting {} to voter", name(ordinal)))
        }
        Step::MoveLeader { from, to, .. } => {
            (ConditionReason::MovingLeader, format!("moving leadership from {} to {}", name(from), name(to)))
        }
        Step::RemoveMember { ordinal, why, .. } => {
            (ConditionReason::RemovingMember, format!("removing {}: {why}", name(ordinal)))
        }
        Step::Defragment { ordinal } => (ConditionReason::Defragmenting, format!("defragmenting {}", name(ordinal))),
        Step::Disarm(Alarm { kind, .. }) => (ConditionReason::DisarmingAlarm, format!("disarming the {kind:?} alarm")),
        Step::RecordMember { .. }
        | Step::RecordLogVersion(_)
        | Step::RecordReplacement { .. }
        | Step::RecordDefragmentation { .. }
        | Step::MarkClaim { .. }
        | Step::AnnotatePod { .. } => {
            return None;
        }
    })
}
