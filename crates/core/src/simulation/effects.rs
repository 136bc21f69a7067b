//! The effects of steps on the simulated world. Every rule about a step is checked where it takes effect.

use std::collections::BTreeSet;
use std::collections::btree_map::Entry;

use super::coverage::Rule;
use super::etcd::Etcd;
use super::world::{Api, Broken, ClaimObject, PodObject, REPLACE_AFTER, Storage, World};
use crate::cluster::observed::{Claim, Member, MemberId, Peer, Replacement};
use crate::cluster::plan::{Model, Step};
use crate::cluster::quorum::quorum;
use crate::cluster::step::ClusterStep;
use crate::cluster::tests::support::seconds;
use crate::ordinal::Ordinal;

/// Whether a step took effect, or failed as it may fail in a real cluster.
#[derive(PartialEq, Eq)]
pub enum Effect {
    Done,
    Failed,
}

pub fn record(world: &mut World, seen: &Api, step: &Step) -> Result<Effect, Broken> {
    if world.api.cluster.version != seen.cluster.version {
        return Ok(Effect::Failed);
    }
    if world.is_obstructed(&world.api) {
        return Err(format!("{step:?} although its volumes are in conflict"));
    }
    let cluster = &mut world.api.cluster;
    cluster.version += 1;
    match step {
        Step::Cluster(ClusterStep::RecordBootstrap(bootstrap)) => {
            (cluster.bootstrap, cluster.accepted) = (Some(bootstrap.clone()), Some(seen.cluster.wanted.clone()));
            cluster.oldest_log = cluster.accepted.clone();
        }
        Step::Cluster(ClusterStep::AcceptVersion(version)) => {
            cluster.accepted = Some(version.clone());
            cluster.oldest_log = cluster.oldest_log.take().map(|oldest| oldest.min(version.clone()));
        }
        Step::Cluster(ClusterStep::RecordLogVersion(version)) => cluster.oldest_log = Some(version.clone()),
        Step::Cluster(ClusterStep::RecordClusterId(id)) => cluster.cluster_id = Some(*id),
        _ => {}
    }
    Ok(Effect::Done)
}

/// An eviction must leave a quorum of the voters, unless the operator can't know how many there are.
pub fn apply_budget(world: &mut World, min_available: usize) -> Result<Effect, Broken> {
    if let Some(etcd) = world.known_etcd() {
        world.coverage.judge(Rule::BudgetKeepsTheQuorum);
        let needed = quorum(etcd.voters().count());
        if min_available < needed {
            return Err(format!("the budget keeps {min_available} voters available, and a quorum is {needed}"));
        }
    }
    (world.api.shared.min_available, world.api.shared.budget_is_as_applied) = (Some(min_available), true);
    Ok(Effect::Done)
}

