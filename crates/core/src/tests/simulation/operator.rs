//! The operator at work: it looks through its caches, plans, and takes one step after another; anything may happen between
//! two of them. Every rule about a step is checked where the step takes effect.

use std::collections::btree_map::Entry;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::mutants::Mutant;
use super::trace::{all_of, brief};
use super::world::{Api, Broken, ClaimObject, PodObject, REPLACE_AFTER, Storage, World, minor_of};
use crate::ailments::unwell_since;
use crate::observed::{Claim, Member, Observed, Peer};
use crate::plan::{Model, Plan, Start, Step, is_confirmed};
use crate::quorum::quorum;
use crate::status::status_to_report;
use crate::vigil::Vigil;

pub struct Operator {
    /// What its caches hold: each kind of object as it was at some time.
    pub cache: Api,
    pub mutant: Option<Mutant>,
    /// What it remembers of earlier looks, until it crashes.
    vigil: Vigil,
    work: Option<Work>,
}

/// A reconcile that has begun.
struct Work {
    /// What its caches held when it began.
    seen: Api,
    observed: Observed,
    plan: Plan,
    taken: usize,
    /// The members for which a step failed.
    failed: Vec<u32>,
}

/// Whether a step took effect, or failed as it may fail in real life.
#[derive(PartialEq, Eq)]
enum Effect {
    Done,
    Failed,
}

impl Operator {
    pub fn new(world: &World, mutant: Option<Mutant>) -> Self {
        Operator { cache: world.api.clone(), mutant, vigil: Vigil::default(), work: None }
    }

    pub fn is_working(&self) -> bool {
        self.work.is_some()
    }

    pub fn crash(&mut self, world: &mut World) {
        self.vigil = Vigil::default();
        if self.work.take().is_some() {
            world.note(|| "the operator crashes".to_owned());
        }
    }

    pub fn plan(&self, world: &World) -> Plan {
        Mutant::plan(self.mutant, &self.look(world, &self.cache))
    }

    /// What it observes through these objects, with what it remembers.
    fn look(&self, world: &World, seen: &Api) -> Observed {
        let mut observed = world.observe(seen);
        self.vigil.clone().keep(&mut observed);
        observed
    }

    pub fn begin(&mut self, world: &mut World) -> Result<(), Broken> {
        let mut observed = world.observe(&self.cache);
        self.vigil.keep(&mut observed);
        world.note_who_is_away(&observed);
        let plan = Mutant::plan(self.mutant, &observed);
        let changes = plan.steps.iter().filter(|step| step.changes_membership()).count();
        if changes > 1 {
            return Err(format!("more than one membership change in a plan: {plan:?}"));
        }
        world.note(|| match &plan.waiting {
            Some(waiting) => format!("the operator plans {} and waits: {}", all_of(&plan.steps), waiting.message),
            None => format!("the operator plans {}", all_of(&plan.steps)),
        });
        self.work = Some(Work { seen: self.cache.clone(), observed, plan, taken: 0, failed: Vec::new() });
        Ok(())
    }

    /// Takes the next step, or reports if there is none.
    pub fn go_on(&mut self, world: &mut World) -> Result<(), Broken> {
        let Some(mut work) = self.work.take() else { return Ok(()) };
        let Some(step) = work.plan.steps.get(work.taken).cloned() else {
            report(world, &work);
            return Ok(());
        };
        work.taken += 1;
        // What failed for one member is no reason to leave the others alone.
        if step.ordinal().is_some_and(|ordinal| work.failed.contains(&ordinal)) {
            self.work = Some(work);
            return Ok(());
        }
        let effect = self.carry_out(world, &work.seen, &step)?;
        world.note(|| format!("  {} {}", if effect == Effect::Done { "did" } else { "could not" }, brief(&step)));
        match (effect, step.ordinal()) {
            (Effect::Failed, None) => {
                report(world, &work);
                return Ok(());
            }
            (Effect::Failed, Some(ordinal)) => work.failed.push(ordinal),
            (Effect::Done, _) => {}
        }
        self.work = Some(work);
        Ok(())
    }

    /// Works without being disturbed.
    pub fn reconcile(&mut self, world: &mut World) -> Result<(), Broken> {
        self.begin(world)?;
        while self.is_working() {
            self.go_on(world)?;
        }
        Ok(())
    }

