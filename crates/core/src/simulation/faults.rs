//! The events that may happen, and the random choice of the next one.

use super::operator::Operator;
use super::strangers::{clear_the_way, get_in_the_way};
use super::world::{Broken, Machine, Process, Storage, World};
use crate::cluster::observed::{MemberId, ServiceKind, SharedObjects};
use crate::cluster::tests::support::{seconds, version};
use crate::ordinal::Ordinal;

/// One event. `WEIGHTS` has how often each happens.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// The operator observes and plans, takes one step, or works until its plan is done.
    Begin,
    GoOn,
    Reconcile,
    /// The operator crashes, or the response to its last step is lost: it will observe again.
    Crash,
    /// One or all of its caches catch up.
    CatchUp,
    CatchUpWithAll,
    Settle,
    TimePasses,
    DeletePod,
    CrashContainer,
    Hang,
    WakeUp,
    PowerOff,
    PowerOn,
    Cut,
    PlugIn,
    /// A kubelet reports its node as not ready, although its pods run.
    Unready,
    BeReady,
    /// The operator can't reach the members on a machine any more, reaches another etcd cluster instead, or them again.
    Hide,
    Misroute,
    Reveal,
    TakeOutOfService,
    WipeDisk,
    DeleteClaim,
    CorruptDisk,
    DeletePeer,
    /// Another client changes or deletes a Service or the PodDisruptionBudget, or takes a claim's labels.
    Meddle,
    Scale,
    ChangeVersion,
    ChangeTemplate,
    GrowVolumes,
    Pause,
    GoOnAfterPause,
    Elect,
    Recreate,
    /// It is recreated, and something is in its way, until the user clears that.
    RecreateObstructed,
    ClearTheWay,
}

pub const WEIGHTS: &[(usize, Event)] = &[
    (10, Event::Begin),
    (30, Event::GoOn),
    (12, Event::Reconcile),
    (2, Event::Crash),
    (8, Event::CatchUp),
    (10, Event::CatchUpWithAll),
    (30, Event::Settle),
    (12, Event::TimePasses),
    (3, Event::DeletePod),
    (3, Event::CrashContainer),
    (3, Event::Hang),
    (2, Event::WakeUp),
    (3, Event::PowerOff),
    (5, Event::PowerOn),
    (3, Event::Cut),
    (5, Event::PlugIn),
    (1, Event::Unready),
    (2, Event::BeReady),
    (2, Event::Hide),
    (1, Event::Misroute),
    (4, Event::Reveal),
    (2, Event::TakeOutOfService),
    (2, Event::WipeDisk),
    (2, Event::DeleteClaim),
    (1, Event::CorruptDisk),
    (1, Event::DeletePeer),
    (1, Event::Meddle),
    (3, Event::Scale),
    (3, Event::ChangeVersion),
    (3, Event::ChangeTemplate),
    (1, Event::GrowVolumes),
    (1, Event::Pause),
    (2, Event::GoOnAfterPause),
    (2, Event::Elect),
    (1, Event::Recreate),
    (1, Event::RecreateObstructed),
    (4, Event::ClearTheWay),
];

/// Versions that users set. Those that end in 98 have no image, and those that end in 99 don't run.
const VERSIONS: [&str; 9] = ["3.5.35", "3.6.12", "3.6.16", "3.6.16", "3.7.3", "3.7.3", "3.6.98", "3.6.99", "3.7.99"];

pub fn strike(world: &mut World, operator: &mut Operator) -> Result<(), Broken> {
    let place = next(world);
    let (_, event) = WEIGHTS[place];
    let (member, machine) = (Ordinal(world.random.below(6) as u32), world.random.below(world.machines.len()));
    // Many events find nothing that they could strike.
    let happens = match event {
        Event::Begin if !operator.is_working() => operator.begin(world).map(|()| true)?,
        Event::Begin | Event::GoOn => operator.go_on(world)?,
        Event::Reconcile if operator.is_working() => operator.go_on(world)?,
        Event::Reconcile => operator.reconcile(world).map(|()| true)?,
        Event::Crash => operator.crash(world),
        Event::CatchUp => {
            catch_up(world, operator);
            true
        }
        Event::CatchUpWithAll => {
            operator.cache = world.api.clone();
            true
        }
        Event::Settle => world.settle().map(|()| true)?,
        Event::TimePasses => {
            world.now += seconds(world.random.one_of(&[1, 5, 20, 60, 160, 310, 4000]));
            world.probe_pods();
            true
        }
        Event::Hide | Event::Misroute => {
            hide(world, machine, event);
            true
        }
        Event::Reveal => {
            let hidden = [std::mem::take(&mut world.hidden), std::mem::take(&mut world.misrouted)];
            hidden.iter().any(|machines| !machines.is_empty())
        }
        Event::TakeOutOfService => take_out_of_service(world, machine),
        Event::PowerOff | Event::PowerOn | Event::Cut | Event::PlugIn | Event::Unready | Event::BeReady => {
            strike_machine(world, machine, event)
        }
        Event::CrashContainer | Event::Hang | Event::WakeUp => strike_process(world, member, event),
        Event::DeletePod | Event::DeletePeer | Event::DeleteClaim => delete(world, member, event),
        Event::WipeDisk | Event::CorruptDisk => strike_disk(world, member, event),
        Event::Scale
        | Event::ChangeVersion
        | Event::ChangeTemplate
        | Event::GrowVolumes
        | Event::Pause
        | Event::GoOnAfterPause => {
            edit(world, event);
            true
        }
        Event::Meddle => meddle(world, member),
        Event::Elect => elect(world, member),
        Event::Recreate => recreate(world),
        Event::RecreateObstructed => recreate_obstructed(world),
        Event::ClearTheWay => clear_the_way(world),
    };
    if happens {
        world.coverage.strike(place);
    }
    Ok(())
}

