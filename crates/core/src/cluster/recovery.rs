//! How unhealthy members are recovered: one at a time, and only in ways that the others can tolerate.

use etcd_operator_api::WaitReason;
use jiff::SignedDuration;

use crate::cluster::diagnosis::{
    Diagnosis, NOT_BEGUN, Remedy, can_be_compared, diagnose, members_of_pods, remedy_for, restart_after,
};
use crate::cluster::observed::{Member, Membership, Observed, Pod, Replacement};
use crate::cluster::removal::remove_voter;
use crate::cluster::step::{MemberStep, Plan, Step};
use crate::ordinal::Ordinal;

/// How long after a replacement the next one of the same name must wait; doubled each time, up to the maximum.
const FIRST_WAIT: SignedDuration = SignedDuration::from_secs(60);
const LONGEST_WAIT: SignedDuration = SignedDuration::from_secs(3600);

/// The next step to recover unhealthy members. If nothing can be done about any of them now, the plan is the one from
/// `otherwise`, which also reports what recovery waits for.
pub fn recover_members(observed: &Observed, membership: &Membership, otherwise: impl FnOnce() -> Plan) -> Plan {
    if let Some(step) = depose_corrupt_leader(observed, membership) {
        return Plan::steps(vec![step]);
    }
    let unhealthy_members = unhealthy_members(observed, membership);
    let mut waiting = None;
    for unhealthy in &unhealthy_members {
        let Remedy::Replace(why) = &unhealthy.remedy else { continue };
        match replace(observed, membership, unhealthy, why) {
            Some(plan) if !plan.steps.is_empty() => return plan,
            Some(plan) => waiting = waiting.or(plan.waiting),
            None => {}
        }
    }
    let silent = unhealthy_members.iter().find_map(|unhealthy| match &unhealthy.remedy {
        Remedy::RestartPod(why) => Some((unhealthy.ordinal, why.clone())),
        _ => None,
    });
    if let Some(step) = silent.and_then(|silent| restart(observed, silent)) {
        return Plan::steps(vec![step]);
    }
    let other = otherwise();
    Plan { waiting: other.waiting.or(waiting), ..other }
}

/// A new member gets its data from the leader, so no member with corrupt data leads, even while it can't be replaced.
fn depose_corrupt_leader(observed: &Observed, membership: &Membership) -> Option<Step> {
    if can_be_compared(observed) {
        return None;
    }
    let leader = membership.member(observed.leader()?).filter(|leader| observed.is_corrupt(leader))?;
    let is_fit = |voter: &&Member| observed.is_healthy(voter) && !observed.is_corrupt(voter);
    let (to, to_id) = membership.voters().filter(is_fit).filter_map(|voter| Some((voter.ordinal?, voter.id))).min()?;
    Some(Step::Member(leader.ordinal?, MemberStep::MoveLeader { to, to_id }))
}

struct UnhealthyMember<'a> {
    ordinal: Ordinal,
    member: &'a Member,
    diagnosis: Diagnosis,
    remedy: Remedy,
}

/// The managed members that are unhealthy and should stay, first those that waiting can't help.
fn unhealthy_members<'a>(observed: &Observed, membership: &'a Membership) -> Vec<UnhealthyMember<'a>> {
    let ours = membership.members.iter().filter_map(|member| Some((member.ordinal?, member)));
    let staying = ours.filter(|(ordinal, _)| observed.is_desired(*ordinal));
    let mut unhealthy_members: Vec<UnhealthyMember> = staying
        .filter_map(|(ordinal, member)| {
            let diagnosis = diagnose(observed, ordinal, member)?;
            let remedy = remedy_for(observed, &diagnosis);
            Some(UnhealthyMember { ordinal, member, diagnosis, remedy })
        })
        .collect();
    unhealthy_members.sort_by_key(|unhealthy| (urgency(&unhealthy.diagnosis), unhealthy.ordinal));
    unhealthy_members
}

fn urgency(diagnosis: &Diagnosis) -> u8 {
    match diagnosis {
        Diagnosis::DataLost(_) => 0,
        Diagnosis::Corrupt => 1,
        Diagnosis::NodeDown { .. } => 2,
        Diagnosis::Unresponsive { .. } | Diagnosis::NotTerminating { .. } => 3,
        Diagnosis::Blocked => 4,
    }
}