    fn carry_out(&self, world: &mut World, seen: &Api, step: &Step) -> Result<Effect, Broken> {
        if self.mutant != Some(Mutant::TrustsItsCaches)
            && step.needs_a_live_look()
            && !is_confirmed_by(self.mutant, step, &self.look(world, &world.api))
        {
            return Ok(Effect::Failed);
        }
        if step.needs_a_live_look() && world.api.cluster.paused {
            return Err(format!("{step:?} although the cluster is paused"));
        }
        Ok(match step {
            Step::RecordBirth(_) | Step::RecordClusterId(_) | Step::AcceptVersion(_) | Step::RecordLogVersion(_) => {
                record(world, seen, step)
            }
            // What belongs to an EtcdCluster that is gone is collected at once.
            Step::CreatePeer { .. } | Step::CreatePod { .. } if world.api.cluster.lives != seen.cluster.lives => {
                Effect::Failed
            }
            Step::CreatePeer { ordinal, model, .. } => create_peer(world, seen, *ordinal, model),
            Step::ReplacePeer { ordinal, .. } => replace_peer(world, seen, *ordinal)?,
            Step::DrainPod { ordinal } => {
                let now = world.now;
                changed(world.api.pods.get_mut(ordinal), |pod| {
                    (pod.start.serves_clients, pod.leaving_since) = (false, Some(now));
                })
            }
            Step::EnableDowngrade(_) | Step::CancelDowngrade => downgrade(world, step),
            Step::RecordMember { ordinal, identity, started } => changed(world.api.peers.get_mut(ordinal), |peer| {
                (peer.identity, peer.started) = (Some(*identity), *started);
            }),
            Step::RecordReplacement { ordinal, replacement } => {
                changed(world.api.peers.get_mut(ordinal), |peer| peer.replacement = Some(replacement.clone()))
            }
            Step::CreateClaim { ordinal, birth, identity } => {
                let claim = Claim { birth: birth.clone(), identity: *identity, ..Claim::default() };
                create_claim(world, *ordinal, claim)
            }
            Step::MarkClaim { ordinal, identity, version } => changed(world.api.claims.get_mut(ordinal), |claim| {
                (claim.claim.identity, claim.claim.version) = (Some(*identity), version.clone());
            }),
            Step::CreatePod { ordinal, start } => self.create_pod(world, *ordinal, start)?,
            Step::TellPod { ordinal, told, serves_clients } => changed(world.api.pods.get_mut(ordinal), |pod| {
                (pod.start.told, pod.start.serves_clients) = (*told, *serves_clients);
                pod.leaving_since = pod.leaving_since.filter(|_| !serves_clients);
            }),
            Step::DeletePod { ordinal, .. } | Step::RestartPod { ordinal, .. } => {
                let effect = on_the_same_pod(world, seen, *ordinal, |_| {});
                if effect == Effect::Done {
                    world.delete_pod(*ordinal);
                }
                effect
            }
            Step::FencePod { ordinal, .. } => fence_pod(world, seen, *ordinal)?,
            Step::DeleteClaim { ordinal } => delete_claim(world, seen, *ordinal)?,
            Step::DeletePeer { ordinal } => {
                world.api.peers.remove(ordinal);
                Effect::Done
            }
            // How running pods and volumes are changed makes no difference to the rules.
            Step::Relabel { .. } | Step::Resize { .. } | Step::GrowClaim { .. } => Effect::Done,
            Step::AddLearner { .. } | Step::Promote { .. } | Step::MoveLeader { .. } | Step::RemoveMember { .. } => {
                self.change_membership(world, step)?
            }
            Step::RecordDefragmentation { .. } | Step::Defragment { .. } | Step::Disarm(_) => Effect::Done,
        })
    }

    fn create_pod(&self, world: &mut World, ordinal: u32, start: &Start) -> Result<Effect, Broken> {
        if start.founding.is_some() && world.api.cluster.cluster_id.is_some() {
            if self.mutant == Some(Mutant::ForgetsTheBirth) {
                return Err(format!("c-{ordinal} founds a cluster that is born already"));
            }
            return Ok(Effect::Failed);
        }
        let template = world.api.templates.get(&ordinal).copied().unwrap_or_default();
        let Some(version) = world.api.peers.get(&ordinal).map(|peer| peer.version.clone()) else {
            return Ok(Effect::Failed);
        };
        if world.api.pods.contains_key(&ordinal) {
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
            own_disk: None,
        };
        world.api.pods.insert(ordinal, pod);
        Ok(Effect::Done)
    }