/// The place of the next event in `WEIGHTS`.
fn next(world: &mut World) -> usize {
    let all: usize = WEIGHTS.iter().map(|(weight, _)| weight).sum();
    let mut thrown = world.random.below(all);
    WEIGHTS
        .iter()
        .position(|(weight, _)| {
            let is_it = thrown < *weight;
            thrown = thrown.saturating_sub(*weight);
            is_it
        })
        .expect("less was thrown than all weights together")
}

fn catch_up(world: &mut World, operator: &mut Operator) {
    let (cache, api) = (&mut operator.cache, &world.api);
    match world.random.below(6) {
        0 => cache.cluster = api.cluster.clone(),
        1 => (cache.peers, cache.templates) = (api.peers.clone(), api.templates.clone()),
        2 => cache.pods = api.pods.clone(),
        3 => cache.claims = api.claims.clone(),
        4 => cache.shared = api.shared.clone(),
        _ => cache.nodes = api.nodes.clone(),
    }
}

fn strike_machine(world: &mut World, number: usize, event: Event) -> bool {
    world.note(|| format!("node {number}: {event:?}"));
    let machine = &mut world.machines[number];
    let state = |it: &Machine| (it.on, it.connected, it.unready);
    let before = state(machine);
    match event {
        Event::PowerOff => machine.on = false,
        Event::PowerOn => machine.on = true,
        Event::Cut => machine.connected = false,
        Event::Unready => {
            machine.unready = true;
            // What cuts a kubelet off may cut the operator off, while the members reach each other.
            if world.random.percent(50) {
                world.hidden.insert(number);
            }
        }
        Event::BeReady => machine.unready = false,
        _ => machine.connected = true,
    }
    let changes = before != state(machine);
    if event_ends_processes(event) {
        world.processes.retain(|process| process.machine != number);
    }
    // The out-of-service taint is removed when the node is repaired.
    if world.machines[number].is_reachable() {
        world.api.nodes[number].fenced = false;
    }
    changes
}

fn event_ends_processes(event: Event) -> bool {
    matches!(event, Event::PowerOff)
}

/// Only an administrator who knows that the machine is off may say so.
fn take_out_of_service(world: &mut World, number: usize) -> bool {
    let is_off = !world.machines[number].on;
    if is_off {
        world.note(|| format!("node {number}: TakeOutOfService"));
        world.api.nodes[number].fenced = true;
    }
    is_off
}

/// Affects one machine, or all of them.
fn hide(world: &mut World, number: usize, event: Event) {
    let all = world.random.percent(50);
    let what = if matches!(event, Event::Hide) { "does not reach" } else { "reaches another cluster instead of" };
    world.note(|| format!("node {number}: the operator {what} its members{}", if all { ", or any" } else { "" }));
    let machines = if matches!(event, Event::Hide) { &mut world.hidden } else { &mut world.misrouted };
    machines.extend((0..world.machines.len()).filter(|machine| all || *machine == number));
}

fn strike_process(world: &mut World, ordinal: Ordinal, event: Event) -> bool {
    let Some(position) = world.processes.iter().position(|process| process.ordinal == ordinal) else { return false };
    let for_good = world.random.percent(15);
    world.note(|| {
        format!("c-{ordinal}: {event:?}{}", if for_good && matches!(event, Event::Hang) { " for good" } else { "" })
    });
    let process = &mut world.processes[position];
    match event {
        Event::Hang => {
            process.unkillable |= for_good;
            !std::mem::replace(&mut process.hung, true)
        }
        _ if process.unkillable => false,
        Event::WakeUp => std::mem::take(&mut process.hung),
        _ => {
            world.processes.swap_remove(position);
            true
        }
    }
}

fn delete(world: &mut World, ordinal: Ordinal, event: Event) -> bool {
    world.note(|| format!("c-{ordinal}: {event:?}"));
    match event {
        Event::DeletePod => world.delete_pod(ordinal),
        // Who sorts out the volumes of two clusters does not delete others meanwhile.
        Event::DeleteClaim if world.strange_claim.is_some() => false,
        Event::DeleteClaim => {
            let claim = world.api.claims.get_mut(&ordinal);
            claim.is_some_and(|claim| !std::mem::replace(&mut claim.claim.deleting, true))
        }
        // What the EtcdPeer owns is deleted with it.
        _ => {
            let is_deleted = world.api.peers.remove(&ordinal).is_some();
            if is_deleted {
                world.delete_pod(ordinal);
            }
            is_deleted
        }
    }
}

