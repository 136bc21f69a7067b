//! The rules: what must hold after every event, and at the end, when no more faults occur.

use std::collections::BTreeSet;

use etcd_operator_api::{EtcdClusterStatus, WaitReason};

use super::coverage::Rule;
use super::faults::version_of;
use super::operator::Operator;
use super::strangers::clear_the_way;
use super::templates::{fits_no_node, is_refused};
use super::world::{Api, Broken, ClaimObject, Machine, Process, Storage, World, minor_of};
use crate::cluster::observed::{DataState, MemberId, Membership, Observed, ServiceKind};
use crate::cluster::plan::{Plan, Step};
use crate::cluster::quorum::quorum;
use crate::cluster::step::{Blocked, MemberStep};
use crate::cluster::tests::support::{seconds, version};
use crate::ordinal::Ordinal;

/// How many reconciles the operator may need until the cluster is in the desired state.
const LOOKS: usize = 150;

pub fn check(world: &World) -> Result<(), Broken> {
    world.coverage.check();
    if world.processes.len() > 1 {
        world.coverage.judge(Rule::ProcessesShareNothing);
    }
    for (number, process) in world.processes.iter().enumerate() {
        for other in &world.processes[..number] {
            if process.disk == other.disk {
                return Err(format!("two processes of c-{} share a disk", process.ordinal));
            }
            if process.identity == other.identity {
                return Err(format!("two processes run as {}", process.identity.member_id));
            }
        }
    }
    let learners = world.etcd.iter().flat_map(|etcd| &etcd.members).filter(|member| member.learner).count();
    if learners > 0 {
        world.coverage.judge(Rule::OneLearner);
    }
    if learners > 1 {
        return Err(format!("{learners} learners at a time"));
    }
    Ok(())
}

/// What must hold for every plan, when it is made: what the operator asks etcd is never stale then.
pub fn check_plan(world: &World, seen: &Api, observed: &Observed, plan: &Plan) -> Result<(), Broken> {
    let changes = plan.steps.iter().filter(|step| step.changes_membership()).count();
    if changes > 0 {
        world.coverage.judge(Rule::OneMembershipChange);
    }
    if changes > 1 {
        return Err(format!("more than one membership change in a plan: {plan:?}"));
    }
    let is_begun = observed.recorded.cluster_id.is_some() || observed.recorded.bootstrap.is_some();
    let is_strange = observed.etcd.membership.as_ref().is_some_and(Membership::is_of_another_cluster);
    let is_paused = observed.wanted.paused.is_some();
    if is_strange && is_begun && !is_paused {
        untouched(world, plan, Rule::OtherClustersAreUntouched, "another cluster answers")?;
    }
    if world.is_obstructed(seen) && !is_paused {
        untouched(world, plan, Rule::ConflictsAreUntouched, "its volumes are in conflict")?;
    }
    let resized =
        plan.steps.iter().filter(|step| matches!(step, Step::Member(_, MemberStep::Resize))).filter_map(Step::ordinal);
    for (ordinal, etcd) in resized.flat_map(|ordinal| world.etcd.iter().map(move |etcd| (ordinal, etcd))) {
        world.coverage.judge(Rule::ResizesWaitForTheOthers);
        let mut others = etcd.members.iter().filter(|member| member.ordinal != Some(ordinal));
        if let Some(down) = others.find(|member| !etcd.is_up(world, member)) {
            return Err(format!("c-{ordinal} is resized while {} is down", down.id));
        }
    }
    Ok(())
}

/// Nothing that another cluster says is reported as if this one had said it.
pub fn check_status(observed: &Observed, plan: &Plan, status: &EtcdClusterStatus) -> Result<(), Broken> {
    let is_strange = observed.etcd.membership.as_ref().is_some_and(Membership::is_of_another_cluster);
    let is_begun = observed.recorded.cluster_id.is_some() || observed.recorded.bootstrap.is_some();
    let says_available =
        |status: &EtcdClusterStatus| status.conditions.iter().any(|it| it.type_ == "Available" && it.status == "True");
    if is_strange && is_begun && says_available(status) {
        return Err(format!("the status says that it is available although another cluster answers: {plan:?}"));
    }
    Ok(())
}

