//! How members are rolled out to the spec: one at a time, the leader last, and each only while all the others are
//! healthy.

use etcd_operator_api::WaitReason;

use crate::cluster::observed::{BackupFirst, Member, Membership, Observed, Peer, Pod};
use crate::cluster::plan::{Model, Plan, Step, Waiting, plan};
use crate::cluster::quorum::quorum;
use crate::cluster::scaling::remove_voter;
use crate::cluster::spec_diff::UpdateMethod;
use crate::cluster::versions::{VersionDecision, decide_version, is_same, is_too_old};

/// How long clients are drained before a restart: as long as it takes until all nodes have updated their endpoints.
const DRAIN_TIME: i64 = 2;
/// After how long clients return if the restart did not happen. Longer than a failing cluster waits for a rollout slot.
const DRAIN_EXPIRES_AFTER: i64 = 120;
/// How long a restarted member may be kept from serving clients until the leadership is transferred.
const HANDOVER_WITHIN: i64 = 120;

/// How long a pod may be missing despite attempts to create it before it counts as rejected.
const REFUSED_AFTER: i64 = 60;

/// Whether clients are drained from a member because it is about to be restarted.
pub fn is_leaving(observed: &Observed, ordinal: u32) -> bool {
    let since = observed.pods.get(&ordinal).and_then(|pod| pod.leaving_since);
    since.is_some_and(|since| observed.now - since < DRAIN_EXPIRES_AFTER) && restarts(observed, ordinal)
}

/// Whether a restarted member should not serve clients yet, because the leader is about to transfer the leadership.
/// Requests that a follower forwards to the leader in that moment are lost silently, and their clients wait for
/// seconds; the leader's own clients get an error at once. So until then all clients connect to the leader.
pub fn awaits_handover(observed: &Observed, ordinal: u32) -> bool {
    let Some(membership) = &observed.membership else { return false };
    let leader = observed.leader().and_then(|id| membership.member(id)).and_then(|leader| leader.ordinal);
    let Some(leader) = leader.filter(|leader| *leader != ordinal && restarts(observed, *leader)) else { return false };
    let serves = |pod: &Pod| pod.serves_clients && pod.ready && !pod.deleting;
    let has_come = |pod: &Pod| !pod.serves_clients && observed.now - pod.created < HANDOVER_WITHIN;
    membership.voters().count() > 2
        && !observed.outdated.contains_key(&ordinal)
        && observed.pods.get(&leader).is_some_and(serves)
        && observed.pods.get(&ordinal).is_none_or(has_come)
}

/// What a new member is created from: like the others for as long as the spec may not be rolled out.
pub fn model_of_new(observed: &Observed) -> Model {
    if may_use_the_spec(observed) {
        return Model::Spec;
    }
    let others = observed.peers.iter().filter(|(_, peer)| !peer.deleting);
    match others.min_by_key(|(ordinal, peer)| (!peer.proven, **ordinal)) {
        Some((ordinal, _)) => Model::Member(*ordinal),
        None => observed.versions.accepted.clone().map_or(Model::Spec, Model::SpecWithVersion),
    }
}

/// Whether a new member would be created from something else than this one was, or whether this one could not join as
/// it is.
pub fn is_to_be_recreated(observed: &Observed, ordinal: u32) -> bool {
    let is_late = || observed.peers.get(&ordinal).is_some_and(|peer| is_too_old(observed, &peer.version));
    (needs_a_new_pod(observed, ordinal) && may_use_the_spec(observed)) || is_late()
}

/// Whether new members may be created from the spec. An accepted version may have become impossible since: the members
/// may have agreed on another one.
fn may_use_the_spec(observed: &Observed) -> bool {
    observed.versions.is_accepted() && decide_version(observed) == VersionDecision::Possible
}

fn restarts(observed: &Observed, ordinal: u32) -> bool {
    observed.outdated.get(&ordinal).is_some_and(|change| change.method == UpdateMethod::Restart)
}

/// Whether a member needs a new pod to match the spec. A running pod can be given other labels and resources in place.
/// A pod that was rejected, can't be scheduled or does not start can only be replaced by a new one.
fn needs_a_new_pod(observed: &Observed, ordinal: u32) -> bool {
    let runs = observed.pods.get(&ordinal).is_some_and(|pod| pod.node.is_some() && pod.problem.is_none());
    restarts(observed, ordinal) || (observed.outdated.contains_key(&ordinal) && !runs)
}

