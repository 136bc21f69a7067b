//! What to do next. `plan` returns the steps that can be taken now, in order, at most one of which changes etcd's
//! membership; or what it waits for. It is called again after every change, so a plan never looks further ahead, and
//! its execution may stop after any step.

use std::collections::BTreeSet;

use etcd_operator_api::{Pace, WaitReason};
use jiff::SignedDuration;

use crate::cluster::acceptance::adopt_version;
use crate::cluster::bootstrap::{Stage, stage_of};
use crate::cluster::initial_members;
use crate::cluster::leftovers::remove_leftovers;
use crate::cluster::maintenance::{disarm_orphans, next_maintenance};
use crate::cluster::members::{keep_members_running, restart_known_members, start_initial_members};
use crate::cluster::observed::{Bootstrap, ClusterId, Observed, Pod};
use crate::cluster::recovery::{recover_members, restart_unresponsive_initial_member, restart_unresponsive_pod};
use crate::cluster::recreate::{recreate_broken, recreate_stopped_members};
use crate::cluster::rollout::next_change;
use crate::cluster::scaling::next_membership_change;
use crate::cluster::shared_objects::apply_shared_objects;
pub use crate::cluster::step::{ClusterStep, MemberStep, Model, Plan, Start, Step, Waiting};
use crate::cluster::volumes::{grow_claims, next_migration, repair_claims};
use crate::ordinal::Ordinal;

/// Whether a step is also planned from a live observation. A cache may be stale: that is good enough to create
/// something, never to remove something.
pub fn is_confirmed(step: &Step, live: &Observed) -> bool {
    plan(live).steps.iter().any(|planned| planned.is_same_act(step))
}

pub fn plan(observed: &Observed) -> Plan {
    // Kubernetes garbage-collects what the cluster owns. It does not own the claims, unless the user wants them
    // deleted.
    if observed.wanted.deleting {
        return Plan::default();
    }
    if let Some(source) = &observed.wanted.paused {
        return Plan::waiting(WaitReason::Paused, format!("paused: {source}"));
    }
    let planned = match stage_of(observed) {
        Stage::Refused(message) => Plan::waiting(WaitReason::VolumesConflict, message),
        Stage::ToWait(message) => Plan::waiting(WaitReason::WaitingForCleanup, message),
        Stage::ToRecord(bootstrap) => Plan::steps(vec![Step::Cluster(ClusterStep::RecordBootstrap(bootstrap))]),
        Stage::ToAdopt(cluster_id) => Plan::steps(vec![Step::Cluster(ClusterStep::RecordClusterId(cluster_id))]),
        Stage::Bootstrapping(bootstrap) => form_cluster(observed, &bootstrap),
        Stage::Bootstrapped(cluster_id) => keep(observed, cluster_id),
    };
    let Plan { steps, waiting } = without_obsolete_pods(planned);
    let first = apply_shared_objects(observed).into_iter().chain(repair_claims(observed));
    Plan { steps: first.chain(steps).collect(), waiting }
}

/// A member that is about to be recreated or removed gets no pod first. Kubernetes may reject the pod, and a failed
/// step for a member blocks the later steps for it. Nor is it recorded as started then: that relies on a pod that knows.
fn without_obsolete_pods(plan: Plan) -> Plan {
    let goes = |step: &MemberStep| matches!(step, MemberStep::RecreatePeer { .. } | MemberStep::RemoveMember { .. });
    let creates = |step: &MemberStep| matches!(step, MemberStep::CreatePod { .. });
    let those = |is_one: &dyn Fn(&MemberStep) -> bool| -> BTreeSet<Ordinal> {
        let of_members = plan.steps.iter().filter_map(|step| match step {
            Step::Member(ordinal, step) if is_one(step) => Some(*ordinal),
            _ => None,
        });
        of_members.collect()
    };
    let obsolete = &those(&goes) & &those(&creates);
    let is_obsolete = |step: &Step| {
        let relies_on_the_pod =
            |it: &MemberStep| creates(it) || matches!(it, MemberStep::RecordMember { started: true, .. });
        matches!(step, Step::Member(ordinal, step) if obsolete.contains(ordinal) && relies_on_the_pod(step))
    };
    Plan { steps: plan.steps.iter().filter(|step| !is_obsolete(step)).cloned().collect(), waiting: plan.waiting }
}

