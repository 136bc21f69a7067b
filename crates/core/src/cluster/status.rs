//! The status to report about a cluster: from what etcd itself reports, never from the phases of pods alone.

use std::borrow::Cow;

use etcd_operator_api::labels::selector_of_cluster;
use etcd_operator_api::{ConditionReason, EtcdClusterStatus, MemberRole, MemberStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use semver::Version;

use crate::cluster::diagnosis::{data_loss, known_members, unhealthy_since};
use crate::cluster::initial_members::{self, expected_cluster_id};
use crate::cluster::maintenance::is_out_of_space;
use crate::cluster::messages::describe;
use crate::cluster::observed::{AlarmKind, Answer, Member, MemberId, Membership, NoAnswer, Observed, Pod};
use crate::cluster::progress::{progress, updated};
use crate::cluster::quorum::quorum;
use crate::cluster::step::Plan;
use crate::conditions::{Statement, conditions_after};
use crate::ordinal::Ordinal;

/// The status to report. It equals the previous one if nothing changed.
pub fn status_to_report(
    observed: &Observed,
    plan: &Plan,
    previous: &EtcdClusterStatus,
    generation: Option<i64>,
    now: &Time,
) -> EtcdClusterStatus {
    let observed = &about_this_cluster(observed, previous);
    let statements = [available(observed, previous, now), progressing(observed, plan), degraded(observed)];
    let leader = observed.leader();
    EtcdClusterStatus {
        replicas: count(observed.objects.peers.len()),
        ready_replicas: count(healthy_voters(observed)),
        updated_replicas: count(updated(observed)),
        label_selector: Some(selector_of_cluster(&observed.names.cluster)),
        bootstrap: previous.bootstrap().cloned(),
        birth: None,
        cluster_id: previous.cluster_id.clone(),
        leader: leader.and_then(|leader| name_of(observed, leader)).or_else(|| previous.leader.clone()),
        members: members(observed, previous),
        cluster_version: observed.etcd.cluster_version.as_ref().map(Version::to_string),
        target_version: previous.target_version.clone(),
        oldest_log_version: previous.oldest_log_version.clone(),
        observed_generation: generation,
        conditions: conditions_after(&previous.conditions, &statements, generation, now),
    }
}

/// If another cluster answers at the members' addresses, nothing that it says is about this one.
fn about_this_cluster<'a>(observed: &'a Observed, previous: &EtcdClusterStatus) -> Cow<'a, Observed> {
    let is_another =
        |found: &Membership| expected_cluster_id(observed).is_some_and(|expected| expected != found.cluster_id);
    if !observed.etcd.membership.as_ref().is_some_and(is_another) {
        return Cow::Borrowed(observed);
    }
    let mut about = observed.clone();
    about.etcd.membership = None;
    about
        .etcd
        .answers
        .values_mut()
        .for_each(|answer| *answer = Err(NoAnswer("another etcd cluster answers".to_owned())));
    about.etcd.cluster_version = previous.cluster_version.as_deref().and_then(|it| Version::parse(it).ok());
    Cow::Owned(about)
}

/// A quorum is available if one member could answer a linearizable read.
fn available(observed: &Observed, previous: &EtcdClusterStatus, now: &Time) -> Statement {
    let healthy = healthy_voters(observed);
    if healthy > 0 && is_out_of_space(observed) {
        return Statement::no("Available", ConditionReason::NoSpace, out_of_space(observed));
    }
    let corrupt = observed.etcd.alarms.iter().any(|alarm| alarm.kind == AlarmKind::Corrupt);
    if healthy > 0 && corrupt {
        let message = format!("etcd refuses writes: members' data differs: {}", problems(observed).join("; "));
        return Statement::no("Available", ConditionReason::Corrupt, message);
    }
    if healthy > 0 {
        let all = observed.etcd.membership.iter().flat_map(Membership::voters).count();
        return Statement::yes(
            "Available",
            ConditionReason::QuorumAvailable,
            format!("{healthy} of {all} voters answer"),
        );
    }
    match observed.recorded.cluster_id {
        None => {
            let mut message = "members are starting for the first time".to_owned();
            for (ordinal, pod) in &observed.objects.pods {
                if let Some(problem) = &pod.problem {
                    message.push_str(&format!("; {}: {}", observed.names.member_name(*ordinal), problem.message));
                }
            }
            Statement::no("Available", ConditionReason::Bootstrapping, message)
        }
        Some(_) => quorum_lost(observed, previous, now).unwrap_or_else(|| {
            let reasons = problems(observed).join("; ");
            let reasons = if reasons.is_empty() { reasons } else { format!(": {reasons}") };
            Statement::no("Available", ConditionReason::NoQuorum, format!("no quorum of the members answers{reasons}"))
        }),
    }
}