/// Removes a member permanently, so that a new one of its name can join. `None` if a learner that makes progress comes
/// first.
fn replace(observed: &Observed, membership: &Membership, unhealthy: &UnhealthyMember, why: &str) -> Option<Plan> {
    let UnhealthyMember { ordinal, member, .. } = *unhealthy;
    let name = observed.names.member_name(ordinal);
    let last = observed.objects.peers.get(&ordinal).and_then(|peer| peer.replacement.as_ref());
    let mut steps = Vec::new();
    if last.is_none_or(|last| last.member_id != member.id) {
        if let Some(last) = last.filter(|last| observed.elapsed_since(last.at) < wait_after(last)) {
            let message = format!(
                "{name} needs replacement ({why}); backing off until {} s after the last one",
                wait_after(last).as_secs()
            );
            return Some(Plan::waiting(WaitReason::ReplacementBackoff, message));
        }
        let in_succession = |last: &&Replacement| observed.elapsed_since(last.at) < wait_after(last) + LONGEST_WAIT;
        let count = last.filter(in_succession).map_or(0, |last| last.count);
        let replacement = Replacement { member_id: member.id, at: observed.now, count: count + 1, why: why.to_owned() };
        steps.push(Step::Member(ordinal, MemberStep::RecordReplacement { replacement }));
    }
    let removal = if member.learner {
        Plan::steps(vec![Step::Member(ordinal, MemberStep::RemoveMember { member_id: member.id, why: why.to_owned() })])
    } else {
        remove_voter(observed, membership, ordinal, member, why)
    };
    if removal.waiting.is_some() {
        return Some(removal);
    }
    if let Some(learner) = membership.learner().filter(|learner| learner.id != member.id) {
        let in_the_way = learner.ordinal.filter(|_| !observed.is_healthy(learner))?;
        // One change at a time. A learner that makes no progress is removed, and added again afterwards.
        let why = format!("making way for the replacement of {name}");
        return Some(Plan::steps(vec![Step::Member(
            in_the_way,
            MemberStep::RemoveMember { member_id: learner.id, why },
        )]));
    }
    steps.extend(removal.steps);
    Some(Plan::steps(steps))
}

/// How long after a replacement the next one of the same name must wait.
fn wait_after(last: &Replacement) -> SignedDuration {
    let doublings = last.count.saturating_sub(1).min(10);
    (FIRST_WAIT * (1 << doublings)).min(LONGEST_WAIT)
}

/// Without a quorum nothing is removed. A pod that hangs may be the one missing from the quorum.
pub fn restart_unresponsive_pod(observed: &Observed) -> Option<Step> {
    let silent = members_of_pods(observed).find_map(|(ordinal, identity)| {
        if observed.is_reached(ordinal) {
            return None;
        }
        let (id, peer_url) = (identity.member_id, observed.names.peer_url(ordinal));
        let member = Member { id, ordinal: Some(ordinal), peer_url, started: true, learner: false };
        match remedy_for(observed, &diagnose(observed, ordinal, &member)?) {
            Remedy::RestartPod(why) => Some((ordinal, why)),
            _ => None,
        }
    });
    restart(observed, silent?)
}

/// An initial member that hangs keeps the cluster from bootstrapping. It counts as unresponsive since its pod was
/// created. The cluster may already serve and be unreachable only for the operator: members that the kubelet reports
/// ready are left alone, and so are those that keep their data in their pods.
pub fn restart_unresponsive_initial_member(observed: &Observed) -> Option<Step> {
    let hangs = |pod: &Pod| pod.began && observed.wanted.durable && !pod.ready;
    let silent = observed.objects.pods.iter().find(|(ordinal, pod)| {
        let could_run = pod.node.is_some_and(|node| node.down_since.is_none()) && pod.problem.is_none();
        let age = observed.elapsed_since(pod.created);
        // A pod that has never started waits for its volume or its image, and has nothing to lose.
        let had_its_time = (hangs(pod) && age >= restart_after(observed)) || (!pod.began && age >= NOT_BEGUN);
        // Fetching and restoring a backup may take any time.
        could_run && had_its_time && !pod.restoring && !pod.deleting && !observed.is_reached(**ordinal)
    });
    restart(observed, (*silent?.0, "member not answering".to_owned()))
}

/// One pod at a time: none while that of another member is terminating, or was only just created and does not answer
/// yet.
fn restart(observed: &Observed, (ordinal, why): (Ordinal, String)) -> Option<Step> {
    let is_member = |pod: &Pod| {
        let identity = pod.expected.and_then(|expected| expected.identity);
        let has = |it: &Membership| identity.is_some_and(|identity| it.member(identity.member_id).is_some());
        observed.etcd.membership.as_ref().is_none_or(has)
    };
    let is_busy = |(other, pod): (&Ordinal, &Pod)| {
        let young = observed.elapsed_since(pod.created) < restart_after(observed);
        pod.deleting || (young && !observed.is_reached(*other))
    };
    let mut others = observed.objects.pods.iter().filter(|(other, pod)| **other != ordinal && is_member(pod));
    let free = !others.any(is_busy);
    free.then_some(Step::Member(ordinal, MemberStep::RestartPod { why }))
}