/// What has to precede any change to a member: nothing if the desired version is possible and accepted.
fn before_any_change(observed: &Observed) -> Plan {
    match decide_version(observed) {
        VersionDecision::Possible if observed.versions.is_accepted() => Plan::default(),
        VersionDecision::Possible => {
            let accept = || Plan::steps(vec![Step::AcceptVersion(observed.versions.wanted.clone())]);
            back_up_first(observed).or_else(accept)
        }
        VersionDecision::Prepare(step) => Plan::steps(vec![step]),
        VersionDecision::Wait(waiting) => Plan { steps: Vec::new(), waiting: Some(waiting) },
        VersionDecision::Refused(why) => Plan::waiting(WaitReason::ChangeRefused, why),
    }
}

/// What has to precede accepting another minor version, which may be irreversible.
fn back_up_first(observed: &Observed) -> Plan {
    match &observed.backup_first {
        BackupFirst::NotRequired | BackupFirst::Taken => Plan::default(),
        BackupFirst::ToTake => Plan::steps(vec![Step::TakeBackup]),
        BackupFirst::Running(name) => {
            Plan::waiting(WaitReason::BackingUp, format!("waiting for EtcdBackup {name} before the upgrade"))
        }
        BackupFirst::Failed { name, message } => Plan::waiting(
            WaitReason::UpgradeBackupFailed,
            format!(
                "upgrade held: EtcdBackup {name} failed: {message}. Delete the EtcdBackup to retry, or set spec.upgrade.backupFirst to false to upgrade without a backup"
            ),
        ),
        BackupFirst::InvalidSchedule { name, why } => Plan::waiting(
            WaitReason::UpgradeBackupFailed,
            format!(
                "upgrade held: EtcdBackupSchedule {name} is invalid: {why}. Correct it, or set spec.upgrade.backupFirst to false to upgrade without a backup"
            ),
        ),
        BackupFirst::NoSchedule => Plan::waiting(
            WaitReason::UpgradeBackupFailed,
            "upgrade held: spec.upgrade.backupFirst is true, but no EtcdBackupSchedule backs up this cluster. Create one, or set spec.upgrade.backupFirst to false to upgrade without a backup",
        ),
    }
}

/// What has to precede creating the first member of a new EtcdCluster. A recreated one continues with the data that it
/// finds, if the version in its spec can read it.
pub fn adopt_version(observed: &Observed) -> Option<Plan> {
    let is_not_bootstrapped = observed.cluster_id.is_none() && !observed.versions.is_accepted();
    let is_new = observed.peers.is_empty() && (observed.versions.accepted.is_none() || is_not_bootstrapped);
    let plan = before_any_change(observed);
    // A bootstrap that has started continues with the version that it started with.
    let goes_on = observed.versions.accepted.is_some() && plan.steps.is_empty();
    Some(plan).filter(|plan| is_new && !goes_on && *plan != Plan::default())
}

/// Whether there is nothing to change or to revert.
fn is_up_to_date(observed: &Observed) -> bool {
    observed.outdated.is_empty() && observed.versions.is_accepted() && observed.versions.downgrade.is_none()
}

/// The next step of the rollout, if all members are healthy.
pub fn next_change(observed: &Observed, membership: &Membership) -> Plan {
    if is_up_to_date(observed) {
        return starting_member(observed, membership)
            .map(|it| wait_for_starting_member(observed, it))
            .unwrap_or_default();
    }
    before_any_change(observed)
        .or_else(|| change_in_place(observed, membership))
        .or_else(|| restart_next(observed, membership))
}

/// A member that was recreated and has not been observed healthy since.
fn starting_member<'a>(observed: &Observed, membership: &'a Membership) -> Option<&'a Member> {
    let is_proven = |ordinal: u32| observed.peers.get(&ordinal).is_none_or(|peer| peer.proven);
    membership.voters().find(|it| !observed.is_healthy(it) && it.ordinal.is_some_and(|ordinal| !is_proven(ordinal)))
}

/// A member that was never healthy since it was created, and was created from an outdated spec, is recreated before
/// anything else: this costs nothing, and the outdated spec may be the cause.
pub fn recreate_broken(observed: &Observed, membership: &Membership) -> Plan {
    let is_fit = |member: &Member| observed.is_healthy(member) && !is_stopping(observed, member);
    let broken = membership.voters().filter(|voter| !observed.is_healthy(voter));
    let staying = broken.filter_map(|voter| voter.ordinal).filter(|ordinal| *ordinal < observed.replicas);
    let broken = staying.into_iter().find(|ordinal| {
        let others = membership.voters().filter(|voter| voter.ordinal != Some(*ordinal) && is_fit(voter)).count();
        let keeps_its_data = observed.durable || has_no_data(observed, *ordinal);
        may_be_recreated(observed, *ordinal) && keeps_its_data && others >= quorum(membership.voters().count())
    });
    let Some(ordinal) = broken else { return Plan::default() };
    // Waiting alone does not block anything else.
    Plan::steps(before_any_change(observed).or_else(|| Plan::steps(vec![replace(observed, ordinal)])).steps)
}