    fn change_membership(&self, world: &mut World, step: &Step) -> Result<Effect, Broken> {
        if !world.etcd.as_ref().is_some_and(|etcd| etcd.has_quorum(world)) {
            return Ok(Effect::Failed);
        }
        if let Step::RemoveMember { ordinal, member_id, .. } = step {
            check_removal(world, *ordinal, *member_id)?;
        }
        world.replicate_to_a_quorum();
        let up = |world: &World, id: u64| {
            world.etcd.as_ref().is_some_and(|etcd| etcd.member(id).is_some_and(|it| etcd.is_up(world, it)))
        };
        let target_is_up = match step {
            Step::Promote { member_id, .. } => up(world, *member_id),
            Step::MoveLeader { to_id, .. } => up(world, *to_id),
            _ => true,
        };
        let in_sync = match step {
            Step::Promote { member_id, .. } => {
                let runs = world.processes.iter().find(|process| process.identity.member_id == *member_id);
                runs.is_some_and(|process| process.index == world.etcd.as_ref().map_or(0, |etcd| etcd.acknowledged))
            }
            _ => true,
        };
        let Some(etcd) = &mut world.etcd else { return Ok(Effect::Failed) };
        match step {
            Step::AddLearner { ordinal } => {
                if etcd.member_at(*ordinal).is_some() {
                    return Ok(Effect::Done);
                }
                if etcd.members.iter().any(|member| member.learner) {
                    return Ok(Effect::Failed);
                }
                etcd.add_learner(*ordinal);
                if self.mutant == Some(Mutant::AddsVoters)
                    && let Some(member) = etcd.members.last_mut()
                {
                    member.learner = false;
                }
                if etcd.members.last().is_some_and(|member| !member.learner) {
                    return Err(format!("c-{ordinal} votes before it has caught up"));
                }
            }
            Step::Promote { member_id, .. } => {
                let learner = etcd.members.iter_mut().find(|member| member.id == *member_id && member.learner);
                let Some(learner) = learner.filter(|learner| learner.started && target_is_up && in_sync) else {
                    return Ok(Effect::Failed);
                };
                learner.learner = false;
            }
            Step::MoveLeader { to_id, .. } => {
                if !target_is_up {
                    return Ok(Effect::Failed);
                }
                etcd.leader = Some(*to_id);
            }
            Step::RemoveMember { member_id, .. } => etcd.members.retain(|member| member.id != *member_id),
            _ => {}
        }
        Ok(Effect::Done)
    }
}

/// Writes the status, unless the EtcdCluster has changed since it was read.
fn report(world: &mut World, work: &Work) {
    for ordinal in work.observed.answers.iter().filter(|(_, answer)| answer.is_ok()).map(|(ordinal, _)| ordinal) {
        // It is written into the EtcdPeer that was seen; another one of that name knows nothing of it.
        let same = world
            .api
            .peers
            .get_mut(ordinal)
            .filter(|peer| Some(&peer.version) == work.seen.peers.get(ordinal).map(|it| &it.version));
        if let Some(peer) = same {
            peer.proven = true;
        }
    }
    let cluster = &mut world.api.cluster;
    if cluster.version != work.seen.cluster.version {
        return;
    }
    let now = Time(Timestamp::from_second(world.now).unwrap());
    let status = status_to_report(&work.observed, &work.plan, &cluster.status, None, &now);
    let unwell = unwell_since(&work.observed);
    if cluster.status != status || cluster.unwell_since != unwell {
        (cluster.status, cluster.unwell_since) = (status, unwell);
        cluster.version += 1;
    }
}

fn record(world: &mut World, seen: &Api, step: &Step) -> Effect {
    let cluster = &mut world.api.cluster;
    if cluster.version != seen.cluster.version {
        return Effect::Failed;
    }
    cluster.version += 1;
    match step {
        Step::RecordBirth(birth) => {
            (cluster.birth, cluster.accepted) = (Some(birth.clone()), Some(seen.cluster.wanted.to_owned()));
            cluster.oldest_log = cluster.accepted.clone();
        }
        Step::AcceptVersion(version) => {
            cluster.accepted = Some(version.clone());
            cluster.oldest_log = cluster.oldest_log.take().map(|oldest| oldest.min(version.clone()));
        }
        Step::RecordLogVersion(version) => cluster.oldest_log = Some(version.clone()),
        Step::RecordClusterId(id) => cluster.cluster_id = Some(*id),
        _ => {}
    }
    Effect::Done
}

