//! The objects that a member needs to run: its EtcdPeer, its claim and its pod. Nothing here changes the membership.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use crate::cluster::diagnosis::data_loss;
use crate::cluster::draining::{awaits_handover, is_leaving};
use crate::cluster::initial_members;
use crate::cluster::leftovers::{bootstrap_of, is_unmarked_initial_claim, stop_pod_of_removed};
use crate::cluster::observed::{
    Bootstrap, ClusterId, DataState, ExpectedData, Identity, Member, Membership, Observed, Pod, ProblemKind,
};
use crate::cluster::recreate::model_of_new;
use crate::cluster::step::{MemberStep, Start, Step};
use crate::cluster::versions::data_version;
use crate::ordinal::Ordinal;

/// How long a member that never ran may fail to start before its pod is recreated.
const STARTS_WITHIN: SignedDuration = SignedDuration::from_secs(120);

/// Starts all initial members at once, with everything that they need.
pub fn start_initial_members(observed: &Observed, bootstrap: &Bootstrap) -> Vec<Step> {
    let mut steps = Vec::new();
    for ordinal in Ordinal::first(bootstrap.size) {
        if !observed.objects.peers.contains_key(&ordinal) {
            steps.push(Step::Member(ordinal, MemberStep::CreatePeer { initial: true, model: model_of_new(observed) }));
        }
        if observed.wanted.durable && !observed.objects.claims.contains_key(&ordinal) {
            steps.push(Step::Member(
                ordinal,
                MemberStep::CreateClaim { bootstrap: Some(bootstrap.clone()), identity: None },
            ));
        }
        let initial_cluster = Ordinal::first(bootstrap.size).map(|ordinal| entry(observed, ordinal)).collect();
        let identity = Some(initial_members::identity_of(&observed.names, bootstrap, ordinal));
        let expected = ExpectedData { data: DataState::New, identity };
        let start =
            Start { bootstrap_token: Some(bootstrap.token.clone()), initial_cluster, expected, serves_clients: true };
        steps.extend(run_pod(observed, ordinal, start));
    }
    steps
}

/// Restarts every known member of a cluster that can't be queried: this is how it recovers from a power cut, or after
/// it was deleted and recreated. No member starts without data: one that has none waits until the others can be
/// queried.
pub fn restart_known_members(observed: &Observed, cluster_id: ClusterId) -> Vec<Step> {
    let mut steps = Vec::new();
    let bootstrap = bootstrap_of(observed, cluster_id);
    let ordinals: BTreeSet<Ordinal> =
        observed.objects.peers.keys().chain(observed.objects.claims.keys()).copied().collect();
    for &ordinal in &ordinals {
        let (peer, claim) = (observed.objects.peers.get(&ordinal), observed.objects.claims.get(&ordinal));
        let recorded = peer.and_then(|peer| Some((peer.identity?, peer.started)));
        // An EtcdPeer that was recreated a moment ago records no identity yet; its claim does.
        let claimed = claim.and_then(|claim| claim.identity).filter(|identity| identity.cluster_id == cluster_id);
        let known = recorded.or_else(|| Some((claimed?, true)));
        let identity = match (known, &bootstrap) {
            // Also a member that was not observed running: if it ran, its data is needed; if it did not, the gate
            // refuses the start.
            (Some((identity, _)), _) => identity,
            // An initial member that was never observed running. If it has data, it returns with it. If not, it is
            // unknown whether it ever had any, and it waits until the other members can be queried.
            (_, Some(bootstrap)) if claim.is_some_and(|claim| is_unmarked_initial_claim(claim, bootstrap)) => {
                initial_members::identity_of(&observed.names, bootstrap, ordinal)
            }
            _ => continue,
        };
        if peer.is_none() {
            steps.push(Step::Member(ordinal, MemberStep::CreatePeer { initial: false, model: model_of_new(observed) }));
        }
        let expected = ExpectedData { data: DataState::Existing, identity: Some(identity) };
        // Data in the pod itself does not return with a new pod.
        let run = claim.and_then(|_| {
            let initial_cluster = ordinals.iter().map(|fellow| entry(observed, *fellow)).collect();
            run_pod(observed, ordinal, Start { bootstrap_token: None, initial_cluster, expected, serves_clients: true })
        });
        // As always, the pod is annotated that it must have data before anything relies on that data.
        let is_annotated = matches!(run, Some(Step::Member(_, MemberStep::CreatePod { .. })))
            || observed.objects.pods.get(&ordinal).is_some_and(|pod| pod.expected == Some(expected));
        steps.extend(run);
        if let (None, Some((identity, started)), true) = (recorded, known, is_annotated) {
            steps.push(Step::Member(ordinal, MemberStep::RecordMember { identity, started }));
        }
    }
    steps
}