fn untouched(world: &World, plan: &Plan, rule: Rule, why: &str) -> Result<(), Broken> {
    world.coverage.judge(rule);
    // Services, the budget and the labels of claims are the cluster's own in any case.
    match plan.steps.iter().find(|step| step.blocked_by_failure() != Blocked::Nothing) {
        Some(step) => Err(format!("{step:?} although {why}")),
        None => Ok(()),
    }
}

/// The message if there is always something left to do or to wait for.
const NEVER_RESTS: &str = "it never comes to rest";

/// The faults stop: every machine is repaired, and the user lets the operator work. Lost data stays lost, and hung
/// processes stay hung. When all members are healthy, the user may set the next minor version or the previous one; or a
/// member wears out.
pub fn stop_faults(world: &mut World, operator: &mut Operator) -> Result<(), Broken> {
    world.note(|| "all machines are repaired".to_owned());
    for (machine, node) in world.machines.iter_mut().zip(world.api.nodes.iter_mut()) {
        (*machine, node.fenced) = (Machine::SOUND, false);
    }
    // Data in the only pod would be lost with any change to it.
    let is_claim_deleting = world.api.claims.values().any(|claim| claim.claim.deleting);
    if world.storage == Storage::Ephemeral || is_claim_deleting {
        world.api.cluster.replicas = world.api.cluster.replicas.max(2);
    }
    world.api.cluster.paused = false;
    world.hidden.clear();
    world.misrouted.clear();
    clear_the_way(world);
    while is_refused(world.api.cluster.template) || fits_no_node(world.api.cluster.template) {
        world.api.cluster.template += 1;
    }
    ask_for(world, version_of(possible_minor(world)));
    operator.crash(world);
    let mut rests = settle(world, operator);
    // The version that the members run may show only now. The user learns from the refusal which version is possible,
    // and sets it.
    let is_refused = matches!(&rests, Err(broken) if broken.starts_with(NEVER_RESTS));
    if is_refused && possible_minor(world) != world.api.cluster.wanted.minor {
        ask_for(world, version_of(possible_minor(world)));
        rests = settle(world, operator);
    }
    if !rests? {
        return Ok(());
    }
    let has_data = world.disk_of(Ordinal(0)).is_some_and(|disk| world.disks[disk].data.is_some());
    if world.api.cluster.replicas >= 3 && has_data && world.random.percent(5) {
        world.wear = 5;
        return settle(world, operator).map(|_| ());
    }
    for _ in 0..world.random.below(3) {
        let next = next_version(world);
        ask_for(world, next);
        if !settle(world, operator)? {
            break;
        }
    }
    Ok(())
}

fn ask_for(world: &mut World, wanted: &'static str) {
    world.api.cluster.wanted = version(wanted);
    world.api.cluster.version += 1;
    world.note(|| format!("the user asks for {wanted}"));
}

/// The version that is possible in any case: the one that the members agree on or have data of, whatever some of them
/// run.
fn possible_minor(world: &World) -> u64 {
    let data = world.disks.iter().filter_map(|disk| disk.data).map(|data| data.minor).max();
    let noted =
        world.api.claims.values().filter_map(|claim| claim.claim.version.as_ref()).map(|noted| noted.minor).max();
    // While no member can be queried, the operator insists on the last reported version, and reports so.
    let is_asked = world.etcd.as_ref().is_some_and(|etcd| etcd.has_quorum(world));
    let reported = world.api.cluster.status.cluster_version.as_deref().map(minor_of).filter(|_| !is_asked);
    let agreed = world.etcd.as_ref().and_then(|etcd| etcd.minor.max(data).max(noted).max(reported));
    let made = world.api.peers.values().filter_map(|peer| peer.version.as_ref()).map(|made| made.minor).min();
    // A bootstrap that has started continues with the version that it started with.
    let accepted = world.api.cluster.accepted.as_ref().map(|accepted| accepted.minor);
    agreed.or(accepted).or(made).unwrap_or(world.api.cluster.wanted.minor)
}

/// The next minor version, or the previous one.
fn next_version(world: &mut World) -> &'static str {
    let minor = world.api.cluster.wanted.minor;
    // Without durable storage, members copy data and log entries of 3.5 from the others, and can't be downgraded at
    // all.
    let is_bound = world.storage == Storage::Ephemeral;
    match minor {
        5 => version_of(6),
        6 if is_bound => "3.6.12",
        6 => version_of(world.random.one_of(&[5, 7])),
        _ if is_bound => "3.7.3",
        _ => version_of(6),
    }
}