/// Makes an EtcdPeer as the spec that was seen asks for, or like another one.
fn create_peer(world: &mut World, seen: &Api, ordinal: u32, model: &Model) -> Effect {
    let template = seen.cluster.template;
    let (version, template) = match model {
        Model::Spec => (seen.cluster.wanted.to_owned(), template),
        Model::SpecWithVersion(version) => (version.clone(), template),
        Model::Member(other) => match (seen.peers.get(other), seen.templates.get(other)) {
            (Some(peer), Some(template)) => (peer.version.clone(), *template),
            _ => return Effect::Failed,
        },
    };
    if let Entry::Vacant(vacant) = world.api.peers.entry(ordinal) {
        vacant.insert(Peer { version, ..Peer::default() });
        world.api.templates.insert(ordinal, template);
    }
    Effect::Done
}

/// Nobody is restarted if the others could not go on, and nobody who leads.
fn replace_peer(world: &mut World, seen: &Api, ordinal: u32) -> Result<Effect, Broken> {
    let is_same =
        seen.peers.get(&ordinal).map(|peer| &peer.version) == world.api.peers.get(&ordinal).map(|it| &it.version);
    if !is_same || on_the_same_pod(world, seen, ordinal, |_| {}) == Effect::Failed {
        return Ok(Effect::Failed);
    }
    let member = world.etcd.as_ref().and_then(|etcd| Some((etcd, etcd.member_at(ordinal)?)));
    if let Some((etcd, member)) = member.filter(|(etcd, member)| etcd.is_up(world, member)) {
        let voters = etcd.voters().count();
        let others = etcd.voters().filter(|it| it.id != member.id && etcd.is_up(world, it)).count();
        if voters > 2 && etcd.has_quorum(world) && others < quorum(voters) {
            return Err(format!("c-{ordinal} is restarted, and only {others} of the other voters are up"));
        }
        if voters > 1 && etcd.leader == Some(member.id) {
            return Err(format!("c-{ordinal} is restarted while it leads"));
        }
        let is_doomed = world.api.claims.get(&ordinal).is_some_and(|claim| claim.claim.deleting);
        if world.storage == Storage::Ephemeral || is_doomed {
            return Err(format!("c-{ordinal} is restarted, and its data goes with its pod"));
        }
    }
    world.api.peers.remove(&ordinal);
    world.delete_pod(ordinal);
    Ok(Effect::Done)
}

fn downgrade(world: &mut World, step: &Step) -> Effect {
    let has_quorum = world.etcd.as_ref().is_some_and(|etcd| etcd.has_quorum(world));
    let Some(etcd) = world.etcd.as_mut().filter(|_| has_quorum) else { return Effect::Failed };
    etcd.downgrade = match step {
        Step::EnableDowngrade(version) if etcd.minor == Some(minor_of(version) + 1) => Some(minor_of(version)),
        Step::EnableDowngrade(_) => return Effect::Failed,
        _ => None,
    };
    Effect::Done
}

/// Does something to the pod that the cache shows, if it is still the same.
fn on_the_same_pod(world: &mut World, seen: &Api, ordinal: u32, act: impl FnOnce(&mut PodObject)) -> Effect {
    let known = seen.pods.get(&ordinal).map(|pod| pod.uid);
    changed(world.api.pods.get_mut(&ordinal).filter(|pod| Some(pod.uid) == known), act)
}

/// Rule 6: two processes never share a data dir or an identity.
fn fence_pod(world: &mut World, seen: &Api, ordinal: u32) -> Result<Effect, Broken> {
    if on_the_same_pod(world, seen, ordinal, |_| {}) == Effect::Failed {
        return Ok(Effect::Failed);
    }
    let runs = world.process_of(ordinal).filter(|process| world.machines[process.machine].on);
    let is_member = |id: u64| world.etcd.as_ref().is_some_and(|etcd| etcd.member(id).is_some());
    if runs.is_some_and(|process| is_member(process.identity.member_id)) {
        return Err(format!("c-{ordinal}'s pod is given up while its member may still run"));
    }
    world.remove_pod(ordinal);
    Ok(Effect::Done)
}