/// A learner that makes no progress and was created from an outdated spec is removed, so that one from the current spec
/// can join.
pub fn recreate_learner(observed: &Observed, ordinal: u32, member_id: u64) -> Vec<Step> {
    // A missing pod counts too: it may be rejected.
    if observed.pods.get(&ordinal).is_some_and(|pod| pod.problem.is_none()) {
        return Vec::new();
    }
    if is_to_be_recreated(observed, ordinal) {
        return vec![Step::RemoveMember { ordinal, member_id, why: reason_for(observed, ordinal) }];
    }
    if needs_a_new_pod(observed, ordinal) { before_any_change(observed).steps } else { Vec::new() }
}

/// Without a quorum, or before there is one, a member that does not run and was created from an outdated spec is
/// recreated: the others may be waiting for it.
pub fn recreate_stopped_members(observed: &Observed) -> Vec<Step> {
    let runs = |ordinal: &u32| observed.answers.contains_key(ordinal);
    let idle = observed.outdated.keys().copied().filter(|it| !runs(it) && may_be_recreated(observed, *it));
    // Data in a pod is lost with it, unless there is none: the pod was never scheduled, or there is no cluster yet.
    let has_nothing = |ordinal: u32| {
        observed.cluster_id.is_none() || observed.pods.get(&ordinal).is_some_and(|pod| pod.node.is_none())
    };
    let idle: Vec<u32> = idle.filter(|ordinal| observed.durable || has_nothing(*ordinal)).collect();
    if idle.is_empty() {
        return Vec::new();
    }
    let before = before_any_change(observed);
    if before != Plan::default() {
        return before.steps;
    }
    idle.into_iter().map(|ordinal| replace(observed, ordinal)).collect()
}

/// Whether an unhealthy member was created from an outdated spec that never worked. One that did work is restarted
/// unchanged: the current spec may not work either. The exception is a member that can't be scheduled, as long as no
/// member has failed with the current spec.
fn may_be_recreated(observed: &Observed, ordinal: u32) -> bool {
    let Some(peer) = observed.peers.get(&ordinal).filter(|peer| !peer.deleting) else { return false };
    let is_stuck = |pod: &Pod| pod.deleting || pod.node.is_some_and(|node| node.down_since.is_some());
    let has_failed = |(other, peer): (&u32, &Peer)| !peer.proven && !observed.outdated.contains_key(other);
    // Without a quorum there is nothing to lose.
    let has_rollout_slot = observed.has_rollout_slot || observed.membership.is_none();
    let may_try_another =
        is_unschedulable_or_refused(observed, ordinal) && has_rollout_slot && !observed.peers.iter().any(has_failed);
    needs_a_new_pod(observed, ordinal)
        && !observed.pods.get(&ordinal).is_some_and(is_stuck)
        && (!peer.proven || may_try_another)
}

/// Whether a member's pod can't be scheduled, or Kubernetes rejects it: it has been missing for long despite attempts
/// to create it. Without a quorum a missing pod means nothing: after a power cut all are missing, and return unchanged.
fn is_unschedulable_or_refused(observed: &Observed, ordinal: u32) -> bool {
    match observed.pods.get(&ordinal) {
        Some(pod) => pod.node.is_none(),
        None => {
            let since = observed.member(ordinal).and_then(|member| observed.observed_unhealthy_since.get(&member.id));
            since.is_some_and(|since| observed.now - since >= REFUSED_AFTER)
        }
    }
}

/// Whether a member has never run, so that no data is lost with its pod.
fn has_no_data(observed: &Observed, ordinal: u32) -> bool {
    let is_placed = observed.pods.get(&ordinal).is_some_and(|pod| pod.node.is_some());
    observed.member(ordinal).is_some_and(|member| !member.started) && !is_placed
}

fn is_stopping(observed: &Observed, member: &Member) -> bool {
    member.ordinal.and_then(|ordinal| observed.pods.get(&ordinal)).is_some_and(|pod| pod.deleting)
}