/// Whether the cluster reaches the desired state. If not, too much data is lost for that.
fn settle(world: &mut World, operator: &mut Operator) -> Result<bool, Broken> {
    let mut left = LOOKS;
    while left > 0 {
        left = if wears_out(world) { LOOKS } else { left - 1 };
        world.settle()?;
        check(world)?;
        operator.cache = world.api.clone();
        operator.begin(world)?;
        let has_agreed = world.etcd.as_ref().is_none_or(|etcd| etcd.minor.is_some());
        let at_rest = operator.sees_nothing_to_do() && has_agreed && world.wear == 0;
        // Waiting is fast-forwarded, but not beyond the time for which clients stay drained.
        let pause = match operator.planned() {
            Some(plan) if !plan.steps.is_empty() => world.random.one_of(&[1, 5, 5, 5]),
            Some(Plan { waiting: Some(waiting), .. }) if waiting.reason == WaitReason::Draining => 5,
            _ => 300,
        };
        operator.finish(world)?;
        if at_rest {
            // The reconcile had nothing to do but to report.
            return check_desired_state(world).map(|()| true);
        }
        check(world)?;
        world.now += seconds(pause);
    }
    check_lost_for_good(world, &operator.plan(world)).map(|()| false)
}

/// A machine corrupts the data of the first member again and again; and finally the user wants no other member. Whether
/// it just did.
fn wears_out(world: &mut World) -> bool {
    if world.wear == 0 || world.random.percent(70) {
        return false;
    }
    let running = world.process_of(Ordinal(0)).map(|process| process.disk);
    let Some(data) = running.and_then(|disk| world.disks[disk].data.as_mut()).filter(|data| !data.corrupt) else {
        return false;
    };
    (data.corrupt, world.wear) = (true, world.wear - 1);
    world.note(|| "c-0: its data becomes corrupt".to_owned());
    if world.wear == 0 {
        world.note(|| "the user wants one member".to_owned());
        world.api.cluster.replicas = 1;
        world.api.cluster.version += 1;
    }
    true
}

fn check_desired_state(world: &World) -> Result<(), Broken> {
    world.coverage.judge(Rule::RestsAsAskedFor);
    let wanted: BTreeSet<Ordinal> = Ordinal::first(world.api.cluster.replicas).collect();
    let is = |what: &str, ordinals: BTreeSet<Ordinal>| {
        if ordinals == wanted { Ok(()) } else { Err(format!("at rest there are {what} {ordinals:?}, not {wanted:?}")) }
    };
    let Some(etcd) = &world.etcd else { return Err("at rest, and not bootstrapped".to_owned()) };
    is("voters", etcd.voters().filter_map(|voter| voter.ordinal).collect())?;
    is("members", etcd.members.iter().filter_map(|member| member.ordinal).collect())?;
    is("peers", world.api.peers.keys().copied().collect())?;
    is("pods", world.api.pods.keys().copied().collect())?;
    // A process that waits for a dead disk stays until its machine is restarted, but is no member.
    let alive = || world.processes.iter().filter(|it| !it.unkillable || etcd.member(it.identity.member_id).is_some());
    is("processes", alive().map(|process| process.ordinal).collect())?;
    if world.storage != Storage::Ephemeral {
        is("claims", world.api.claims.keys().copied().collect())?;
        let is_small = |claim: &ClaimObject| claim.size < world.api.cluster.size && !claim.claim.deleting;
        if world.api.claims.values().any(is_small) {
            return Err("at rest, and somebody's volume is too small".to_owned());
        }
    }
    if world.api.claims.values().any(|it| it.claim.strayed && !it.claim.deleting) {
        return Err("at rest, and a claim has lost its labels".to_owned());
    }
    let shared = &world.api.shared;
    if shared.services.len() < ServiceKind::ALL.len() {
        return Err(format!("at rest there are only the Services {:?}", shared.services));
    }
    let needed = quorum(etcd.voters().count());
    if shared.min_available != Some(needed) {
        return Err(format!("at rest, and the budget is {:?}, not {needed}", shared.min_available));
    }
    if alive().any(|process| !etcd.connects(world, process)) {
        return Err("at rest, and somebody does not take part".to_owned());
    }
    if world.differing(&BTreeSet::new()).is_some_and(|differing| !differing.is_empty()) {
        return Err("at rest, and somebody's data is wrong".to_owned());
    }
    if world.api.pods.values().any(|pod| pod.start.expected.data != DataState::Existing) {
        return Err("at rest, and somebody may still start without data".to_owned());
    }
    let Some(agreed) = etcd.minor else { return Err("at rest, and no version was agreed on".to_owned()) };
    let (wanted, template) = (&world.api.cluster.wanted, world.api.cluster.template);
    if let Some(other) = alive().find(|it| it.version != *wanted || it.template != template) {
        return Err(format!("at rest, and c-{} is not as asked for ({})", other.ordinal, other.version));
    }
    if agreed != wanted.minor {
        return Err(format!("at rest, and the members agree on 3.{agreed}, not on {wanted}"));
    }
    let updated = world.api.cluster.status.updated_replicas;
    if u32::try_from(updated) != Ok(world.api.cluster.replicas) {
        return Err(format!("at rest, and the status says that {updated} members are up to date"));
    }
    if world.api.pods.values().any(|pod| !pod.start.serves_clients) {
        return Err("at rest, and clients are kept from somebody".to_owned());
    }
    let available = condition(world, "Available");
    if available != ("True".to_owned(), "QuorumAvailable".to_owned()) {
        return Err(format!("at rest, and the status says {available:?}"));
    }
    Ok(())
}

