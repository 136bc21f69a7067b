//! One reconcile: from an object that may have changed to a cluster that matches it. Each stage has its file; here is
//! their order.

use std::time::Duration;

use etcd_operator_api::{EtcdCluster, EventReason};
use etcd_operator_core::cluster::observed::Observed;
use etcd_operator_core::cluster::plan::{Plan, plan};
use etcd_operator_core::cluster::requeue::when_to_look_again;
use etcd_operator_core::names::ClusterNames;
use etcd_operator_core::notice::Notice;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use tracing::debug;

use super::act::carry_out;
use super::actor::Actor;
use super::errors;
use super::member_objects::MemberObjects;
use super::observe::{Observation, every_so_often, observe};
use super::remember::remember;
use super::report::{announce_wait, report};
use super::rollout_slots::RolloutSlots;
use crate::controllers::context::Context;
use crate::runtime::api_errors::describe;

/// When to reconcile again after the plan turned out to be out of date.
const AFTER_SURPRISE: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Failed(#[from] errors::Error),
    #[error("writing the status: {}", describe(.0))]
    WriteStatus(#[source] Box<kube::Error>),
}

pub async fn reconcile(cluster: &EtcdCluster, context: &Context) -> Result<Action, Error> {
    // Observe.
    let names = ClusterNames {
        cluster: cluster.name_any(),
        namespace: cluster.namespace().unwrap_or_default(),
        domain: context.domain.clone(),
    };
    let memory = context.memories.of(&names.namespace, &names.cluster);
    let objects = MemberObjects::in_caches(&context.client, &context.caches, &names).await?;
    let occasion = every_so_often(cluster);
    let mut observation = observe(cluster, names, objects, context, occasion).await;
    // Remember since when members are unhealthy, and whose data differs.
    remember(&mut observation, occasion, &memory);
    // Plan, as far as other clusters allow.
    let plan = plan_with_slot(&mut observation.observed, &context.rollout_slots);
    debug!(?plan, "planned");
    if observation.observed.wanted.deleting {
        return Ok(Action::await_change());
    }
    // Act.
    announce_wait(&plan, cluster, context).await;
    let acted = carry_out(&plan, Actor::new(context, cluster, &observation)).await;
    // Report.
    report(&plan, &observation, cluster, context).await.map_err(|error| Error::WriteStatus(Box::new(error)))?;
    // Requeue.
    requeue(acted, &plan, &observation, cluster, context).await
}

/// The plan for now. It is made as if the cluster had a rollout slot; if it would need one and gets none, it is made
/// again without.
fn plan_with_slot(observed: &mut Observed, slots: &RolloutSlots) -> Plan {
    observed.remembered.has_rollout_slot = true;
    let planned = plan(observed);
    observed.remembered.has_rollout_slot = slots.may_carry_out(&planned, observed);
    if observed.remembered.has_rollout_slot { planned } else { plan(observed) }
}

/// When to look again, after what came of the plan.
async fn requeue(
    outcome: Result<(), errors::Error>,
    plan: &Plan,
    observation: &Observation,
    cluster: &EtcdCluster,
    context: &Context,
) -> Result<Action, Error> {
    match outcome {
        Err(errors::Error::OutOfDate(why)) => {
            debug!(why, "the plan was out of date");
            return Ok(Action::requeue(AFTER_SURPRISE));
        }
        Err(errors::Error::TooEarly(why)) => {
            context.events.publish(cluster, &Notice::of(EventReason::EtcdNotReady, why)).await;
        }
        Err(error) => {
            let notice = Notice::of(EventReason::ReconcileFailed, error.to_string());
            context.events.publish(cluster, &notice).await;
            return Err(error.into());
        }
        Ok(()) => {}
    }
    Ok(Action::requeue(when_to_look_again(plan, &observation.observed)))
}
