//! Carries out a plan, one step after another, each confirmed first if it could do harm. How a step is taken is in
//! `member_steps`, `membership`, `rollout`, `maintenance` and `take_backup`.

use std::collections::BTreeSet;

use etcd_operator_api::{BootstrapRecord, EventReason};
use etcd_operator_core::cluster::plan::{Plan, Step};
use kube::ResourceExt;

use super::actor::Actor;
use super::errors::Error;

/// Takes the steps of a plan. A failed step for one member does not block the others, so only the later steps for the
/// same member are skipped; the first failure is returned.
pub async fn carry_out(plan: &Plan, mut actor: Actor<'_>) -> Result<(), Error> {
    let mut failed = BTreeSet::new();
    let mut outcome = Ok(());
    for step in &plan.steps {
        let ordinal = step.ordinal();
        if ordinal.is_some_and(|ordinal| failed.contains(&ordinal)) {
            continue;
        }
        if let Err(error) = actor.take(step).await {
            outcome = outcome.and(Err(error));
            match ordinal {
                Some(ordinal) => drop(failed.insert(ordinal)),
                None => break,
            }
        }
    }
    outcome
}

impl Actor<'_> {
    pub(super) async fn take(&mut self, step: &Step) -> Result<(), Error> {
        if step.needs_live_confirmation() {
            self.confirm(step).await?;
        }
        match step {
            Step::RecordBootstrap(bootstrap) => {
                let size = i32::try_from(bootstrap.size).unwrap_or(i32::MAX);
                let bootstrap = BootstrapRecord { token: bootstrap.token.clone(), size };
                let version = self.cluster.spec.version.clone();
                self.record(|status| {
                    status.bootstrap = Some(bootstrap);
                    status.oldest_log_version = Some(version.clone());
                    status.target_version = Some(version);
                })
                .await
            }
            Step::RecordClusterId(id) => {
                let id = id.to_string();
                self.record(|status| status.cluster_id = Some(id.clone())).await?;
                self.tell(
                    EventReason::ClusterCreated,
                    &self.cluster.name_any(),
                    format!("Members formed etcd cluster {id}"),
                )
                .await
            }
            Step::CreatePeer { ordinal, initial, model } => self.create_peer(*ordinal, *initial, model).await,
            Step::RecordMember { ordinal, identity, started } => {
                self.record_member(*ordinal, *identity, *started).await
            }
            Step::CreateClaim { ordinal, bootstrap, identity } => {
                self.create_claim(*ordinal, bootstrap.as_ref(), *identity).await
            }
            Step::MarkClaim { ordinal, identity, version } => {
                self.mark_claim(*ordinal, *identity, version.as_ref()).await
            }
            Step::CreatePod { ordinal, start } => self.create_pod(*ordinal, start).await,
            Step::AnnotatePod { ordinal, expected, serves_clients } => {
                self.annotate_pod(*ordinal, *expected, *serves_clients).await
            }
            Step::DrainPod { ordinal } => self.drain_pod(*ordinal).await,
            Step::RecreatePeer { ordinal, why } => self.recreate_peer(*ordinal, why).await,
            Step::Relabel { ordinal } => self.relabel(*ordinal).await,
            Step::Resize { ordinal } => self.resize(*ordinal).await,
            Step::GrowClaim { ordinal } => self.grow_claim(*ordinal).await,
            Step::AcceptVersion(version) => self.accept_version(version).await,
            Step::TakeBackup => self.take_backup().await,
            Step::RecordLogVersion(version) => {
                self.record(|status| status.oldest_log_version = Some(version.clone())).await
            }
            Step::EnableDowngrade(version) => self.enable_downgrade(version).await,
            Step::CancelDowngrade => self.cancel_downgrade().await,
            Step::DeletePod { ordinal, why } => self.delete_pod(*ordinal, None, EventReason::PodDeleted, why).await,
            // No grace period is needed: the member hangs.
            Step::RestartPod { ordinal, why } => {
                self.delete_pod(*ordinal, Some(1), EventReason::PodRestarted, why).await
            }
            Step::FencePod { ordinal, why } => {
                self.delete_pod(*ordinal, Some(0), EventReason::PodForceDeleted, why).await
            }
            Step::DeleteClaim { ordinal } => self.delete_claim(*ordinal).await,
            Step::DeletePeer { ordinal } => self.delete_peer(*ordinal).await,
            Step::AddLearner { ordinal } => self.add_learner(*ordinal).await,
            Step::Promote { ordinal, member_id } => self.promote(*ordinal, *member_id).await,
            Step::MoveLeader { from, to, to_id } => self.move_leader(*from, *to, *to_id).await,
            Step::RecordReplacement { ordinal, replacement } => self.record_replacement(*ordinal, replacement).await,
            Step::RemoveMember { ordinal, member_id, why } => self.remove_member(*ordinal, *member_id, why).await,
            Step::RecordDefragmentation { ordinal, defragmentation } => {
                self.record_defragmentation(*ordinal, *defragmentation).await
            }
            Step::Defragment { ordinal } => self.defragment(*ordinal).await,
            Step::Disarm(alarm) => self.disarm(*alarm).await,
        }
    }
}