/// The cluster never settled, which is right only if too much data is lost for that; and then the status must report
/// it.
fn check_lost_for_good(world: &World, plan: &Plan) -> Result<(), Broken> {
    world.coverage.judge(Rule::OnlyLossPreventsRest);
    let stuck = || format!("{NEVER_RESTS}: {plan:?}");
    // An initial member that can't be terminated blocks the others until its machine is restarted; and one that hangs
    // with its data in its pod does until a user who knows that nothing was written yet deletes the pod.
    let keeps_waiting = |it: &Process| it.unkillable || (it.hung && world.storage == Storage::Ephemeral);
    if world.etcd.is_none() && world.processes.iter().any(keeps_waiting) {
        return Ok(());
    }
    let etcd = world.etcd.as_ref().ok_or_else(stuck)?;
    let keeps = |id: MemberId| {
        // A deleted claim is gone as soon as no pod uses it, and no new pod can.
        let claimed = world.api.claims.values().filter(|claim| !claim.claim.deleting).filter_map(|claim| claim.disk);
        let disks = claimed.chain(world.api.pods.values().filter_map(|pod| pod.own_disk));
        let on_disk = disks.filter_map(|disk| world.disks[disk].data).any(|data| data.identity.member_id == id);
        on_disk || world.processes.iter().any(|process| process.identity.member_id == id)
    };
    // A hung process can be restarted only at the cost of its data, if that is in its pod; or not at all.
    let in_its_pod = world.storage == Storage::Ephemeral;
    let only_hangs = world.processes.iter().any(|process| process.unkillable || (process.hung && in_its_pod));
    let left = etcd.voters().filter(|voter| keeps(voter.id)).count();
    if !only_hangs && left >= quorum(etcd.voters().count()) {
        return Err(stuck());
    }
    world.coverage.judge(Rule::LossIsReported);
    let (status, reason) = condition(world, "Available");
    // The members of a cluster may never have been recorded, or the record was lost when it was deleted and recreated.
    let reported: BTreeSet<MemberId> =
        world.api.cluster.status.members.iter().filter_map(|member| member.id()).collect();
    let is_noted = etcd.members.iter().map(|member| member.id).collect::<BTreeSet<MemberId>>() == reported;
    let knows_better = is_noted && etcd.acknowledged > 0 && world.api.cluster.lives == 0 && !only_hangs;
    if status != "False" || (reason != "QuorumLost" && knows_better) {
        return Err(format!("{left} voters have data, no quorum, and the status says {status}, {reason}"));
    }
    Ok(())
}

fn condition(world: &World, kind: &str) -> (String, String) {
    let conditions = &world.api.cluster.status.conditions;
    let found = conditions.iter().find(|condition| condition.type_ == kind);
    found.map(|condition| (condition.status.clone(), condition.reason.clone())).unwrap_or_default()
}
