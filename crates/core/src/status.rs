//! What to report about a cluster in its status: from what etcd itself says, never from the phases of pods alone.

use etcd_operator_api::labels::selector_of_cluster;
use etcd_operator_api::{EtcdClusterStatus, Member as ReportedMember, MemberRole, format_id};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::conditions::{Statement, conditions_after};
use crate::observed::{Member, Membership, Observed};
use crate::plan::{Plan, Step};

/// The status to report. It equals the previous one if there is nothing new to say.
pub fn status_to_report(
    observed: &Observed,
    plan: &Plan,
    previous: &EtcdClusterStatus,
    generation: Option<i64>,
    now: &Time,
) -> EtcdClusterStatus {
    let statements = [available(observed), progressing(observed, plan), degraded(observed)];
    let leader = observed.leader();
    EtcdClusterStatus {
        replicas: count(observed.peers.len()),
        ready_replicas: count(healthy_voters(observed)),
        label_selector: Some(selector_of_cluster(&observed.place.cluster)),
        birth: previous.birth.clone(),
        cluster_id: previous.cluster_id.clone(),
        leader: leader.and_then(|leader| name_of(observed, leader)).or_else(|| previous.leader.clone()),
        members: members(observed, previous),
        cluster_version: cluster_version(observed).or_else(|| previous.cluster_version.clone()),
        observed_generation: generation,
        conditions: conditions_after(&previous.conditions, &statements, generation, now),
    }
}

/// A quorum answers if one member could do a read that needs one.
fn available(observed: &Observed) -> Statement {
    let healthy = healthy_voters(observed);
    if healthy > 0 {
        let all = observed.membership.iter().flat_map(Membership::voters).count();
        return Statement::yes("Available", "QuorumAnswers", format!("{healthy} of {all} voting members answer"));
    }
    match observed.cluster_id {
        None => {
            let mut message = "the members are being started for the first time".to_owned();
            for (ordinal, pod) in &observed.pods {
                if let Some(problem) = &pod.problem {
                    message.push_str(&format!("; {}: {problem}", observed.place.member_name(*ordinal)));
                }
            }
            Statement::no("Available", "NotYetBorn", message)
        }
        Some(_) => {
            let reasons = problems(observed).join("; ");
            Statement::no("Available", "NoQuorum", format!("no quorum of the members answers: {reasons}"))
        }
    }
}

fn progressing(observed: &Observed, plan: &Plan) -> Statement {
    // The membership change is what a person wants to read about; it comes last.
    let doing = plan.steps.iter().rev().find_map(|step| describe(observed, step));
    match (doing, &plan.waiting) {
        (_, Some(waiting)) if waiting.reason == "Refused" || waiting.reason == "WrongCluster" => {
            Statement::no("Progressing", waiting.reason, &waiting.message)
        }
        (_, Some(waiting)) => Statement::yes("Progressing", waiting.reason, &waiting.message),
        (Some((reason, message)), None) => Statement::yes("Progressing", reason, message),
        (None, None) if !observed.outdated.is_empty() => {
            let names: Vec<String> = observed.outdated.iter().map(|it| observed.place.member_name(*it)).collect();
            let message = format!(
                "the spec has changed since these members were made, and they keep the old one for now: {}",
                names.join(", ")
            );
            Statement::no("Progressing", "ChangeNotCarriedOut", message)
        }
        (None, None) => Statement::no("Progressing", "AsAskedFor", "the cluster is as its spec asks for"),
    }
}

fn degraded(observed: &Observed) -> Statement {
    let problems = if observed.cluster_id.is_some() { problems(observed) } else { Vec::new() };
    if problems.is_empty() {
        Statement::no("Degraded", "AllMembersHealthy", "no member is known to be unhealthy")
    } else {
        Statement::yes("Degraded", "MembersUnhealthy", problems.join("; "))
    }
}

/// Which members are not well, and why. A learner that has not started yet is on its way, not ill.
fn problems(observed: &Observed) -> Vec<String> {
    let ordinals: Vec<u32> = match &observed.membership {
        Some(membership) => {
            let on_its_way = |member: &Member| member.learner && !member.started;
            let ill = membership.members.iter().filter(|member| !on_its_way(member) && !observed.is_healthy(member));
            ill.filter_map(|member| member.ordinal).collect()
        }
        None => {
            let answers = |ordinal: &u32| matches!(observed.answers.get(ordinal), Some(Ok(answer)) if answer.reads);
            observed.peers.keys().filter(|ordinal| !answers(ordinal)).copied().collect()
        }
    };
    ordinals.into_iter().map(|ordinal| problem_of(observed, ordinal)).collect()
}