/// The statement that too many members lost their data for the rest to ever regain a quorum, if so: waiting does not
/// help, and how to recover is for the user to choose.
fn quorum_lost(observed: &Observed, previous: &EtcdClusterStatus, now: &Time) -> Option<Statement> {
    let mut known = last_known_voters(observed, previous);
    known.sort_unstable();
    let (mut lost, mut left) = (Vec::new(), Vec::new());
    for (ordinal, id) in &known {
        let name = observed.names.member_name(*ordinal);
        match data_loss(observed, *ordinal, *id) {
            Some(why) => lost.push(format!("{name} ({why})")),
            None => left.push(name),
        }
    }
    if known.is_empty() || left.len() >= quorum(known.len()) {
        return None;
    }
    let unavailable = previous.conditions.iter().find(|it| it.type_ == "Available" && it.status == "False");
    let since = unavailable.map_or(now, |condition| &condition.last_transition_time).0;
    let left =
        if left.is_empty() { "none still has its data".to_owned() } else { format!("left: {}", left.join(", ")) };
    Some(Statement::no(
        "Available",
        ConditionReason::QuorumLost,
        format!(
            "{} of {} members lost their data, and the rest cannot form a quorum (unavailable since {since}): {}; \
             {left}. Nothing is deleted or bootstrapped again. Bring the volumes back, restore a backup into \
             a new cluster, or delete this EtcdCluster and its volume claims to start empty",
            lost.len(),
            known.len(),
            lost.join(", "),
        ),
    ))
}

/// The voters by ordinal and ID, from the best source that is left.
fn last_known_voters(observed: &Observed, previous: &EtcdClusterStatus) -> Vec<(Ordinal, MemberId)> {
    if let Some(local_membership) = &observed.etcd.local_membership {
        return local_membership.voters().filter_map(|voter| Some((voter.ordinal?, voter.id))).collect();
    }
    let reported = previous.members.iter().filter(|member| member.role != Some(MemberRole::Learner));
    let reported: Vec<(Ordinal, MemberId)> =
        reported.filter_map(|voter| Some((observed.names.ordinal_of_name(&voter.name)?, voter.id()?))).collect();
    if !reported.is_empty() {
        return reported;
    }
    let recorded = known_members(observed).filter(|(_, _, started)| *started);
    let recorded: Vec<(Ordinal, MemberId)> =
        recorded.map(|(ordinal, identity, _)| (ordinal, identity.member_id)).collect();
    match &observed.recorded.bootstrap {
        Some(bootstrap) if recorded.is_empty() => {
            let initial_member = |ordinal: Ordinal| {
                (ordinal, initial_members::identity_of(&observed.names, bootstrap, ordinal).member_id)
            };
            Ordinal::first(bootstrap.size).map(initial_member).collect()
        }
        _ => recorded,
    }
}

fn out_of_space(observed: &Observed) -> String {
    let size_of = |(ordinal, answer): (&Ordinal, &Result<Answer, NoAnswer>)| {
        let answer = answer.as_ref().ok()?;
        let name = observed.names.member_name(*ordinal);
        Some(format!("{name} {} ({} in use)", mebibytes(answer.db_size), mebibytes(answer.db_in_use)))
    };
    let sizes: Vec<String> = observed.etcd.answers.iter().filter_map(size_of).collect();
    let help = if observed.wanted.defragments {
        "compact the history (etcdctl compact); the operator does the rest while all members are healthy"
    } else {
        "compact the history, defragment the members and disarm the alarm (etcdctl compact, defrag, alarm disarm)"
    };
    format!(
        "etcd refuses writes: a database reached its quota of {}: {}. Delete what is not needed and \
         {help}",
        mebibytes(observed.objects.quota),
        sizes.join(", ")
    )
}

/// A size as users write it in a spec.
fn mebibytes(bytes: i64) -> String {
    const MEBIBYTE: i64 = 1 << 20;
    if bytes % MEBIBYTE == 0 {
        return format!("{}Mi", bytes / MEBIBYTE);
    }
    format!("{:.1}Mi", bytes as f64 / MEBIBYTE as f64)
}