/// Rule 4: a volume is deleted only when its member has left, and never while quorum is lost.
fn delete_claim(world: &mut World, seen: &Api, ordinal: u32) -> Result<Effect, Broken> {
    let known = seen.claims.get(&ordinal).map(|claim| claim.uid);
    let Some(claim) = world.api.claims.get(&ordinal).filter(|claim| Some(claim.uid) == known) else {
        return Ok(Effect::Failed);
    };
    let Some(etcd) = world.etcd.as_ref().filter(|etcd| etcd.has_quorum(world)) else {
        return Err(format!("c-{ordinal}'s claim is deleted while no quorum answers"));
    };
    let held = claim.disk.and_then(|disk| world.disks[disk].data).map(|data| data.identity.member_id);
    if let Some(member) = held.and_then(|id| etcd.member(id)).or(etcd.member_at(ordinal)) {
        return Err(format!("c-{ordinal}'s claim is deleted, and {:x} is a member", member.id));
    }
    Ok(changed(world.api.claims.get_mut(&ordinal), |claim| claim.claim.deleting = true))
}

fn is_confirmed_by(mutant: Option<Mutant>, step: &Step, live: &Observed) -> bool {
    match mutant {
        // What is wrong with its plans is wrong with the second look as well.
        Some(_) => Mutant::plan(mutant, live).steps.iter().any(|planned| planned.is_same_act(step)),
        None => is_confirmed(step, live),
    }
}

fn changed<T>(object: Option<&mut T>, change: impl FnOnce(&mut T)) -> Effect {
    match object {
        Some(object) => {
            change(object);
            Effect::Done
        }
        None => Effect::Failed,
    }
}

fn create_claim(world: &mut World, ordinal: u32, claim: Claim) -> Effect {
    match world.api.claims.get(&ordinal).map(|found| &found.claim) {
        Some(found) => {
            let ours = (claim.birth.is_some() && found.birth == claim.birth)
                || (claim.identity.is_some() && found.identity == claim.identity);
            if ours { Effect::Done } else { Effect::Failed }
        }
        None => {
            let uid = world.next_uid();
            world.api.claims.insert(ordinal, ClaimObject { uid, claim, disk: None, chosen: None });
            Effect::Done
        }
    }
}

/// Rule 1: the healthy voters left are a quorum of what is left; and nobody is given up without need.
fn check_removal(world: &World, ordinal: u32, id: u64) -> Result<(), Broken> {
    let Some(etcd) = &world.etcd else { return Ok(()) };
    let Some(leaving) = etcd.member(id) else { return Ok(()) };
    if etcd.leader == Some(id) {
        return Err(format!("c-{ordinal} is removed while it leads"));
    }
    let left: Vec<&Member> = etcd.voters().filter(|voter| voter.id != id).collect();
    let up = left.iter().filter(|voter| etcd.is_up(world, voter)).count();
    if !leaving.learner && up < quorum(left.len()) {
        return Err(format!("c-{ordinal} is removed, and only {up} of the {} that are left are up", left.len()));
    }
    if ordinal >= world.api.cluster.replicas {
        return Ok(());
    }
    let claim = world.api.claims.get(&ordinal);
    let disk = world.disk_of(ordinal).map(|disk| &world.disks[disk]);
    let keeps_its_data = claim.is_none_or(|claim| !claim.claim.deleting)
        && disk.and_then(|disk| disk.data).is_some_and(|data| data.identity.member_id == id && !data.corrupt);
    let away_for_long = world.away_since.get(&id).is_some_and(|since| world.now - since >= REPLACE_AFTER)
        && !etcd.is_up(world, leaving);
    let out_of_service = claim.and_then(|claim| claim.chosen).is_some_and(|node| world.api.nodes[node].fenced);
    let in_the_way = leaving.learner && !etcd.is_up(world, leaving);
    let outdated = world
        .process_of(ordinal)
        .is_some_and(|it| it.version != world.api.cluster.wanted || it.template != world.api.cluster.template);
    let is_remade = world.storage == Storage::Ephemeral && outdated;
    if keeps_its_data && !away_for_long && !out_of_service && !in_the_way && !is_remade {
        return Err(format!("c-{ordinal} is given up although it has its data and was not away for long"));
    }
    Ok(())
}