/// Changes that need no restart.
fn change_in_place(observed: &Observed, membership: &Membership) -> Plan {
    let running = |ordinal: &&u32| {
        let pod = observed.pods.get(ordinal).is_some_and(|pod| !pod.deleting);
        pod && membership.members.iter().any(|member| member.ordinal == Some(**ordinal))
    };
    let in_place =
        observed.outdated.iter().filter(|(ordinal, change)| change.method < UpdateMethod::Restart && running(ordinal));
    let Some((ordinal, change)) = in_place.max_by_key(|(ordinal, _)| **ordinal) else { return Plan::default() };
    let ordinal = *ordinal;
    match change.method {
        UpdateMethod::Relabel => Plan::steps(vec![Step::Relabel { ordinal }]),
        // With less memory it may be OOM-killed: no other member may be down then.
        _ => wait_for_healthy_members(observed, membership).or_else(|| Plan::steps(vec![Step::Resize { ordinal }])),
    }
}

fn restart_next(observed: &Observed, membership: &Membership) -> Plan {
    let outdated = membership.voters().filter_map(|voter| Some((voter.ordinal?, voter)));
    let outdated: Vec<(u32, &Member)> = outdated.filter(|(ordinal, _)| restarts(observed, *ordinal)).collect();
    let well = wait_for_healthy_members(observed, membership);
    if outdated.is_empty() || well != Plan::default() {
        return well;
    }
    if !observed.has_rollout_slot {
        let message = "rollout queued: the limit of concurrent rollouts (--max-rolling-clusters) is reached";
        return Plan::waiting(WaitReason::RolloutQueued, message);
    }
    let Some(leader) = observed.leader() else {
        return Plan::waiting(WaitReason::NoLeader, "no leader: members are restarted once there is one");
    };
    let followers = outdated.iter().filter(|(_, voter)| voter.id != leader);
    match followers.max_by_key(|(ordinal, _)| *ordinal) {
        Some((ordinal, follower)) => restart_follower(observed, membership, *ordinal, follower),
        None => restart_leader(observed, membership, outdated[0]),
    }
}

/// The leader is restarted last. It transfers the leadership to an updated member, and is a follower then.
fn restart_leader(observed: &Observed, membership: &Membership, (from, leader): (u32, &Member)) -> Plan {
    let candidates = membership.voters().filter(|voter| voter.id != leader.id);
    match candidates.filter_map(|voter| Some((voter.ordinal?, voter.id))).min() {
        Some((to, to_id)) => Plan::steps(vec![Step::MoveLeader { from, to, to_id }]),
        None => restart_follower(observed, membership, from, leader),
    }
}

/// Clients are drained first. If the data would be lost with the pod, the member is replaced by a new one instead.
fn restart_follower(observed: &Observed, membership: &Membership, ordinal: u32, member: &Member) -> Plan {
    let is_claim_deleting = observed.claims.get(&ordinal).is_some_and(|claim| claim.deleting);
    let keeps_its_data = observed.durable && !is_claim_deleting;
    if !keeps_its_data && membership.voters().count() == 1 {
        let why = if is_claim_deleting { "its volume claim is being deleted" } else { "its data is in its pod" };
        let message = format!(
            "refusing to restart the only member: its data would be lost ({why}). Raise spec.replicas to 3 first"
        );
        return Plan::waiting(WaitReason::ChangeRefused, message);
    }
    let serves = |(other, pod): (&u32, &Pod)| *other != ordinal && pod.serves_clients && pod.ready;
    let leaving =
        observed.pods.get(&ordinal).and_then(|pod| pod.leaving_since).filter(|_| is_leaving(observed, ordinal));
    match leaving {
        // No other member can serve the clients.
        None if membership.voters().count() == 1 => Plan::steps(vec![replace(observed, ordinal)]),
        None if !observed.pods.iter().any(serves) => {
            Plan::waiting(WaitReason::RollingOut, "waiting for another member to serve clients before the next restart")
        }
        None => Plan::steps(vec![Step::DrainPod { ordinal }]),
        Some(since) if observed.now - since < DRAIN_TIME => {
            let name = observed.names.member_name(ordinal);
            Plan::waiting(WaitReason::Draining, format!("draining clients from {name} before its restart"))
        }
        Some(_) if keeps_its_data => Plan::steps(vec![replace(observed, ordinal)]),
        Some(_) => remove_voter(observed, membership, ordinal, member, &reason_for(observed, ordinal)),
    }
}

fn replace(observed: &Observed, ordinal: u32) -> Step {
    Step::RecreatePeer { ordinal, why: reason_for(observed, ordinal) }
}

fn reason_for(observed: &Observed, ordinal: u32) -> String {
    match observed.outdated.get(&ordinal) {
        Some(change) => format!("{} changed", change.fields.join(", ")),
        None => "the other members run a later version".to_owned(),
    }
}

