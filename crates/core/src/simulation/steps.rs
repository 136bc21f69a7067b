//! How the simulated operator takes a step: each is confirmed first if it could do harm, and changes the world as the real
//! one would.

use super::coverage::Rule;
use super::effects::{
    Effect, apply_budget, changed, check_removal, check_restart, create_claim, create_peer, delete_claim, downgrade,
    fence_pod, on_the_same_pod, record, record_replacement, recreate_peer,
};
use super::in_place::{grow_claim, relabel, resize};
use super::mutants::Mutant;
use super::operator::{Operator, is_confirmed_by};
use super::templates::is_refused;
use super::world::{Api, Broken, PodObject, World};
use crate::cluster::observed::{Claim, MemberId};
use crate::cluster::plan::{ClusterStep, MemberStep, Start, Step};
use crate::ordinal::Ordinal;

impl Operator {
    pub fn carry_out(&self, world: &mut World, seen: &Api, step: &Step) -> Result<Effect, Broken> {
        if step.needs_live_confirmation() && world.api.cluster.paused {
            world.coverage.judge(Rule::PausedIsUntouched);
        }
        if self.mutant != Some(Mutant::TrustsItsCaches)
            && step.needs_live_confirmation()
            && !is_confirmed_by(self.mutant, step, &self.look_again(world, step))
        {
            return Ok(Effect::Failed);
        }
        if step.needs_live_confirmation() && world.api.cluster.paused {
            return Err(format!("{step:?} although the cluster is paused"));
        }
        Ok(match step {
            Step::Cluster(ClusterStep::RecordBootstrap(_))
            | Step::Cluster(ClusterStep::RecordClusterId(_))
            | Step::Cluster(ClusterStep::AcceptVersion(_))
            | Step::Cluster(ClusterStep::RecordLogVersion(_)) => record(world, seen, step)?,
            Step::Cluster(ClusterStep::TakeBackup) => return Err("nobody asked for a backup".to_owned()),
            // Objects owned by an EtcdCluster that is gone are garbage-collected at once.
            Step::Member(_, MemberStep::CreatePeer { .. }) | Step::Member(_, MemberStep::CreatePod { .. })
                if world.api.cluster.lives != seen.cluster.lives =>
            {
                Effect::Failed
            }
            Step::Member(ordinal, MemberStep::CreatePeer { model, .. }) => create_peer(world, seen, *ordinal, model),
            Step::Member(ordinal, MemberStep::RecreatePeer { .. }) => recreate_peer(world, seen, *ordinal)?,
            Step::Member(ordinal, MemberStep::DrainPod) => {
                let now = world.now;
                changed(world.api.pods.get_mut(ordinal), |pod| {
                    (pod.start.serves_clients, pod.leaving_since) = (false, Some(now));
                })
            }
            Step::Cluster(ClusterStep::EnableDowngrade(_)) | Step::Cluster(ClusterStep::CancelDowngrade) => {
                downgrade(world, step)
            }
            Step::Member(ordinal, MemberStep::RecordMember { identity, started }) => {
                changed(world.api.peers.get_mut(ordinal), |peer| {
                    (peer.identity, peer.started) = (Some(*identity), *started);
                })
            }
            Step::Member(ordinal, MemberStep::RecordReplacement { replacement }) => {
                record_replacement(world, seen, *ordinal, replacement)?
            }
            Step::Member(ordinal, MemberStep::CreateClaim { bootstrap, identity }) => {
                let claim = Claim { bootstrap: bootstrap.clone(), identity: *identity, ..Claim::default() };
                create_claim(world, seen, *ordinal, claim)
            }
            Step::Member(ordinal, MemberStep::MarkClaim { identity, version }) => {
                changed(world.api.claims.get_mut(ordinal), |claim| {
                    (claim.claim.identity, claim.claim.version) = (Some(*identity), version.clone());
                })
            }
            Step::Member(ordinal, MemberStep::CreatePod { start }) => self.create_pod(world, *ordinal, start)?,
            Step::Member(ordinal, MemberStep::AnnotatePod { expected, serves_clients }) => {
                changed(world.api.pods.get_mut(ordinal), |pod| {
                    (pod.start.expected, pod.start.serves_clients) = (*expected, *serves_clients);
                    pod.leaving_since = pod.leaving_since.filter(|_| !serves_clients);
                })
            }
            Step::Member(ordinal, MemberStep::DeletePod { .. })
            | Step::Member(ordinal, MemberStep::RestartPod { .. }) => {
                if matches!(step, Step::Member(_, MemberStep::RestartPod { .. })) {
                    check_restart(world, *ordinal)?;
                }
                let effect = on_the_same_pod(world, seen, *ordinal, |_| {});
                if effect == Effect::Done {
                    world.delete_pod(*ordinal);
                }
                effect
            }
            Step::Member(ordinal, MemberStep::FencePod { .. }) => fence_pod(world, seen, *ordinal)?,
            Step::Member(ordinal, MemberStep::DeleteClaim) => delete_claim(world, seen, *ordinal)?,
            Step::Member(ordinal, MemberStep::DeletePeer) => {
                world.api.peers.remove(ordinal);
                Effect::Done
            }
            Step::Cluster(ClusterStep::ApplyService(_) | ClusterStep::ApplyDisruptionBudget { .. })
                if world.api.cluster.lives != seen.cluster.lives =>
            {
                Effect::Failed
            }
            Step::Cluster(ClusterStep::ApplyService(kind)) => {
                world.api.shared.services.insert(*kind);
                Effect::Done
            }
            Step::Cluster(ClusterStep::ApplyDisruptionBudget { min_available }) => apply_budget(world, *min_available)?,
            Step::Member(ordinal, MemberStep::RepairClaim) => {
                changed(world.api.claims.get_mut(ordinal), |claim| claim.claim.strayed = false)
            }
            Step::Member(ordinal, MemberStep::Relabel) => relabel(world, seen, *ordinal),
            Step::Member(ordinal, MemberStep::Resize) => resize(world, seen, *ordinal),
            Step::Member(ordinal, MemberStep::GrowClaim) => grow_claim(world, seen, *ordinal),
            Step::Member(_, MemberStep::AddLearner)
            | Step::Member(_, MemberStep::Promote { .. })
            | Step::Member(_, MemberStep::MoveLeader { .. })
            | Step::Member(_, MemberStep::RemoveMember { .. }) => self.change_membership(world, step)?,
            Step::Member(_, MemberStep::RecordDefragmentation { .. })
            | Step::Member(_, MemberStep::Defragment)
            | Step::Cluster(ClusterStep::Disarm(_)) => Effect::Done,
        })
    }

