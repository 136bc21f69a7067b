//! One reconcile: from an object that may have changed to a cluster that matches it.

use std::collections::BTreeSet;
use std::time::Duration;

use etcd_operator_api::{EtcdCluster, EtcdClusterStatus, EventReason, Pace, Severity};
use etcd_operator_core::cluster::plan::{Plan, Waiting, plan};
use etcd_operator_core::cluster::status::status_to_report;
use etcd_operator_core::names::ClusterNames;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use tracing::debug;

use super::act::{self, Actor};
use super::ensure::Ensure;
use super::member_objects::MemberObjects;
use super::observe::{CorruptionCheck, Observation, observe};
use super::report;
use crate::controllers::context::Context;
use crate::runtime::api_errors::describe;

/// When to reconcile again. Kubernetes objects are watched; these intervals are for what only etcd knows.
const WHILE_CHANGING: Duration = Duration::from_millis(500);
const AFTER_SURPRISE: Duration = Duration::from_secs(1);
const WHILE_UNHEALTHY: Duration = Duration::from_secs(3);
const WHILE_HEALTHY: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Act(#[from] act::Error),
    #[error("writing the status: {}", describe(.0))]
    WriteStatus(#[source] Box<kube::Error>),
}

pub async fn reconcile(cluster: &EtcdCluster, context: &Context) -> Result<Action, Error> {
    let names = ClusterNames {
        cluster: cluster.name_any(),
        namespace: cluster.namespace().unwrap_or_default(),
        domain: context.domain.clone(),
    };
    let objects = MemberObjects::in_caches(&context.client, &context.caches, &names).await?;
    let observation = observe(cluster, names, objects, context, CorruptionCheck::WhenDue).await;
    if observation.observed.deleting {
        return Ok(Action::await_change());
    }
    let plan = plan(&observation.observed);
    debug!(?plan, "planned");

    let ensure = Ensure {
        client: &context.client,
        cluster,
        caches: &context.caches,
        memory: &context.memories.of(&observation.observed.names.namespace, &observation.observed.names.cluster),
        events: &context.events,
    };
    // A failure here must not block the members from being reconciled.
    let ensured = if observation.observed.paused.is_some() { Ok(()) } else { ensure.everything(&observation).await };
    announce_wait(&plan, cluster, context).await;
    let acted = carry_out(&plan, cluster, &observation, context).await;
    report(&plan, &observation, cluster, context).await?;
    match ensured.and(acted) {
        Err(act::Error::OutOfDate(why)) => {
            debug!(why, "the plan was out of date");
            return Ok(Action::requeue(AFTER_SURPRISE));
        }
        Err(act::Error::TooEarly(why)) => context.events.failed(cluster, EventReason::EtcdNotReady, why).await,
        Err(error) => {
            context.events.failed(cluster, EventReason::ReconcileFailed, error.to_string()).await;
            return Err(error.into());
        }
        Ok(()) => {}
    }
    Ok(Action::requeue(when_to_look_again(&plan, &observation)))
}

/// Takes the steps of a plan. A failed step for one member does not block the others, so only the later steps for the
/// same member are skipped; the first failure is returned.
async fn carry_out(
    plan: &Plan,
    cluster: &EtcdCluster,
    observation: &Observation,
    context: &Context,
) -> Result<(), act::Error> {
    let mut actor = Actor::new(context, cluster, observation);
    let mut failed = BTreeSet::new();
    let mut outcome = Ok(());
    for step in &plan.steps {
        let ordinal = step.ordinal();
        if ordinal.is_some_and(|ordinal| failed.contains(&ordinal)) {
            continue;
        }
        if let Err(error) = actor.carry_out(step).await {
            outcome = outcome.and(Err(error));
            match ordinal {
                Some(ordinal) => drop(failed.insert(ordinal)),
                None => break,
            }
        }
    }
    outcome
}

/// Publishes an event about what the cluster waits for, once when the wait begins.
async fn announce_wait(plan: &Plan, cluster: &EtcdCluster, context: &Context) {
    let waiting = plan.waiting.as_ref().filter(|waiting| !waiting.reason.is_reported_by_its_step());
    let Some(waiting) = waiting else { return };
    let conditions = cluster.status.iter().flat_map(|status| &status.conditions).filter(|it| it.type_ == "Progressing");
    // Something that needs user action is reported again if its message changes.
    let is_same = |message: &str| waiting.reason.severity() == Severity::Normal || message == waiting.message;
    let said = conditions.into_iter().any(|it| it.reason == waiting.reason.as_str() && is_same(&it.message));
    if !said {
        context.events.waiting(cluster, waiting).await;
    }
}

async fn report(plan: &Plan, observation: &Observation, cluster: &EtcdCluster, context: &Context) -> Result<(), Error> {
    context.metrics.record_members(&observation.observed);
    let failed = |error| Error::WriteStatus(Box::new(error));
    for (name, version) in report::write_versions(&context.client, observation).await.map_err(failed)? {
        context.events.done(cluster, EventReason::MemberRunning, &name, format!("{name} runs etcd {version}")).await;
    }
    let reported = cluster.status.clone().unwrap_or_default();
    let now = Time(jiff::Timestamp::now());
    let status = status_to_report(&observation.observed, plan, &reported, cluster.metadata.generation, &now);
    if status != reported {
        debug!(?status, "reporting");
        report::write_status(&context.client, cluster, &status).await.map_err(failed)?;
        let of = |status: &EtcdClusterStatus| status.conditions.iter().find(|it| it.type_ == "Available").cloned();
        let (before, now) = (of(&reported), of(&status));
        let news = now.filter(|now| now.status == "False" && before.is_some_and(|before| before.reason != now.reason));
        if let Some(trouble) = news {
            context.events.unavailable(cluster, &trouble).await;
        }
        let is_done = |status: &EtcdClusterStatus| status.updated_replicas == cluster.spec.replicas;
        if is_done(&status) && !is_done(&reported) {
            let note = format!("All {} members match the spec", cluster.spec.replicas);
            context.events.done(cluster, EventReason::UpToDate, &cluster.name_any(), note).await;
        }
    }
    Ok(())
}

fn when_to_look_again(plan: &Plan, observation: &Observation) -> Duration {
    let all_answer = observation.observed.answers.len() == observation.observed.peers.len()
        && observation.observed.answers.values().all(Result::is_ok);
    let is_short = |waiting: &Waiting| waiting.reason.pace() == Pace::Short;
    match plan {
        Plan { steps, waiting } if !steps.is_empty() || waiting.as_ref().is_some_and(is_short) => WHILE_CHANGING,
        Plan { waiting: None, .. } if all_answer => WHILE_HEALTHY,
        _ => WHILE_UNHEALTHY,
    }
}
