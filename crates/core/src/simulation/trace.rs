//! Short descriptions of steps, for the trace.

use crate::cluster::plan::{Model, Step};

pub fn all_of(steps: &[Step]) -> String {
    if steps.is_empty() {
        return "nothing".to_owned();
    }
    steps.iter().map(brief).collect::<Vec<_>>().join(", ")
}

pub fn brief(step: &Step) -> String {
    match step {
        Step::RecordBootstrap(bootstrap) => format!("RecordBootstrap of {}", bootstrap.size),
        Step::RecordClusterId(id) => format!("RecordClusterId {id}"),
        Step::CreatePeer { ordinal, model: Model::Spec, .. } => format!("CreatePeer c-{ordinal}"),
        Step::CreatePeer { ordinal, model, .. } => format!("CreatePeer c-{ordinal} as {model:?}"),
        Step::DrainPod { ordinal } => format!("DrainPod c-{ordinal}"),
        Step::RecreatePeer { ordinal, why } => format!("RecreatePeer c-{ordinal} ({why})"),
        Step::Relabel { ordinal } => format!("Relabel c-{ordinal}"),
        Step::Resize { ordinal } => format!("Resize c-{ordinal}"),
        Step::GrowClaim { ordinal } => format!("GrowClaim c-{ordinal}"),
        Step::TakeBackup => "TakeBackup".to_owned(),
        Step::AcceptVersion(version) => format!("AcceptVersion {version}"),
        Step::RecordLogVersion(version) => format!("RecordLogVersion {version}"),
        Step::EnableDowngrade(version) => format!("EnableDowngrade to {version}"),
        Step::CancelDowngrade => "CancelDowngrade".to_owned(),
        Step::RecordMember { ordinal, identity, started } => {
            format!("RecordMember c-{ordinal} {}{}", identity.member_id, if *started { " started" } else { "" })
        }
        Step::CreateClaim { ordinal, .. } => format!("CreateClaim c-{ordinal}"),
        Step::MarkClaim { ordinal, identity, version } => {
            format!("MarkClaim c-{ordinal} {} {}", identity.member_id, version.as_deref().unwrap_or_default())
        }
        Step::CreatePod { ordinal, start } => {
            format!(
                "CreatePod c-{ordinal} {:?}{}",
                start.expected.data,
                if start.bootstrap_token.is_some() { " initial" } else { "" }
            )
        }
        Step::AnnotatePod { ordinal, expected, .. } => format!("AnnotatePod c-{ordinal} {:?}", expected.data),
        Step::DeletePod { ordinal, why } => format!("DeletePod c-{ordinal} ({why})"),
        Step::RestartPod { ordinal, .. } => format!("RestartPod c-{ordinal}"),
        Step::FencePod { ordinal, why } => format!("FencePod c-{ordinal} ({why})"),
        Step::DeleteClaim { ordinal } => format!("DeleteClaim c-{ordinal}"),
        Step::DeletePeer { ordinal } => format!("DeletePeer c-{ordinal}"),
        Step::AddLearner { ordinal } => format!("AddLearner c-{ordinal}"),
        Step::Promote { ordinal, member_id } => format!("Promote c-{ordinal} {member_id}"),
        Step::MoveLeader { from, to, .. } => format!("MoveLeader from c-{from} to c-{to}"),
        Step::RecordReplacement { ordinal, replacement } => {
            format!("RecordReplacement c-{ordinal} (time {})", replacement.count)
        }
        Step::RemoveMember { ordinal, member_id, why } => format!("RemoveMember c-{ordinal} {member_id} ({why})"),
        Step::RecordDefragmentation { ordinal, .. } => format!("RecordDefragmentation c-{ordinal}"),
        Step::Defragment { ordinal } => format!("Defragment c-{ordinal}"),
        Step::Disarm(alarm) => format!("Disarm {:?} of {}", alarm.kind, alarm.member_id),
    }
}
