//! Carries out a plan, one step after another, each confirmed first if it could do harm. How a step is taken is in
//! `member_steps`, `membership`, `rollout`, `maintenance` and `take_backup`.

use std::collections::BTreeSet;

use etcd_operator_api::{BootstrapRecord, EventReason};
use etcd_operator_core::cluster::plan::{Plan, Step};
use etcd_operator_core::cluster::step::{Blocked, ClusterStep, MemberStep};
use etcd_operator_core::ordinal::Ordinal;
use kube::ResourceExt;

use super::actor::Actor;
use super::errors::Error;

/// Takes the steps of a plan, but none that an earlier one blocks by its failure. The first failure is returned.
pub async fn carry_out(plan: &Plan, mut actor: Actor<'_>) -> Result<(), Error> {
    let mut failed = BTreeSet::new();
    let mut outcome = Ok(());
    for step in &plan.steps {
        if step.ordinal().is_some_and(|ordinal| failed.contains(&ordinal)) {
            continue;
        }
        if let Err(error) = actor.take(step).await {
            outcome = outcome.and(Err(error));
            match step.blocked_by_failure() {
                Blocked::Nothing => {}
                Blocked::Member(ordinal) => drop(failed.insert(ordinal)),
                Blocked::Everything => break,
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
            Step::Cluster(step) => self.take_for_cluster(step).await,
            Step::Member(ordinal, step) => self.take_for_member(*ordinal, step).await,
        }
    }

    async fn take_for_cluster(&mut self, step: &ClusterStep) -> Result<(), Error> {
        match step {
            ClusterStep::RecordBootstrap(bootstrap) => {
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
            ClusterStep::RecordClusterId(id) => {
                self.record(|status| status.cluster_id = Some(id.to_string())).await?;
                self.tell(
                    EventReason::ClusterCreated,
                    &self.cluster.name_any(),
                    format!("Members formed etcd cluster {id}"),
                )
                .await
            }
            ClusterStep::AcceptVersion(version) => self.accept_version(version).await,
            ClusterStep::TakeBackup => self.take_backup().await,
            ClusterStep::RecordLogVersion(version) => {
                self.record(|status| status.oldest_log_version = Some(version.to_string())).await
            }
            ClusterStep::EnableDowngrade(version) => self.enable_downgrade(version).await,
            ClusterStep::CancelDowngrade => self.cancel_downgrade().await,
            ClusterStep::Disarm(alarm) => self.disarm(*alarm).await,
            ClusterStep::ApplyService(kind) => self.apply_service(*kind).await,
            ClusterStep::ApplyDisruptionBudget { min_available } => self.apply_disruption_budget(*min_available).await,
        }
    }

    async fn take_for_member(&mut self, ordinal: Ordinal, step: &MemberStep) -> Result<(), Error> {
        match step {
            MemberStep::CreatePeer { initial, model } => self.create_peer(ordinal, *initial, model).await,
            MemberStep::RecordMember { identity, started } => self.record_member(ordinal, *identity, *started).await,
            MemberStep::CreateClaim { bootstrap, identity } => {
                self.create_claim(ordinal, bootstrap.as_ref(), *identity).await
            }
            MemberStep::MarkClaim { identity, version } => self.mark_claim(ordinal, *identity, version.as_ref()).await,
            MemberStep::RepairClaim => self.repair_claim(ordinal).await,
            MemberStep::CreatePod { start } => self.create_pod(ordinal, start).await,
            MemberStep::AnnotatePod { expected, serves_clients } => {
                self.annotate_pod(ordinal, *expected, *serves_clients).await
            }
            MemberStep::DrainPod => self.drain_pod(ordinal).await,
            MemberStep::RecreatePeer { why } => self.recreate_peer(ordinal, why).await,
            MemberStep::Relabel => self.relabel(ordinal).await,
            MemberStep::Resize => self.resize(ordinal).await,
            MemberStep::GrowClaim => self.grow_claim(ordinal).await,
            MemberStep::DeletePod { why } => self.delete_pod(ordinal, None, EventReason::PodDeleted, why).await,
            // No grace period is needed: the member hangs.
            MemberStep::RestartPod { why } => self.delete_pod(ordinal, Some(1), EventReason::PodRestarted, why).await,
            MemberStep::FencePod { why } => self.delete_pod(ordinal, Some(0), EventReason::PodForceDeleted, why).await,
            MemberStep::DeleteClaim => self.delete_claim(ordinal).await,
            MemberStep::DeletePeer => self.delete_peer(ordinal).await,
            MemberStep::AddLearner => self.add_learner(ordinal).await,
            MemberStep::Promote { member_id } => self.promote(ordinal, *member_id).await,
            MemberStep::MoveLeader { to, to_id } => self.move_leader(ordinal, *to, *to_id).await,
            MemberStep::RecordReplacement { replacement } => self.record_replacement(ordinal, replacement).await,
            MemberStep::RemoveMember { member_id, why } => self.remove_member(ordinal, *member_id, why).await,
            MemberStep::RecordDefragmentation { defragmentation } => {
                self.record_defragmentation(ordinal, *defragmentation).await
            }
            MemberStep::Defragment => self.defragment(ordinal).await,
        }
    }
}