/// Creates everything that each member needs to run, and records what is known about it.
pub fn keep_members_running(observed: &Observed, membership: &Membership) -> Vec<Step> {
    let ours = membership.members.iter().filter_map(|member| Some((member.ordinal?, member)));
    // A learner that is no longer desired is not even started.
    let staying = ours.filter(|(ordinal, member)| !member.learner || observed.is_desired(*ordinal));
    staying.flat_map(|(ordinal, member)| keep_member_running(observed, membership, ordinal, member)).collect()
}

fn keep_member_running(observed: &Observed, membership: &Membership, ordinal: Ordinal, member: &Member) -> Vec<Step> {
    let mut steps = Vec::new();
    let identity = Identity { member_id: member.id, cluster_id: membership.cluster_id };
    let peer = observed.objects.peers.get(&ordinal);
    let recorded = peer.filter(|peer| peer.identity == Some(identity));
    // A claim that was created for a learner may have been taken as proof that it ran; the membership is authoritative.
    // A member that answers has started too, even if the others don't know it yet.
    let answers = matches!(observed.etcd.answers.get(&ordinal), Some(Ok(answer)) if answer.identity == identity);
    let started = member.started || answers;
    if peer.is_none() {
        steps.push(Step::Member(ordinal, MemberStep::CreatePeer { initial: false, model: model_of_new(observed) }));
    }
    let expected =
        ExpectedData { data: if started { DataState::Existing } else { DataState::New }, identity: Some(identity) };
    let serves_clients = !member.learner && !is_leaving(observed, ordinal) && !awaits_handover(observed, ordinal);
    let record = Some(Step::Member(ordinal, MemberStep::RecordMember { identity, started }));
    let record = record.filter(|_| recorded.is_none_or(|peer| peer.started != started));
    if !started {
        steps.extend(record.clone());
    }
    let claim = observed.objects.claims.get(&ordinal);
    match claim {
        None if observed.wanted.durable && !started => {
            steps.push(Step::Member(ordinal, MemberStep::CreateClaim { bootstrap: None, identity: Some(identity) }));
        }
        // For a learner before it starts: the claim may belong to an earlier member, and be annotated with it.
        Some(claim) if (started || member.learner) && !claim.deleting => {
            let version = data_version(observed, member, claim.version.as_ref());
            if claim.identity != Some(identity) || claim.version != version {
                steps.push(Step::Member(ordinal, MemberStep::MarkClaim { identity, version }));
            }
        }
        _ => {}
    }
    // A new claim or a new pod would not restore the data.
    if started && !observed.is_healthy(member) && data_loss(observed, ordinal, member.id).is_some() {
        return steps;
    }
    match observed.objects.pods.get(&ordinal) {
        Some(pod) if is_fenced(observed, pod) => steps.push(fence(ordinal)),
        Some(pod) if expects_another_member(pod.expected, identity) => {
            steps.extend(stop_pod_of_removed(observed, ordinal, pod))
        }
        Some(pod) if pod.deleting => {}
        // The pod waits for data that never existed, and its list of members may be stale.
        Some(pod) if !started && pod.expected.is_some_and(|expected| expected.data == DataState::Existing) => {
            let why = "its member has never run, and must start as a new one".to_owned();
            steps.push(Step::Member(ordinal, MemberStep::DeletePod { why }));
        }
        // Likewise stale: members may have been added and removed since the pod was created.
        Some(pod) if !started && fails_to_start(observed, pod) => {
            let why = "its member does not start, and may know an old list of members".to_owned();
            steps.push(Step::Member(ordinal, MemberStep::DeletePod { why }));
        }
        Some(pod) if !pod.finished && !is_blocked_by_its_claim(observed, ordinal, pod) => {
            if pod.expected != Some(expected) || pod.serves_clients != serves_clients {
                steps.push(Step::Member(ordinal, MemberStep::AnnotatePod { expected, serves_clients }));
            }
        }
        _ => {
            // etcd requires exactly the current members, including those that another client added.
            let all = membership.members.iter();
            let initial_cluster = all.map(|member| (observed.name_of(member), member.peer_url.clone())).collect();
            steps.extend(run_pod(
                observed,
                ordinal,
                Start { bootstrap_token: None, initial_cluster, expected, serves_clients },
            ));
        }
    }
    // The pod is annotated that it must have data before anything relies on that data.
    let tells = |step: &Step| {
        matches!(step, Step::Member(_, MemberStep::AnnotatePod { .. }) | Step::Member(_, MemberStep::CreatePod { .. }))
    };
    let is_annotated = observed.objects.pods.get(&ordinal).is_some_and(|pod| pod.expected == Some(expected))
        || steps.iter().any(tells);
    if started && is_annotated {
        steps.extend(record);
    }
    steps
}