fn problem_of(observed: &Observed, ordinal: u32) -> String {
    let name = observed.place.member_name(ordinal);
    if observed.durable && !observed.claims.contains_key(&ordinal) {
        return format!("{name} has no volume: its claim is gone");
    }
    match (observed.pods.get(&ordinal), observed.answers.get(&ordinal)) {
        (None, _) => format!("{name} has no pod"),
        (Some(pod), _) if pod.deleting => format!("{name}'s pod is being stopped"),
        (Some(pod), _) if pod.problem.is_some() => {
            format!("{name}: {}", pod.problem.as_deref().unwrap_or_default())
        }
        (Some(_), Some(Err(why))) => format!("{name} does not answer ({why})"),
        (Some(_), Some(Ok(_))) => format!("{name} answers, but not a read that needs a quorum"),
        (Some(_), None) => format!("{name}'s pod has not started yet"),
    }
}

/// What a step does, as a reason and a sentence. Notes for the operator's own use are not worth a word.
fn describe(observed: &Observed, step: &Step) -> Option<(&'static str, String)> {
    let name = |ordinal: &u32| observed.place.member_name(*ordinal);
    Some(match step {
        Step::RecordBirth(birth) => ("Founding", format!("a cluster of {} members is being founded", birth.size)),
        Step::RecordClusterId(id) => ("Born", format!("the members have formed the etcd cluster {}", format_id(*id))),
        Step::CreatePeer { ordinal, .. } | Step::CreateClaim { ordinal, .. } | Step::CreatePod { ordinal, .. } => {
            ("StartingMember", format!("{} is being started", name(ordinal)))
        }
        Step::DeletePod { ordinal, why } => ("StoppingPod", format!("{}'s pod is being stopped: {why}", name(ordinal))),
        Step::DeleteClaim { ordinal } | Step::DeletePeer { ordinal } => {
            ("CleaningUp", format!("what {} left behind is being removed", name(ordinal)))
        }
        Step::AddLearner { ordinal } => ("AddingMember", format!("{} is being added as a learner", name(ordinal))),
        Step::Promote { ordinal, .. } => ("PromotingMember", format!("{} is being promoted to vote", name(ordinal))),
        Step::MoveLeader { from, to, .. } => {
            ("MovingLeader", format!("leadership is being moved from {} to {}", name(from), name(to)))
        }
        Step::RemoveMember { ordinal, .. } => ("RemovingMember", format!("{} is being removed", name(ordinal))),
        Step::RecordMember { .. } | Step::MarkClaim { .. } | Step::TellPod { .. } => return None,
    })
}

fn members(observed: &Observed, previous: &EtcdClusterStatus) -> Vec<ReportedMember> {
    let Some(membership) = &observed.membership else {
        // Etcd can't be asked: the members are those last known, and none of them is known to be healthy.
        let unhealthy = |member: &ReportedMember| ReportedMember { healthy: Some(false), ..member.clone() };
        return previous.members.iter().map(unhealthy).collect();
    };
    let mut sorted: Vec<&Member> = membership.members.iter().collect();
    sorted.sort_by_key(|member| (member.ordinal.unwrap_or(u32::MAX), member.id));
    sorted.into_iter().map(|member| report_member(observed, member, previous)).collect()
}

fn report_member(observed: &Observed, member: &Member, previous: &EtcdClusterStatus) -> ReportedMember {
    let answer =
        member.ordinal.and_then(|ordinal| observed.answers.get(&ordinal)).and_then(|answer| answer.as_ref().ok());
    let role = match member {
        Member { learner: true, .. } => MemberRole::Learner,
        _ if observed.leader() == Some(member.id) => MemberRole::Leader,
        _ => MemberRole::Voter,
    };
    let name = observed.name_of(member);
    let reported_size = previous.member(&name).and_then(|member| member.db_size);
    ReportedMember {
        name,
        id: format_id(member.id),
        role: Some(role),
        version: answer.map(|answer| answer.version.clone()),
        healthy: Some(observed.is_healthy(member)),
        db_size: answer.map(|answer| size_to_report(answer.db_size, reported_size)),
    }
}

/// The size of a database that is written to changes all the time. It is worth a new status when it has changed by a
/// tenth, and by a mebibyte.
fn size_to_report(now: i64, reported: Option<i64>) -> i64 {
    match reported {
        Some(reported) if (now - reported).abs() < (reported / 10).max(1 << 20) => reported,
        _ => now,
    }
}

fn name_of(observed: &Observed, member_id: u64) -> Option<String> {
    let members = &observed.membership.as_ref()?.members;
    members.iter().find(|member| member.id == member_id).map(|member| observed.name_of(member))
}

fn healthy_voters(observed: &Observed) -> usize {
    let voters = observed.membership.iter().flat_map(Membership::voters);
    voters.filter(|voter| observed.is_healthy(voter)).count()
}

/// The version that all members support: the lowest minor among them.
fn cluster_version(observed: &Observed) -> Option<String> {
    let versions = observed.answers.values().flatten().filter_map(|answer| minor_of(&answer.version));
    versions.min().map(|(major, minor)| format!("{major}.{minor}.0"))
}

fn minor_of(version: &str) -> Option<(u64, u64)> {
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
