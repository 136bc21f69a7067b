//! The operator at work: it observes through its caches, plans, and takes one step after another; anything may happen
//! between two of them.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::coverage::Rule;
use super::effects::{
    Effect, apply_budget, changed, check_removal, check_restart, create_claim, create_peer, delete_claim, downgrade,
    fence_pod, on_the_same_pod, record, record_replacement, recreate_peer,
};
use super::in_place::{grow_claim, relabel, resize};
use super::mutants::Mutant;
use super::rules::{check_plan, check_status};
use super::shared::Shared;
use super::templates::is_refused;
use super::trace::{all_of, brief};
use super::world::{Api, Broken, PodObject, World};
use crate::cluster::diagnosis::unhealthy_since;
use crate::cluster::health_history::HealthHistory;
use crate::cluster::observed::{Claim, MemberId, Observed, Peer};
use crate::cluster::plan::{Plan, Start, Step, is_confirmed};
use crate::cluster::status::status_to_report;
use crate::cluster::step::{Blocked, ClusterStep, MemberStep};
use crate::ordinal::Ordinal;

pub struct Operator {
    /// What its caches hold: each kind of object, possibly stale.
    pub cache: Api,
    pub mutant: Option<Mutant>,
    /// What it remembers of earlier observations, until it crashes.
    history: HealthHistory,
    /// The members whose data was found to differ, until a comparison clears them.
    findings: BTreeSet<MemberId>,
    work: Option<Work>,
}

/// A reconcile in progress.
struct Work {
    /// What its caches held when it started.
    seen: Api,
    observed: Observed,
    plan: Plan,
    taken: usize,
    /// The members for which a step failed.
    failed: Vec<Ordinal>,
}

impl Operator {
    pub fn new(world: &World, mutant: Option<Mutant>) -> Self {
        Operator {
            cache: world.api.clone(),
            mutant,
            history: HealthHistory::default(),
            findings: BTreeSet::new(),
            work: None,
        }
    }

    pub fn is_working(&self) -> bool {
        self.work.is_some()
    }

    /// Whether it was at work.
    pub fn crash(&mut self, world: &mut World) -> bool {
        (self.history, self.findings) = (HealthHistory::default(), BTreeSet::new());
        // Nor does it know any more what it applied.
        world.api.shared.services.clear();
        world.api.shared.budget_is_as_applied = false;
        let was_working = self.work.take().is_some();
        if was_working {
            world.note(|| "the operator crashes".to_owned());
        }
        was_working
    }

    pub fn plan(&self, world: &World) -> Plan {
        Mutant::plan(self.mutant, &self.look(world, &self.cache))
    }

    /// What it observes through these objects, together with what it remembers.
    fn look(&self, world: &World, seen: &Api) -> Observed {
        let mut observed = world.observe(seen);
        self.history.clone().keep(&mut observed);
        observed.remembered.differing = world.differing(&self.findings).unwrap_or_else(|| self.findings.clone());
        observed
    }

    /// What it observes when it confirms a step. No member is replaced because of an earlier comparison.
    fn look_again(&self, world: &World, step: &Step) -> Observed {
        let mut observed = self.look(world, &world.api);
        if matches!(step, Step::Member(_, MemberStep::RemoveMember { member_id, .. }) if self.findings.contains(member_id))
        {
            observed.remembered.differing = world.differing(&self.findings).unwrap_or_default();
        }
        observed
    }

    pub fn begin(&mut self, world: &mut World) -> Result<(), Broken> {
        let mut observed = world.observe(&self.cache);
        self.history.keep(&mut observed);
        // An inconclusive comparison keeps the earlier findings, except about members that have left.
        let is_member = |id: &MemberId| observed.etcd.membership.as_ref().is_none_or(|it| it.member(*id).is_some());
        self.findings.retain(is_member);
        self.findings = world.differing(&self.findings).unwrap_or_else(|| self.findings.clone());
        observed.remembered.differing = self.findings.clone();
        world.note_who_is_away(&observed);
        let plan = Mutant::plan(self.mutant, &observed);
        world.coverage.wait(&plan);
        world.note(|| match &plan.waiting {
            Some(waiting) => format!("the operator plans {} and waits: {}", all_of(&plan.steps), waiting.message),
            None => format!("the operator plans {}", all_of(&plan.steps)),
        });
        check_plan(world, &self.cache, &observed, &plan)?;
        self.work = Some(Work { seen: self.cache.clone(), observed, plan, taken: 0, failed: Vec::new() });
        Ok(())
    }