    fn create_pod(&self, world: &mut World, ordinal: Ordinal, start: &Start) -> Result<Effect, Broken> {
        if start.bootstrap_token.is_some() && world.api.cluster.cluster_id.is_some() {
            world.coverage.judge(Rule::BootstrappedOnce);
            if self.mutant == Some(Mutant::ForgetsTheBootstrap) {
                return Err(format!("c-{ordinal} bootstraps a cluster that is bootstrapped already"));
            }
            return Ok(Effect::Failed);
        }
        let template = world.api.templates.get(&ordinal).copied().unwrap_or_default();
        let Some(version) = world.api.peers.get(&ordinal).and_then(|peer| peer.version.clone()) else {
            return Ok(Effect::Failed);
        };
        if world.api.pods.contains_key(&ordinal) || is_refused(template) {
            return Ok(Effect::Failed);
        }
        let (uid, created) = (world.next_uid(), world.now);
        let pod = PodObject {
            uid,
            created,
            start: start.clone(),
            version,
            template,
            leaving_since: None,
            deleting: false,
            deleting_since: None,
            began: false,
            ready: false,
            node: None,
            problem: None,
            resize_refused: None,
            own_disk: None,
        };
        world.api.pods.insert(ordinal, pod);
        Ok(Effect::Done)
    }

    fn change_membership(&self, world: &mut World, step: &Step) -> Result<Effect, Broken> {
        if !world.etcd.as_ref().is_some_and(|etcd| etcd.has_quorum(world)) {
            return Ok(Effect::Failed);
        }
        if let Step::Member(ordinal, MemberStep::RemoveMember { member_id, .. }) = step {
            check_removal(world, *ordinal, *member_id, &self.findings)?;
        }
        world.replicate_to_a_quorum();
        let up = |world: &World, id: MemberId| {
            world.etcd.as_ref().is_some_and(|etcd| etcd.member(id).is_some_and(|it| etcd.is_up(world, it)))
        };
        let target_is_up = match step {
            Step::Member(_, MemberStep::Promote { member_id, .. }) => up(world, *member_id),
            Step::Member(_, MemberStep::MoveLeader { to_id, .. }) => up(world, *to_id),
            _ => true,
        };
        let in_sync = match step {
            Step::Member(_, MemberStep::Promote { member_id, .. }) => {
                let runs = world.processes.iter().find(|process| process.identity.member_id == *member_id);
                runs.is_some_and(|process| process.index == world.etcd.as_ref().map_or(0, |etcd| etcd.acknowledged))
            }
            _ => true,
        };
        let Some(etcd) = &mut world.etcd else { return Ok(Effect::Failed) };
        match step {
            Step::Member(ordinal, MemberStep::AddLearner) => {
                if etcd.member_at(*ordinal).is_some() {
                    return Ok(Effect::Done);
                }
                if etcd.members.iter().any(|member| member.learner) {
                    return Ok(Effect::Failed);
                }
                etcd.add_learner(*ordinal);
                world.coverage.judge(Rule::NewMembersAreLearners);
                if self.mutant == Some(Mutant::AddsVoters)
                    && let Some(member) = etcd.members.last_mut()
                {
                    member.learner = false;
                }
                if etcd.members.last().is_some_and(|member| !member.learner) {
                    return Err(format!("c-{ordinal} votes before it has caught up"));
                }
            }
            Step::Member(_, MemberStep::Promote { member_id, .. }) => {
                let learner = etcd.members.iter_mut().find(|member| member.id == *member_id && member.learner);
                let Some(learner) = learner.filter(|learner| learner.started && target_is_up && in_sync) else {
                    return Ok(Effect::Failed);
                };
                world.coverage.judge(Rule::VotersAreSound);
                if self.findings.contains(member_id) {
                    return Err(format!("{member_id} is to vote although its data is known to be wrong"));
                }
                learner.learner = false;
            }
            Step::Member(_, MemberStep::MoveLeader { to, to_id, .. }) => {
                if !target_is_up {
                    return Ok(Effect::Failed);
                }
                world.coverage.judge(Rule::LeadersAreSound);
                if self.findings.contains(to_id) {
                    return Err(format!("c-{to} is to lead although its data is known to be wrong"));
                }
                etcd.leader = Some(*to_id);
            }
            Step::Member(_, MemberStep::RemoveMember { member_id, .. }) => {
                etcd.members.retain(|member| member.id != *member_id)
            }
            _ => {}
        }
        Ok(Effect::Done)
    }
}
