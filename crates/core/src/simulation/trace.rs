//! Short descriptions of steps, for the trace.

use semver::Version;

use crate::cluster::plan::{Model, Step};
use crate::cluster::step::{ClusterStep, MemberStep};

pub fn all_of(steps: &[Step]) -> String {
    if steps.is_empty() {
        return "nothing".to_owned();
    }
    steps.iter().map(brief).collect::<Vec<_>>().join(", ")
}

pub fn brief(step: &Step) -> String {
    match step {
        Step::Cluster(ClusterStep::RecordBootstrap(bootstrap)) => format!("RecordBootstrap of {}", bootstrap.size),
        Step::Cluster(ClusterStep::RecordClusterId(id)) => format!("RecordClusterId {id}"),
        Step::Member(ordinal, MemberStep::CreatePeer { model: Model::Spec, .. }) => format!("CreatePeer c-{ordinal}"),
        Step::Member(ordinal, MemberStep::CreatePeer { model, .. }) => format!("CreatePeer c-{ordinal} as {model:?}"),
        Step::Member(ordinal, MemberStep::DrainPod) => format!("DrainPod c-{ordinal}"),
        Step::Member(ordinal, MemberStep::RecreatePeer { why }) => format!("RecreatePeer c-{ordinal} ({why})"),
        Step::Member(ordinal, MemberStep::Relabel) => format!("Relabel c-{ordinal}"),
        Step::Member(ordinal, MemberStep::Resize) => format!("Resize c-{ordinal}"),
        Step::Member(ordinal, MemberStep::GrowClaim) => format!("GrowClaim c-{ordinal}"),
        Step::Cluster(ClusterStep::TakeBackup) => "TakeBackup".to_owned(),
        Step::Cluster(ClusterStep::AcceptVersion(version)) => format!("AcceptVersion {version}"),
        Step::Cluster(ClusterStep::RecordLogVersion(version)) => format!("RecordLogVersion {version}"),
        Step::Cluster(ClusterStep::EnableDowngrade(version)) => format!("EnableDowngrade to {version}"),
        Step::Cluster(ClusterStep::CancelDowngrade) => "CancelDowngrade".to_owned(),
        Step::Member(ordinal, MemberStep::RecordMember { identity, started }) => {
            format!("RecordMember c-{ordinal} {}{}", identity.member_id, if *started { " started" } else { "" })
        }
        Step::Member(ordinal, MemberStep::CreateClaim { .. }) => format!("CreateClaim c-{ordinal}"),
        Step::Member(ordinal, MemberStep::MarkClaim { identity, version }) => {
            format!(
                "MarkClaim c-{ordinal} {} {}",
                identity.member_id,
                version.as_ref().map(Version::to_string).unwrap_or_default()
            )
        }
        Step::Member(ordinal, MemberStep::CreatePod { start }) => {
            format!(
                "CreatePod c-{ordinal} {:?}{}",
                start.expected.data,
                if start.bootstrap_token.is_some() { " initial" } else { "" }
            )
        }
        Step::Member(ordinal, MemberStep::AnnotatePod { expected, .. }) => {
            format!("AnnotatePod c-{ordinal} {:?}", expected.data)
        }
        Step::Member(ordinal, MemberStep::DeletePod { why }) => format!("DeletePod c-{ordinal} ({why})"),
        Step::Member(ordinal, MemberStep::RestartPod { .. }) => format!("RestartPod c-{ordinal}"),
        Step::Member(ordinal, MemberStep::FencePod { why }) => format!("FencePod c-{ordinal} ({why})"),
        Step::Member(ordinal, MemberStep::DeleteClaim) => format!("DeleteClaim c-{ordinal}"),
        Step::Member(ordinal, MemberStep::DeletePeer) => format!("DeletePeer c-{ordinal}"),
        Step::Member(ordinal, MemberStep::AddLearner) => format!("AddLearner c-{ordinal}"),
        Step::Member(ordinal, MemberStep::Promote { member_id }) => format!("Promote c-{ordinal} {member_id}"),
        Step::Member(from, MemberStep::MoveLeader { to, .. }) => format!("MoveLeader from c-{from} to c-{to}"),
        Step::Member(ordinal, MemberStep::RecordReplacement { replacement }) => {
            format!("RecordReplacement c-{ordinal} (time {})", replacement.count)
        }
        Step::Member(ordinal, MemberStep::RemoveMember { member_id, why }) => {
            format!("RemoveMember c-{ordinal} {member_id} ({why})")
        }
        Step::Member(ordinal, MemberStep::RecordDefragmentation { .. }) => format!("RecordDefragmentation c-{ordinal}"),
        Step::Member(ordinal, MemberStep::Defragment) => format!("Defragment c-{ordinal}"),
        Step::Cluster(ClusterStep::ApplyService(kind)) => format!("ApplyService {kind:?}"),
        Step::Cluster(ClusterStep::ApplyDisruptionBudget { min_available }) => {
            format!("ApplyDisruptionBudget {min_available}")
        }
        Step::Member(ordinal, MemberStep::RepairClaim) => format!("RepairClaim c-{ordinal}"),
        Step::Cluster(ClusterStep::Disarm(alarm)) => format!("Disarm {:?} of {}", alarm.kind, alarm.member_id),
    }
}
