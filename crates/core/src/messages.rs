//! What steps do, in words for the user.

use etcd_operator_api::format_id;

use crate::observed::{Alarm, Observed};
use crate::plan::Step;

/// What a step does, as a reason and a sentence. Notes for the operator's own use are not worth a word.
pub fn describe(observed: &Observed, step: &Step) -> Option<(&'static str, String)> {
    let name = |ordinal: &u32| observed.names.member_name(*ordinal);
    Some(match step {
        Step::RecordBootstrap(bootstrap) => {
            ("Bootstrapping", format!("bootstrapping a cluster of {} members", bootstrap.size))
        }
        Step::RecordClusterId(id) => {
            ("Bootstrapped", format!("the members have formed the etcd cluster {}", format_id(*id)))
        }
        Step::CreatePeer { ordinal, .. } | Step::CreateClaim { ordinal, .. } | Step::CreatePod { ordinal, .. } => {
            ("StartingMember", format!("{} is being started", name(ordinal)))
        }
        Step::DeletePod { ordinal, why } => ("StoppingPod", format!("{}'s pod is being stopped: {why}", name(ordinal))),
        Step::DrainPod { ordinal } => {
            ("RestartingMember", format!("clients of {} are sent elsewhere before it is restarted", name(ordinal)))
        }
        Step::ReplacePeer { ordinal, why } => {
            ("RestartingMember", format!("{} is being restarted: {why}", name(ordinal)))
        }
        Step::Relabel { ordinal } => {
            ("UpdatingPod", format!("{}'s pod gets other labels or annotations", name(ordinal)))
        }
        Step::Resize { ordinal } => ("UpdatingPod", format!("{}'s pod gets other resources", name(ordinal))),
        Step::GrowClaim { ordinal } => {
            ("ExpandingVolume", format!("the volume of {} is being made larger", name(ordinal)))
        }
        Step::TakeBackup => ("BackingUp", "a backup is taken before the version changes".to_owned()),
        Step::AcceptVersion(version) => ("ChangingVersion", format!("the members are brought to etcd {version}")),
        Step::EnableDowngrade(version) => {
            ("EnablingDowngrade", format!("etcd is expected to make its data readable for {version}"))
        }
        Step::CancelDowngrade => ("CancellingDowngrade", "etcd is expected that it will not be downgraded".to_owned()),
        Step::RestartPod { ordinal, why } => {
            ("RestartingPod", format!("{}'s pod is being restarted: {why}", name(ordinal)))
        }
        Step::FencePod { ordinal, why } => ("StoppingPod", format!("{}'s pod is being given up: {why}", name(ordinal))),
        Step::DeleteClaim { ordinal } | Step::DeletePeer { ordinal } => {
            ("CleaningUp", format!("what {} left behind is being removed", name(ordinal)))
        }
        Step::AddLearner { ordinal } => ("AddingMember", format!("{} is being added as a learner", name(ordinal))),
        Step::Promote { ordinal, .. } => ("PromotingMember", format!("{} is being promoted to vote", name(ordinal))),
        Step::MoveLeader { from, to, .. } => {
            ("MovingLeader", format!("leadership is being moved from {} to {}", name(from), name(to)))
        }
        Step::RemoveMember { ordinal, why, .. } => {
            ("RemovingMember", format!("{} is being removed: {why}", name(ordinal)))
        }
        Step::Defragment { ordinal } => {
            ("Defragmenting", format!("{}'s database is being defragmented", name(ordinal)))
        }
        Step::Disarm(Alarm { kind, .. }) => ("DisarmingAlarm", format!("the alarm {kind:?} is being disarmed")),
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
