//! What changes without a restart: labels and resources of running pods, and the size of volumes.

use super::effects::{Effect, changed, on_the_same_pod};
use super::templates::fits_no_node;
use super::world::{Api, World};
use crate::ordinal::Ordinal;

/// Gives a running pod other labels, and records it in its EtcdPeer.
pub fn relabel(world: &mut World, seen: &Api, ordinal: Ordinal) -> Effect {
    let wanted = seen.cluster.template;
    let made = seen.templates.get(&ordinal).copied();
    let Some(uid) = world.api.pods.get(&ordinal).map(|pod| pod.uid) else { return Effect::Failed };
    // The pod may have been changed before, and that not been recorded.
    let is_known = world.api.pods[&ordinal].template == wanted || Some(world.api.pods[&ordinal].template) == made;
    if !is_known || on_the_same_pod(world, seen, ordinal, |pod| pod.template = wanted) == Effect::Failed {
        return Effect::Failed;
    }
    // What its node does not have, it does not get.
    if !fits_no_node(wanted) {
        world.processes.iter_mut().filter(|it| it.pod == uid).for_each(|process| process.template = wanted);
    }
    if world.api.templates.get(&ordinal).copied() != made || !world.api.peers.contains_key(&ordinal) {
        return Effect::Failed;
    }
    world.api.templates.insert(ordinal, wanted);
    Effect::Done
}

/// Gives a running pod other resources, if Kubernetes lets it. With less memory, etcd may be killed.
pub fn resize(world: &mut World, seen: &Api, ordinal: Ordinal) -> Effect {
    if world.random.percent(25) {
        world.note(|| format!("kubernetes: c-{ordinal}'s pod can't be resized"));
        return on_the_same_pod(world, seen, ordinal, |pod| pod.resize_refused = Some(seen.cluster.template));
    }
    let effect = relabel(world, seen, ordinal);
    if effect == Effect::Done && world.random.percent(20) {
        let pod = world.api.pods.get(&ordinal).map(|pod| pod.uid);
        world.note(|| format!("kubelet: c-{ordinal} has too little memory and is killed"));
        world.processes.retain(|process| Some(process.pod) != pod || process.unkillable);
    }
    effect
}

pub fn grow_claim(world: &mut World, seen: &Api, ordinal: Ordinal) -> Effect {
    let size = seen.cluster.size;
    // Kubernetes refuses to make a volume smaller.
    changed(world.api.claims.get_mut(&ordinal).filter(|claim| claim.size <= size), |claim| claim.size = size)
}