    /// Takes the next step, or reports if there is none. Whether it was at work.
    pub fn go_on(&mut self, world: &mut World) -> Result<bool, Broken> {
        let Some(mut work) = self.work.take() else { return Ok(false) };
        let Some(step) = work.plan.steps.get(work.taken) else {
            return report(world, &work).map(|()| true);
        };
        work.taken += 1;
        // A failed step for one member does not block the others.
        if step.ordinal().is_some_and(|ordinal| work.failed.contains(&ordinal)) {
            self.work = Some(work);
            return Ok(true);
        }
        let effect = self.carry_out(world, &work.seen, step)?;
        world.coverage.take(step, effect == Effect::Done);
        world.note(|| format!("  {} {}", if effect == Effect::Done { "did" } else { "could not" }, brief(step)));
        match (effect, step.blocked_by_failure()) {
            (Effect::Failed, Blocked::Everything) => {
                return report(world, &work).map(|()| true);
            }
            (Effect::Failed, Blocked::Member(ordinal)) => work.failed.push(ordinal),
            (Effect::Failed, Blocked::Nothing) | (Effect::Done, _) => {}
        }
        self.work = Some(work);
        Ok(true)
    }

    /// What the reconcile in progress does.
    pub fn planned(&self) -> Option<&Plan> {
        self.work.as_ref().map(|work| &work.plan)
    }

    /// Whether the reconcile in progress has nothing to do or to wait for, and found all members healthy.
    pub fn sees_nothing_to_do(&self) -> bool {
        self.work.as_ref().is_some_and(|Work { observed, plan, .. }| {
            let mut members = observed.etcd.membership.iter().flat_map(|membership| &membership.members);
            let nothing_goes = observed.objects.pods.values().all(|pod| !pod.deleting);
            *plan == Plan::default() && nothing_goes && members.all(|member| observed.is_healthy(member))
        })
    }

    /// Reconciles without interruption.
    pub fn reconcile(&mut self, world: &mut World) -> Result<(), Broken> {
        self.begin(world)?;
        self.finish(world)
    }

    /// Takes all remaining steps of the reconcile in progress.
    pub fn finish(&mut self, world: &mut World) -> Result<(), Broken> {
        while self.is_working() {
            self.go_on(world)?;
        }
        Ok(())
    }

    fn carry_out(&self, world: &mut World, seen: &Api, step: &Step) -> Result<Effect, Broken> {
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

/// Writes the status, unless the EtcdCluster has changed since it was read.
fn report(world: &mut World, work: &Work) -> Result<(), Broken> {
    for ordinal in work.observed.etcd.answers.iter().filter(|(_, answer)| answer.is_ok()).map(|(ordinal, _)| ordinal) {
        // The pod of an earlier EtcdPeer may be the one that answers.
        let made_from = work.seen.pods.get(ordinal).map(|pod| (Some(&pod.version), pod.template));
        let template = world.api.templates.get(ordinal).copied().unwrap_or_default();
        let is_same = |peer: &Peer| Some((peer.version.as_ref(), template)) == made_from;
        if world.api.peers.get(ordinal).is_some_and(|peer| !peer.proven && is_same(peer))
            && let Some(peer) = world.api.peers.get_mut(ordinal)
        {
            peer.proven = true;
        }
    }
    let cluster = &mut world.api.cluster;
    if cluster.version != work.seen.cluster.version {
        return Ok(());
    }
    let now = Time(world.now);
    let status = status_to_report(&work.observed, &work.plan, &cluster.status, None, &now);
    check_status(&work.observed, &work.plan, &status)?;
    let unhealthy = unhealthy_since(&work.observed);
    if *cluster.status != status || cluster.unhealthy_since != unhealthy {
        (cluster.status, cluster.unhealthy_since) = (Shared::new(status), unhealthy);
        cluster.version += 1;
    }
    Ok(())
}

fn is_confirmed_by(mutant: Option<Mutant>, step: &Step, live: &Observed) -> bool {
    match mutant {
        // The defect of its plans is in the live confirmation as well.
        Some(_) => Mutant::plan(mutant, live).steps.iter().any(|planned| planned.is_same_act(step)),
        None => is_confirmed(step, live),
    }
}