/// What to wait for before a restart: no member is restarted while another one is unhealthy, or does not run the
/// version that it should.
fn wait_for_healthy_members(observed: &Observed, membership: &Membership) -> Plan {
    // While the kubelet does not report the pod ready, no clients are routed to it.
    let is_ready = |member: &Member| {
        member.ordinal.is_none_or(|ordinal| observed.pods.get(&ordinal).is_some_and(|pod| pod.ready && !pod.deleting))
    };
    let is_well = |member: &Member| observed.is_healthy(member) && !observed.is_corrupt(member) && is_ready(member);
    if let Some(unhealthy) = membership.members.iter().find(|member| !is_well(member)) {
        return wait_for(observed, unhealthy);
    }
    for (member, answer) in membership.members.iter().filter_map(|it| Some((it, observed.answer_of(it)?))) {
        // A member that is restarted anyway is not checked: the restart may fix it.
        let staying = member.ordinal.filter(|ordinal| !restarts(observed, *ordinal));
        let peer = staying.and_then(|ordinal| observed.peers.get(&ordinal));
        if let Some(peer) = peer.filter(|peer| !is_same(&answer.version, &peer.version)) {
            let message = format!(
                "{} should run etcd {} but reports {}: the image does not match its tag",
                observed.name_of(member),
                peer.version,
                answer.version
            );
            return Plan::waiting(WaitReason::ImageVersionMismatch, message);
        }
    }
    Plan::default()
}

fn wait_for(observed: &Observed, unhealthy: &Member) -> Plan {
    let name = observed.name_of(unhealthy);
    let pod = unhealthy.ordinal.and_then(|ordinal| observed.pods.get(&ordinal));
    let problem = pod.filter(|pod| !pod.deleting).and_then(|pod| pod.problem.as_ref());
    let done = progress(observed);
    let waiting = match problem {
        Some(problem) => {
            let message = format!("{done}; halted: {name} is not healthy: {}", problem.message);
            Waiting::new(WaitReason::RolloutHalted, message)
        }
        None => Waiting::new(WaitReason::RollingOut, format!("{done}; waiting for {name} to become healthy")),
    };
    Plan { steps: Vec::new(), waiting: Some(waiting) }
}

/// Whether a cluster is about to restart members, or in the middle of it, and so needs a rollout slot.
pub fn needs_rollout_slot(observed: &Observed) -> bool {
    let Plan { steps, waiting } = plan(observed);
    let restarts = |step: &Step| matches!(step, Step::DrainPod { .. } | Step::RecreatePeer { .. });
    let is_rolling = |waiting: Waiting| {
        matches!(waiting.reason, WaitReason::Draining | WaitReason::RollingOut | WaitReason::RolloutHalted)
    };
    !observed.outdated.is_empty() && (steps.iter().any(restarts) || waiting.is_some_and(is_rolling))
}

fn wait_for_starting_member(observed: &Observed, starting_member: &Member) -> Plan {
    let pod = starting_member.ordinal.and_then(|ordinal| observed.pods.get(&ordinal));
    let problem = pod.and_then(|pod| pod.problem.as_ref()).map(|it| format!(": {}", it.message)).unwrap_or_default();
    let message = format!("{}; {} is starting{problem}", progress(observed), observed.name_of(starting_member));
    Plan::waiting(WaitReason::MemberStarting, message)
}

/// The progress of a rollout: how many members are up to date, and which fields changed for the others.
pub fn progress(observed: &Observed) -> String {
    let mut fields: Vec<&String> = observed.outdated.values().flat_map(|change| &change.fields).collect();
    fields.sort();
    fields.dedup();
    let fields: Vec<&str> = fields.into_iter().map(String::as_str).collect();
    let why = if fields.is_empty() { String::new() } else { format!(" ({} changed)", fields.join(", ")) };
    format!("{} of {} members up to date{why}", updated(observed), observed.replicas)
}

/// How many members match the spec and are healthy.
pub fn updated(observed: &Observed) -> usize {
    let members = observed.membership.iter().flat_map(|membership| &membership.members);
    let is_updated = |member: &&Member| {
        let Some(ordinal) = member.ordinal else { return false };
        let is_made = observed.peers.contains_key(&ordinal) && !is_stopping(observed, member);
        let claim = observed.claims.get(&ordinal);
        let fits = claim.is_none_or(|claim| claim.misfit.is_none() && claim.cannot_grow.is_none());
        let is_as_made = is_made && fits && !observed.outdated.contains_key(&ordinal);
        observed.is_healthy(member) && is_as_made && ordinal < observed.replicas
    };
    members.filter(is_updated).count()
}