/// Starts all initial members at once. The cluster is bootstrapped when a quorum of them answers.
fn form_cluster(observed: &Observed, bootstrap: &Bootstrap) -> Plan {
    let expected = initial_members::cluster_id(&observed.names, bootstrap);
    match &observed.etcd.membership {
        Some(membership) if membership.cluster_id == expected => {
            return Plan::steps(vec![Step::Cluster(ClusterStep::RecordClusterId(expected))]);
        }
        Some(membership) => return wrong_cluster(membership.cluster_id, expected),
        None => {}
    }
    if let Some(plan) = adopt_version(observed) {
        return plan;
    }
    let mut steps = start_initial_members(observed, bootstrap);
    steps.extend(recreate_stopped_members(observed));
    steps.extend(restart_unresponsive_initial_member(observed));
    Plan { steps, waiting: Some(Waiting::new(WaitReason::Bootstrapping, bootstrap_progress(observed, bootstrap))) }
}

/// For how long after its pod was created an initial member that is ready may still be unreachable without a report.
const REACHED_WITHIN: SignedDuration = SignedDuration::from_secs(60);

/// How many initial members answer. Members that are healthy but unreachable for the operator are reported.
fn bootstrap_progress(observed: &Observed, bootstrap: &Bootstrap) -> String {
    let answering = observed.etcd.answers.values().filter(|answer| answer.is_ok()).count();
    let message = format!("{answering} of {} initial members answer", bootstrap.size);
    // A pod that has only just become ready may be reached at the next reconcile.
    let is_old = |pod: &Pod| observed.elapsed_since(pod.created) >= REACHED_WITHIN;
    let is_unreached = |(ordinal, pod): &(&Ordinal, &Pod)| pod.ready && is_old(pod) && !observed.is_reached(**ordinal);
    let unreached = observed.objects.pods.iter().filter(is_unreached);
    let unreached: Vec<String> = unreached.map(|(ordinal, _)| observed.names.member_name(*ordinal)).collect();
    if unreached.is_empty() {
        return message;
    }
    format!("{message}; {} ready, but the operator can't connect: check network policies", unreached.join(", "))
}

fn keep(observed: &Observed, cluster_id: ClusterId) -> Plan {
    let Some(membership) = &observed.etcd.membership else {
        if let Some(plan) = adopt_version(observed) {
            return plan;
        }
        let mut steps = restart_known_members(observed, cluster_id);
        steps.extend(recreate_stopped_members(observed));
        steps.extend(restart_unresponsive_pod(observed));
        return Plan { steps, waiting: Some(Waiting::new(WaitReason::NoQuorum, "no quorum of the members answers")) };
    };
    if membership.cluster_id != cluster_id {
        return wrong_cluster(membership.cluster_id, cluster_id);
    }
    let mut steps = keep_members_running(observed, membership);
    steps.extend(remove_leftovers(observed, membership));
    steps.extend(disarm_orphans(observed, membership));
    // Unhealthy members come before scaling, and both come before changes to healthy members.
    let next = recover_members(observed, membership, || {
        recreate_broken(observed, membership)
            .or_else(|| next_membership_change(observed, membership))
            .or_else(|| next_change(observed, membership))
            .or_else(|| next_migration(observed, membership))
    });
    // Waiting for a user does not block maintenance.
    let idle = next.steps.is_empty() && next.waiting.as_ref().is_none_or(|waiting| waiting.reason.pace() == Pace::Long);
    let maintenance = if idle { next_maintenance(observed, membership).steps } else { Vec::new() };
    // A failed step for a member blocks the later steps for it, so steps that may be rejected come last.
    steps.extend(next.steps.into_iter().chain(maintenance).chain(grow_claims(observed)));
    Plan { steps, waiting: next.waiting }
}

fn wrong_cluster(found: ClusterId, expected: ClusterId) -> Plan {
    let message = format!("members belong to etcd cluster {found}, expected {expected}; nothing is changed");
    Plan::waiting(WaitReason::WrongCluster, message)
}