/// Creates an EtcdPeer from the cached spec, or like another one.
pub fn create_peer(world: &mut World, seen: &Api, ordinal: Ordinal, model: &Model) -> Effect {
    let template = seen.cluster.template;
    let (version, template) = match model {
        Model::Spec => (Some(seen.cluster.wanted.clone()), template),
        Model::SpecWithVersion(version) => (Some(version.clone()), template),
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

/// No member is restarted if the others would lose their quorum, and never the leader.
pub fn recreate_peer(world: &mut World, seen: &Api, ordinal: Ordinal) -> Result<Effect, Broken> {
    let made_from =
        |api: &Api| (api.peers.get(&ordinal).map(|it| it.version.clone()), api.templates.get(&ordinal).copied());
    let pod = |api: &Api| api.pods.get(&ordinal).map(|pod| pod.uid);
    if made_from(seen) != made_from(&world.api) || pod(seen) != pod(&world.api) {
        return Ok(Effect::Failed);
    }
    let member = world.etcd.as_ref().and_then(|etcd| Some((etcd, etcd.member_at(ordinal)?)));
    if let Some((etcd, member)) = member.filter(|(etcd, member)| etcd.is_up(world, member)) {
        let voters = etcd.voters().count();
        let others = etcd.voters().filter(|it| it.id != member.id && etcd.is_up(world, it)).count();
        if voters > 2 && etcd.has_quorum(world) {
            world.coverage.judge(Rule::RestartKeepsTheQuorum);
            if others < quorum(voters) {
                return Err(format!("c-{ordinal} is restarted, and only {others} of the other voters are up"));
            }
        }
        if voters > 1 {
            world.coverage.judge(Rule::RestartSparesTheLeader);
            if etcd.leader == Some(member.id) {
                return Err(format!("c-{ordinal} is restarted while it leads"));
            }
        }
        world.coverage.judge(Rule::RestartKeepsTheData);
        let is_claim_deleting = world.api.claims.get(&ordinal).is_some_and(|claim| claim.claim.deleting);
        if world.storage == Storage::Ephemeral || is_claim_deleting {
            return Err(format!("c-{ordinal} is restarted, and its data goes with its pod"));
        }
    }
    world.api.peers.remove(&ordinal);
    world.delete_pod(ordinal);
    Ok(Effect::Done)
}

pub fn downgrade(world: &mut World, step: &Step) -> Effect {
    let has_quorum = world.etcd.as_ref().is_some_and(|etcd| etcd.has_quorum(world));
    let Some(etcd) = world.etcd.as_mut().filter(|_| has_quorum) else { return Effect::Failed };
    etcd.downgrade = match step {
        Step::Cluster(ClusterStep::EnableDowngrade(version)) if etcd.minor == Some(version.minor + 1) => {
            Some(version.minor)
        }
        Step::Cluster(ClusterStep::EnableDowngrade(_)) => return Effect::Failed,
        _ => None,
    };
    Effect::Done
}

/// Changes the pod in the cache, if it is still the same.
pub fn on_the_same_pod(world: &mut World, seen: &Api, ordinal: Ordinal, act: impl FnOnce(&mut PodObject)) -> Effect {
    let known = seen.pods.get(&ordinal).map(|pod| pod.uid);
    changed(world.api.pods.get_mut(&ordinal).filter(|pod| Some(pod.uid) == known), act)
}

/// No healthy member is restarted only because the operator can't reach it, and none whose data would be lost.
pub fn check_restart(world: &World, ordinal: Ordinal) -> Result<(), Broken> {
    let Some((pod, process)) = world.api.pods.get(&ordinal).zip(world.process_of(ordinal)) else { return Ok(()) };
    world.coverage.judge(Rule::RestartSparesTheHealthy);
    let takes_part = |etcd: &Etcd| etcd.has_quorum(world) && etcd.connects(world, process);
    if pod.ready && world.answers(process) && world.etcd.as_ref().is_some_and(takes_part) {
        return Err(format!("c-{ordinal} is restarted although it is well"));
    }
    if pod.own_disk.is_some_and(|disk| world.disks[disk].data.is_some()) {
        return Err(format!("c-{ordinal} is restarted, and its data goes with its pod"));
    }
    Ok(())
}

/// Rule 6: two processes never share a data dir or an identity.
pub fn fence_pod(world: &mut World, seen: &Api, ordinal: Ordinal) -> Result<Effect, Broken> {
    if on_the_same_pod(world, seen, ordinal, |_| {}) == Effect::Failed {
        return Ok(Effect::Failed);
    }
    world.coverage.judge(Rule::FencedPodsDoNotRun);
    let runs = world.process_of(ordinal).filter(|process| world.machines[process.machine].on);
    let is_member = |id: MemberId| world.etcd.as_ref().is_some_and(|etcd| etcd.member(id).is_some());
    if runs.is_some_and(|process| is_member(process.identity.member_id)) {
        return Err(format!("c-{ordinal}'s pod is given up while its member may still run"));
    }
    world.remove_pod(ordinal);
    Ok(Effect::Done)
}

/// Rule 4: a volume is deleted only when its member has left, and never while quorum is lost.
pub fn delete_claim(world: &mut World, seen: &Api, ordinal: Ordinal) -> Result<Effect, Broken> {
    let known = seen.claims.get(&ordinal).map(|claim| claim.uid);
    let Some(claim) = world.api.claims.get(&ordinal).filter(|claim| Some(claim.uid) == known) else {
        return Ok(Effect::Failed);
    };
    world.coverage.judge(Rule::ClaimsOutliveTheirMembers);
    let Some(etcd) = world.etcd.as_ref().filter(|etcd| etcd.has_quorum(world)) else {
        return Err(format!("c-{ordinal}'s claim is deleted while no quorum answers"));
    };
    let held = claim.disk.and_then(|disk| world.disks[disk].data).map(|data| data.identity.member_id);
    if let Some(member) = held.and_then(|id| etcd.member(id)).or(etcd.member_at(ordinal)) {
        return Err(format!("c-{ordinal}'s claim is deleted, and {} is a member", member.id));
    }
    Ok(changed(world.api.claims.get_mut(&ordinal), |claim| claim.claim.deleting = true))
}

/// No two members of a name are replaced within a minute.
pub fn record_replacement(
    world: &mut World,
    seen: &Api,
    ordinal: Ordinal,
    replacement: &Replacement,
) -> Result<Effect, Broken> {
    let last = |api: &Api| api.peers.get(&ordinal).and_then(|peer| peer.replacement.clone());
    // If the last one does not show in the cache, the removal that follows is not confirmed.
    if let Some(last) = last(&world.api).filter(|it| last(seen).as_ref() == Some(it)) {
        world.coverage.judge(Rule::ReplacementsBackOff);
        let passed = world.now.duration_since(last.at);
        if last.member_id != replacement.member_id && passed < seconds(60) {
            return Err(format!("c-{ordinal} is replaced again after {} s", passed.as_secs()));
        }
    }
    Ok(changed(world.api.peers.get_mut(&ordinal), |peer| peer.replacement = Some(replacement.clone())))
}

pub fn changed<T>(object: Option<&mut T>, change: impl FnOnce(&mut T)) -> Effect {
    match object {
        Some(object) => {
            change(object);
            Effect::Done
        }
        None => Effect::Failed,
    }
}

pub fn create_claim(world: &mut World, seen: &Api, ordinal: Ordinal, claim: Claim) -> Effect {
    match world.api.claims.get(&ordinal).map(|found| &found.claim) {
        Some(found) => {
            let ours = (claim.bootstrap.is_some() && found.bootstrap == claim.bootstrap)
                || (claim.identity.is_some() && found.identity == claim.identity);
            if ours { Effect::Done } else { Effect::Failed }
        }
        None => {
            let uid = world.next_uid();
            let size = seen.cluster.size;
            world.api.claims.insert(ordinal, ClaimObject { uid, claim, disk: None, chosen: None, size });
            Effect::Done
        }
    }
}

/// Rule 1: the healthy voters that remain are a quorum of those that remain; and no member is replaced without need.
pub fn check_removal(
    world: &World,
    ordinal: Ordinal,
    id: MemberId,
    known_corrupt: &BTreeSet<MemberId>,
) -> Result<(), Broken> {
    let Some(etcd) = &world.etcd else { return Ok(()) };
    let Some(leaving) = etcd.member(id) else { return Ok(()) };
    world.coverage.judge(Rule::RemovalSparesTheLeader);
    if etcd.leader == Some(id) {
        return Err(format!("c-{ordinal} is removed while it leads"));
    }
    let left: Vec<&Member> = etcd.voters().filter(|voter| voter.id != id).collect();
    let up = left.iter().filter(|voter| etcd.is_up(world, voter)).count();
    if !leaving.learner {
        world.coverage.judge(Rule::RemovalKeepsTheQuorum);
    }
    if !leaving.learner && up < quorum(left.len()) {
        return Err(format!("c-{ordinal} is removed, and only {up} of the {} that are left are up", left.len()));
    }
    if !leaving.learner && !known_corrupt.is_empty() {
        world.coverage.judge(Rule::RemovalKeepsSoundData);
        if !left.iter().any(|voter| etcd.is_up(world, voter) && !known_corrupt.contains(&voter.id)) {
            return Err(format!("c-{ordinal} is removed, and only data that is known to be wrong is left"));
        }
    }
    if !ordinal.is_among_first(world.api.cluster.replicas) {
        return Ok(());
    }
    world.coverage.judge(Rule::RemovalIsNeeded);
    let claim = world.api.claims.get(&ordinal);
    let disk = world.disk_of(ordinal).map(|disk| &world.disks[disk]);
    let keeps_its_data = claim.is_none_or(|claim| !claim.claim.deleting)
        && disk.and_then(|disk| disk.data).is_some_and(|data| data.identity.member_id == id && !data.corrupt);
    let away_for_long =
        world.away_since.get(&id).is_some_and(|since| world.now.duration_since(*since) >= REPLACE_AFTER)
            && !etcd.is_up(world, leaving);
    // It was told to stop long ago, and its node does not say whether it did.
    let is_evicted = world.api.pods.get(&ordinal).is_some_and(|pod| {
        let is_down = pod.node.is_some_and(|node| world.api.nodes[node].down_since.is_some());
        is_down && pod.deleting_since.is_some_and(|at| world.now.duration_since(at) >= REPLACE_AFTER)
    });
    let out_of_service = claim.and_then(|claim| claim.chosen).is_some_and(|node| world.api.nodes[node].fenced);
    // An unreachable learner is removed for a voter that is needed more: its data is only a copy.
    let is_out_of_reach = |machine: &usize| world.hidden.contains(machine) || world.misrouted.contains(machine);
    let is_hidden = world.process_of(ordinal).is_some_and(|process| is_out_of_reach(&process.machine));
    let in_the_way = leaving.learner && (is_hidden || !etcd.is_up(world, leaving));
    let outdated = world
        .process_of(ordinal)
        .is_some_and(|it| it.version != world.api.cluster.wanted || it.template != world.api.cluster.template);
    let is_remade = world.storage == Storage::Ephemeral && outdated;
    if keeps_its_data && !away_for_long && !is_evicted && !out_of_service && !in_the_way && !is_remade {
        return Err(format!("c-{ordinal} is given up although it has its data and was not away for long"));
    }
    Ok(())
}