fn strike_disk(world: &mut World, ordinal: Ordinal, event: Event) -> bool {
    let Some(disk) = world.disk_of(ordinal) else { return false };
    world.note(|| format!("c-{ordinal}: {event:?}"));
    match event {
        Event::WipeDisk => world.disks[disk].data.take().is_some(),
        // One at a time: of two that differ, none is provably right.
        _ if world.disks.iter().any(|disk| disk.data.is_some_and(|data| data.corrupt)) => false,
        _ => world.disks[disk].data.as_mut().is_some_and(|data| !std::mem::replace(&mut data.corrupt, true)),
    }
}

fn edit(world: &mut World, event: Event) {
    let replicas = world.random.one_of(&[1, 2, 3, 3, 4, 5]);
    let wanted = world.random.one_of(&VERSIONS);
    let cluster = &mut world.api.cluster;
    match event {
        Event::Scale => cluster.replicas = replicas,
        Event::ChangeVersion => cluster.wanted = version(wanted),
        Event::ChangeTemplate => cluster.template += 1,
        Event::GrowVolumes => cluster.size += 1,
        Event::Pause => cluster.paused = true,
        _ => cluster.paused = false,
    }
    cluster.version += 1;
    let (replicas, wanted, template) = (cluster.replicas, cluster.wanted.clone(), cluster.template);
    world.note(|| format!("the user: {event:?} (replicas {replicas}, version {wanted}, template {template})"));
}

fn elect(world: &mut World, ordinal: Ordinal) -> bool {
    let Some(etcd) = &world.etcd else { return false };
    let candidate = etcd.member_at(ordinal).filter(|it| !it.learner && etcd.is_up(world, it)).map(|it| it.id);
    let whole =
        |id: MemberId| world.processes.iter().any(|it| it.identity.member_id == id && it.index >= etcd.acknowledged);
    if let Some(candidate) = candidate.filter(|id| whole(*id) && etcd.has_quorum(world))
        && let Some(etcd) = &mut world.etcd
    {
        let changes = etcd.leader.replace(candidate) != Some(candidate);
        world.note(|| format!("etcd: c-{ordinal} leads"));
        return changes;
    }
    false
}

/// The EtcdCluster is deleted with everything that it owns, and recreated when that is gone: the claims remain.
fn meddle(world: &mut World, ordinal: Ordinal) -> bool {
    world.note(|| "somebody meddles with the objects of the cluster".to_owned());
    match world.random.below(4) {
        0 => world.api.shared.services.remove(&ServiceKind::Peers),
        1 => world.api.shared.services.remove(&ServiceKind::Clients),
        2 => {
            let left = world.random.one_of(&[None, Some(1)]);
            (world.api.shared.min_available, world.api.shared.budget_is_as_applied) = (left, false);
            true
        }
        _ => match world.api.claims.get_mut(&ordinal) {
            Some(claim) => !std::mem::replace(&mut claim.claim.strayed, true),
            None => false,
        },
    }
}

fn recreate(world: &mut World) -> bool {
    let is_stuck = |process: &Process| process.unkillable || !world.machines[process.machine].is_reachable();
    let stuck = world.processes.iter().any(is_stuck);
    // If data is lost before the operator could annotate its version, that version can't be known.
    let holds_data = |disk: usize| world.disks[disk].data.is_some();
    let unknown = world.api.claims.values().any(|it| it.claim.version.is_none() && it.disk.is_some_and(holds_data));
    if world.storage == Storage::Ephemeral || stuck || unknown {
        return false;
    }
    world.note(|| "the user deletes the EtcdCluster and creates it again".to_owned());
    let ordinals: Vec<Ordinal> = world.api.pods.keys().copied().collect();
    ordinals.into_iter().for_each(|ordinal| world.remove_pod(ordinal));
    world.api.peers.clear();
    *world.api.shared = SharedObjects::default();
    let cluster = &mut world.api.cluster;
    cluster.lives += 1;
    cluster.restores = false;
    cluster.version += 1;
    (cluster.bootstrap, cluster.cluster_id, cluster.paused) = (None, None, false);
    (cluster.accepted, cluster.oldest_log) = (None, None);
    cluster.unhealthy_since.clear();
    cluster.status = Default::default();
    true
}

fn recreate_obstructed(world: &mut World) -> bool {
    let is_clean = world.strange_claim.is_none() && world.api.claims.values().all(|claim| !claim.claim.deleting);
    let happens = is_clean && recreate(world);
    if happens {
        get_in_the_way(world);
    }
    happens
}

/// A version of a minor that runs, and from which every other supported minor can be reached.
pub fn version_of(minor: u64) -> &'static str {
    match minor {
        5 => "3.5.35",
        6 => "3.6.16",
        _ => "3.7.3",
    }
}