fn progressing(observed: &Observed, plan: &Plan) -> Statement {
    // The membership change is the most relevant step for the user; it comes last.
    let doing = plan.steps.iter().rev().find_map(|step| describe(observed, step));
    match (doing, &plan.waiting) {
        (_, Some(waiting)) if waiting.reason.needs_user_action() => {
            Statement::no("Progressing", waiting.reason, &waiting.message)
        }
        (_, Some(waiting)) => Statement::yes("Progressing", waiting.reason, &waiting.message),
        (Some((reason, message)), None) if !observed.objects.outdated.is_empty() => {
            Statement::yes("Progressing", reason, format!("{}; {message}", progress(observed)))
        }
        (Some((reason, message)), None) => Statement::yes("Progressing", reason, message),
        (None, None) => Statement::no("Progressing", ConditionReason::UpToDate, "all members match the spec"),
    }
}

fn degraded(observed: &Observed) -> Statement {
    let problems = if observed.recorded.cluster_id.is_some() { problems(observed) } else { Vec::new() };
    if is_out_of_space(observed) {
        let all: Vec<String> = [out_of_space(observed)].into_iter().chain(problems).collect();
        Statement::yes("Degraded", ConditionReason::NoSpace, all.join("; "))
    } else if problems.is_empty() {
        Statement::no("Degraded", ConditionReason::AllMembersHealthy, "no unhealthy members")
    } else {
        Statement::yes("Degraded", ConditionReason::MembersUnhealthy, problems.join("; "))
    }
}

/// The unhealthy members, and why they are. A learner that has not started yet is starting, not unhealthy.
fn problems(observed: &Observed) -> Vec<String> {
    let ordinals: Vec<Ordinal> = match &observed.etcd.membership {
        Some(membership) => {
            let has_problem =
                |ordinal: Ordinal| observed.objects.pods.get(&ordinal).is_some_and(|pod| pod.problem.is_some());
            let on_its_way =
                |member: &Member| member.learner && !member.started && !member.ordinal.is_some_and(has_problem);
            let is_well = |member: &Member| observed.is_healthy(member) && !observed.is_corrupt(member);
            let unhealthy = membership.members.iter().filter(|member| !on_its_way(member) && !is_well(member));
            unhealthy.filter_map(|member| member.ordinal).collect()
        }
        None => {
            let answers =
                |ordinal: &Ordinal| matches!(observed.etcd.answers.get(ordinal), Some(Ok(answer)) if answer.reads);
            observed.objects.peers.keys().filter(|ordinal| !answers(ordinal)).copied().collect()
        }
    };
    let known = ordinals.into_iter().map(|ordinal| problem_of(observed, ordinal));
    known
        .chain(with_deleted_claims(observed))
        .chain(being_replaced(observed))
        .chain(unmanaged_voters(observed))
        .chain(unconfirmed_corruption(observed))
        .collect()
}

/// Healthy members whose volumes are deleted as soon as their pods are.
fn with_deleted_claims(observed: &Observed) -> impl Iterator<Item = String> {
    let members = observed.etcd.membership.iter().flat_map(|it| &it.members).filter(|it| observed.is_healthy(it));
    let ordinals = members.filter_map(|member| member.ordinal);
    let doomed = ordinals.filter(|ordinal| observed.objects.claims.get(ordinal).is_some_and(|claim| claim.deleting));
    doomed.map(|ordinal| {
        format!("the volume claim {} is being deleted: its data goes with its pod", observed.names.member_name(ordinal))
    })
}

/// The members that were replaced and whose successors are not voters yet.
fn being_replaced(observed: &Observed) -> impl Iterator<Item = String> {
    let given_up = observed.objects.peers.iter().filter(|(ordinal, peer)| {
        let has_no_vote =
            observed.etcd.membership.is_some() && observed.member(**ordinal).is_none_or(|member| member.learner);
        has_no_vote && observed.is_desired(**ordinal) && peer.replacement.is_some()
    });
    given_up.map(|(ordinal, _)| format!("{} is being replaced", observed.names.member_name(*ordinal)))
}

/// The health of voters that another client added can't be queried; they count for the quorum, so they are reported.
fn unmanaged_voters(observed: &Observed) -> impl Iterator<Item = String> {
    let voters = observed.etcd.membership.iter().flat_map(Membership::voters).filter(|voter| voter.ordinal.is_none());
    voters.map(|voter| format!("member {} was not added by this operator; its health is unknown", voter.id))
}