/// Whether a pod has had enough time to start and keeps failing.
fn fails_to_start(observed: &Observed, pod: &Pod) -> bool {
    let ends = pod.problem.as_ref().is_some_and(|problem| problem.kind == ProblemKind::Other);
    ends && observed.elapsed_since(pod.created) >= STARTS_WITHIN
}

fn expects_another_member(expected: Option<ExpectedData>, identity: Identity) -> bool {
    expected.and_then(|expected| expected.identity).is_some_and(|known| known != identity)
}

/// Whether an administrator confirms that a pod no longer runs, although its node can't report it, and the member can
/// run elsewhere.
fn is_fenced(observed: &Observed, pod: &Pod) -> bool {
    observed.wanted.durable && pod.node.is_some_and(|node| node.fenced && node.down_since.is_some())
}

fn fence(ordinal: Ordinal) -> Step {
    Step::Member(ordinal, MemberStep::FencePod { why: "its node is out of service".to_owned() })
}

/// Creates the pod, or deletes one that will never run again so that it can be recreated. No pod is created on a claim
/// that is being deleted: it could not run, and might block the deletion of the claim.
fn run_pod(observed: &Observed, ordinal: Ordinal, start: Start) -> Option<Step> {
    match observed.objects.pods.get(&ordinal) {
        None if observed.objects.claims.get(&ordinal).is_some_and(|claim| claim.deleting) => None,
        None if observed.objects.peers.get(&ordinal).is_some_and(|peer| peer.deleting) => None,
        None => Some(Step::Member(ordinal, MemberStep::CreatePod { start })),
        Some(pod) if is_fenced(observed, pod) => Some(fence(ordinal)),
        Some(pod) if pod.finished && !pod.deleting => {
            Some(Step::Member(ordinal, MemberStep::DeletePod { why: "it has ended and will not run again".to_owned() }))
        }
        Some(pod) if is_blocked_by_its_claim(observed, ordinal, pod) && !pod.deleting => Some(Step::Member(
            ordinal,
            MemberStep::DeletePod { why: "it waits for a volume that is being deleted".to_owned() },
        )),
        Some(_) => None,
    }
}

/// Whether a pod and its claim block each other: the pod can't be scheduled while the claim is being deleted, and the
/// claim is not deleted while a pod uses it.
fn is_blocked_by_its_claim(observed: &Observed, ordinal: Ordinal, pod: &Pod) -> bool {
    pod.node.is_none() && observed.objects.claims.get(&ordinal).is_some_and(|claim| claim.deleting)
}

fn entry(observed: &Observed, ordinal: Ordinal) -> (String, String) {
    (observed.names.member_name(ordinal), observed.names.peer_url(ordinal))
}
