//! How members are rolled out to the spec: one at a time, the leader last, and each only while all the others are
//! healthy.

use etcd_operator_api::WaitReason;

use crate::cluster::acceptance::before_any_change;
use crate::cluster::draining::{DRAIN_TIME, is_leaving};
use crate::cluster::observed::{Member, Membership, Observed, Pod};
use crate::cluster::progress::progress;
use crate::cluster::recreate::{reason_for, recreate, restarts};
use crate::cluster::removal::remove_voter;
use crate::cluster::spec_diff::UpdateMethod;
use crate::cluster::step::{MemberStep, Plan, Step, Waiting};
use crate::ordinal::Ordinal;

/// Whether there is nothing to change or to revert.
fn is_up_to_date(observed: &Observed) -> bool {
    observed.objects.outdated.is_empty() && observed.is_version_accepted() && observed.etcd.downgrade.is_none()
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
    let is_proven = |ordinal: Ordinal| observed.objects.peers.get(&ordinal).is_none_or(|peer| peer.proven);
    membership.voters().find(|it| !observed.is_healthy(it) && it.ordinal.is_some_and(|ordinal| !is_proven(ordinal)))
}

/// Changes that need no restart.
fn change_in_place(observed: &Observed, membership: &Membership) -> Plan {
    let running = |ordinal: &&Ordinal| {
        let pod = observed.objects.pods.get(ordinal).is_some_and(|pod| !pod.deleting);
        pod && membership.members.iter().any(|member| member.ordinal == Some(**ordinal))
    };
    let in_place = observed
        .objects
        .outdated
        .iter()
        .filter(|(ordinal, change)| change.method < UpdateMethod::Restart && running(ordinal));
    let Some((ordinal, change)) = in_place.max_by_key(|(ordinal, _)| **ordinal) else { return Plan::default() };
    let ordinal = *ordinal;
    match change.method {
        UpdateMethod::Relabel => Plan::steps(vec![Step::Member(ordinal, MemberStep::Relabel)]),
        // With less memory it may be OOM-killed: no other member may be down then.
        _ => wait_for_healthy_members(observed, membership)
            .or_else(|| Plan::steps(vec![Step::Member(ordinal, MemberStep::Resize)])),
    }
}

fn restart_next(observed: &Observed, membership: &Membership) -> Plan {
    let outdated = membership.voters().filter_map(|voter| Some((voter.ordinal?, voter)));
    let outdated: Vec<(Ordinal, &Member)> = outdated.filter(|(ordinal, _)| restarts(observed, *ordinal)).collect();
    let well = wait_for_healthy_members(observed, membership);
    if outdated.is_empty() || well != Plan::default() {
        return well;
    }
    if !observed.remembered.has_rollout_slot {
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
fn restart_leader(observed: &Observed, membership: &Membership, (from, leader): (Ordinal, &Member)) -> Plan {
    let candidates = membership.voters().filter(|voter| voter.id != leader.id);
    match candidates.filter_map(|voter| Some((voter.ordinal?, voter.id))).min() {
        Some((to, to_id)) => Plan::steps(vec![Step::Member(from, MemberStep::MoveLeader { to, to_id })]),
        None => restart_follower(observed, membership, from, leader),
    }
}

/// Clients are drained first. If the data would be lost with the pod, the member is replaced by a new one instead.
fn restart_follower(observed: &Observed, membership: &Membership, ordinal: Ordinal, member: &Member) -> Plan {
    let is_claim_deleting = observed.objects.claims.get(&ordinal).is_some_and(|claim| claim.deleting);
    let keeps_its_data = observed.wanted.durable && !is_claim_deleting;
    if !keeps_its_data && membership.voters().count() == 1 {
        let why = if is_claim_deleting { "its volume claim is being deleted" } else { "its data is in its pod" };
        let message = format!(
            "refusing to restart the only member: its data would be lost ({why}). Raise spec.replicas to 3 first"
        );
        return Plan::waiting(WaitReason::ChangeRefused, message);
    }
    let serves = |(other, pod): (&Ordinal, &Pod)| *other != ordinal && pod.serves_clients && pod.ready;
    let leaving =
        observed.objects.pods.get(&ordinal).and_then(|pod| pod.leaving_since).filter(|_| is_leaving(observed, ordinal));
    match leaving {
        // No other member can serve the clients.
        None if membership.voters().count() == 1 => Plan::steps(vec![recreate(observed, ordinal)]),
        None if !observed.objects.pods.iter().any(serves) => {
            Plan::waiting(WaitReason::RollingOut, "waiting for another member to serve clients before the next restart")
        }
        None => Plan::steps(vec![Step::Member(ordinal, MemberStep::DrainPod)]),
        Some(since) if observed.elapsed_since(since) < DRAIN_TIME => {
            let name = observed.names.member_name(ordinal);
            Plan::waiting(WaitReason::Draining, format!("draining clients from {name} before its restart"))
        }
        Some(_) if keeps_its_data => Plan::steps(vec![recreate(observed, ordinal)]),
        Some(_) => remove_voter(observed, membership, ordinal, member, &reason_for(observed, ordinal)),
    }
}

/// What to wait for before a restart: no member is restarted while another one is unhealthy, or does not run the
/// version that it should.
fn wait_for_healthy_members(observed: &Observed, membership: &Membership) -> Plan {
    // While the kubelet does not report the pod ready, no clients are routed to it.
    let is_ready = |member: &Member| {
        member
            .ordinal
            .is_none_or(|ordinal| observed.objects.pods.get(&ordinal).is_some_and(|pod| pod.ready && !pod.deleting))
    };
    let is_well = |member: &Member| observed.is_healthy(member) && !observed.is_corrupt(member) && is_ready(member);
    if let Some(unhealthy) = membership.members.iter().find(|member| !is_well(member)) {
        return wait_for(observed, unhealthy);
    }
    for (member, answer) in membership.members.iter().filter_map(|it| Some((it, observed.answer_of(it)?))) {
        // A member that is restarted anyway is not checked: the restart may fix it.
        let staying = member.ordinal.filter(|ordinal| !restarts(observed, *ordinal));
        let peer = staying.and_then(|ordinal| observed.objects.peers.get(&ordinal));
        let versions = peer.and_then(|peer| Some((peer.version.as_ref()?, answer.version.as_ref()?)));
        // Build metadata is ignored.
        if let Some((expected, said)) = versions.filter(|(expected, said)| said.cmp_precedence(expected).is_ne()) {
            let message = format!(
                "{} should run etcd {expected} but reports {said}: the image does not match its tag",
                observed.name_of(member)
            );
            return Plan::waiting(WaitReason::ImageVersionMismatch, message);
        }
    }
    Plan::default()
}

fn wait_for(observed: &Observed, unhealthy: &Member) -> Plan {
    let name = observed.name_of(unhealthy);
    let pod = unhealthy.ordinal.and_then(|ordinal| observed.objects.pods.get(&ordinal));
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

fn wait_for_starting_member(observed: &Observed, starting_member: &Member) -> Plan {
    let pod = starting_member.ordinal.and_then(|ordinal| observed.objects.pods.get(&ordinal));
    let problem = pod.and_then(|pod| pod.problem.as_ref()).map(|it| format!(": {}", it.message)).unwrap_or_default();
    let message = format!("{}; {} is starting{problem}", progress(observed), observed.name_of(starting_member));
    Plan::waiting(WaitReason::MemberStarting, message)
}