/// Corruption that etcd reports and no majority confirms.
fn unconfirmed_corruption(observed: &Observed) -> impl Iterator<Item = String> {
    let unconfirmed = observed
        .etcd
        .alarms
        .iter()
        .filter(|it| it.kind == AlarmKind::Corrupt && !observed.remembered.differing.contains(&it.member_id));
    unconfirmed.map(|alarm| {
        match observed.etcd.membership.as_ref().and_then(|membership| membership.member(alarm.member_id)) {
            Some(member) => format!(
                "etcd finds {}'s data wrong, but no majority of the members agrees; compare them before you remove one",
                observed.name_of(member)
            ),
            None => "etcd found that members' data differs, but not whose is wrong".to_owned(),
        }
    })
}

fn problem_of(observed: &Observed, ordinal: Ordinal) -> String {
    let name = observed.names.member_name(ordinal);
    if observed.member(ordinal).is_some_and(|member| observed.is_corrupt(member)) {
        return format!("{name}'s data differs from that of the other members");
    }
    if observed.wanted.durable && !observed.objects.claims.contains_key(&ordinal) {
        return format!("{name} has no volume: its claim is gone");
    }
    let pod = observed.objects.pods.get(&ordinal);
    if pod.and_then(|pod| pod.node).is_some_and(|node| node.down_since.is_some()) {
        return format!("{name} not answering: its node is down");
    }
    match (observed.objects.pods.get(&ordinal), observed.etcd.answers.get(&ordinal)) {
        (None, _) => format!("{name} has no pod"),
        (Some(pod), _) if pod.deleting => format!("{name}'s pod is terminating"),
        (Some(Pod { problem: Some(problem), .. }), _) => format!("{name}: {}", problem.message),
        // Without a quorum that is expected: etcd does not serve clients before it has joined one.
        (Some(pod), Some(Err(why))) if pod.ready && observed.etcd.membership.is_some() => {
            format!("{name} not reachable by the operator ({why}), but its pod is ready")
        }
        (Some(_), Some(Err(why))) => format!("{name} not answering ({why})"),
        (Some(_), Some(Ok(_))) => format!("{name} answers, but cannot serve linearizable reads"),
        (Some(_), None) => format!("{name}'s pod has not started yet"),
    }
}

fn members(observed: &Observed, previous: &EtcdClusterStatus) -> Vec<MemberStatus> {
    let since = unhealthy_since(observed);
    let Some(membership) = &observed.etcd.membership else {
        // Etcd can't be queried: the members are those last known, and none of them is known to be healthy.
        let unhealthy = |member: &MemberStatus| MemberStatus {
            healthy: Some(false),
            unhealthy_since: member.id().map(|id| Time(*since.get(&id).unwrap_or(&observed.now))),
            ..member.clone()
        };
        return previous.members.iter().map(unhealthy).collect();
    };
    let mut sorted: Vec<&Member> = membership.members.iter().collect();
    sorted.sort_by_key(|member| (member.ordinal.unwrap_or(Ordinal(u32::MAX)), member.id));
    let report = |member: &Member| MemberStatus {
        unhealthy_since: since.get(&member.id).map(|since| Time(*since)),
        ..report_member(observed, member, previous)
    };
    sorted.into_iter().map(report).collect()
}

fn report_member(observed: &Observed, member: &Member, previous: &EtcdClusterStatus) -> MemberStatus {
    let answer = observed.answer_of(member);
    let role = match member {
        Member { learner: true, .. } => MemberRole::Learner,
        _ if observed.leader() == Some(member.id) => MemberRole::Leader,
        _ => MemberRole::Voter,
    };
    let name = observed.name_of(member);
    let reported_size = previous.member(&name).and_then(|member| member.db_size);
    MemberStatus {
        name,
        id: member.id.to_string(),
        role: Some(role),
        version: answer.and_then(|answer| answer.version.as_ref()).map(Version::to_string),
        healthy: Some(observed.is_healthy(member)),
        db_size: answer.map(|answer| size_to_report(answer.db_size, reported_size)),
        volume_size: member.ordinal.and_then(|ordinal| observed.objects.claims.get(&ordinal)?.size.clone()),
        unhealthy_since: None,
    }
}

/// The size of a database that is written to changes all the time. A new status is reported only when it has changed by
/// a tenth and by a mebibyte.
fn size_to_report(now: i64, reported: Option<i64>) -> i64 {
    match reported {
        Some(reported) if (now - reported).abs() < (reported / 10).max(1 << 20) => reported,
        _ => now,
    }
}

fn name_of(observed: &Observed, member_id: MemberId) -> Option<String> {
    observed.etcd.membership.as_ref()?.member(member_id).map(|member| observed.name_of(member))
}

fn healthy_voters(observed: &Observed) -> usize {
    let voters = observed.etcd.membership.iter().flat_map(Membership::voters);
    voters.filter(|voter| observed.is_healthy(voter)).count()
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
