//! The controller of EtcdClusters: keeps each cluster in the state that its spec desires.
//!
//! Every reconcile takes the same steps, which `reconcile` puts in order: observe, plan, ensure, act, report, requeue.
//! The plan is made in `etcd_operator_core::plan`.
//!
//! - Objects: `watch` and `caches` keep those of all clusters, `scope` says in which namespaces; `member_objects` are
//!   those of one cluster, from the caches or live.
//! - Observing: `observe`, with `probe` (queries etcd's members), `corruption_check` (compares their data), `spec_diff`
//!   and `volumes` (what does not match the spec), `node`, `pod_problem`, and `upgrade_backup` (the backup before an
//!   upgrade).
//! - Remembered by this process only: `health_histories`, `rollout_slots` (which clusters may restart members),
//!   `backoff`.
//! - Acting: `act`, with `membership`, `rollout`, `maintenance` and `upgrade_backup` for some kinds of steps; `ensure`
//!   repairs what every cluster has, whatever the plan.
//! - Reporting: `report` writes the status, `events` publishes events.
//!
//! Decisions belong in `etcd_operator_core`, and building objects in `objects`. `watch`, `events`, `backoff`,
//! `pod_problem` and `scope` also serve the controllers in `backups`.

mod act;
pub mod backoff;
mod caches;
mod corruption_check;
mod ensure;
pub mod events;
mod health_histories;
mod maintenance;
mod member_objects;
mod membership;
mod node;
mod observe;
pub mod pod_problem;
mod probe;
mod reconcile;
pub mod report;
mod rollout;
mod rollout_slots;
mod scope;
mod spec_diff;
mod upgrade_backup;
mod volumes;
pub mod watch;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use futures::stream::{BoxStream, StreamExt, select_all};
use kube::runtime::controller::{Action, Controller, Error};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tracing::{debug, info, warn};

use crate::api_errors::describe;
use crate::metrics::Metrics;
use crate::objects::pod::Settings;
use crate::readiness::Readiness;
use crate::shutdown::Shutdown;
use backoff::Backoff;
use caches::{Caches, cluster_of};
use corruption_check::CorruptionChecks;
use ensure::Applied;
use events::Events;
use health_histories::HealthHistories;
use reconcile::{Context, reconcile, retry};
use rollout_slots::RolloutSlots;
pub use scope::Scope;
use watch::{Cache, Cluster, labelled_etcd, watch, watch_trimmed};

/// How many clusters are reconciled concurrently.
const CONCURRENCY: usize = 32;
/// How long reconciles in progress may take to finish when the process stops.
const LAST_RECONCILES: Duration = Duration::from_secs(10);

/// What to work on and with.
pub struct Work {
    pub client: Client,
    pub scopes: Vec<Scope>,
    pub settings: Settings,
    /// The DNS domain of the Kubernetes cluster.
    pub domain: String,
    /// How many clusters may restart members at the same time.
    pub max_rolling_clusters: usize,
    pub metrics: Arc<Metrics>,
    pub readiness: Arc<Readiness>,
    pub shutdown: Shutdown,
}

/// Runs until the process should stop, and finishes the reconciles in progress by then.
pub async fn run(work: &Work) {
    work.readiness.set_waiting_for("the list of all clusters and their objects");
    let turns = Arc::new(Semaphore::new(CONCURRENCY));
    let rollout_slots = Arc::new(RolloutSlots::at_most(work.max_rolling_clusters));
    let (controllers, caches): (Vec<_>, Vec<_>) =
        work.scopes.iter().map(|scope| start(scope, work, turns.clone(), rollout_slots.clone())).unzip();
    info!(scopes = ?work.scopes, "working");

    let reconciles = select_all(controllers).for_each(|outcome| {
        let clusters: usize = caches.iter().map(|caches| caches.clusters.objects.len()).sum();
        work.metrics.clusters.set(clusters as i64);
        log(outcome);
        std::future::ready(())
    });
    let too_late = async {
        work.shutdown.begun().await;
        sleep(LAST_RECONCILES).await;
    };
    tokio::select! {
        () = reconciles => debug!("every reconcile has finished"),
        () = too_late => warn!("stopping although a reconcile has not finished"),
        never = announce(&caches, &work.readiness) => match never {},
    }
}

/// Marks the process as ready as soon as all caches are filled.
async fn announce(caches: &[Caches], readiness: &Readiness) -> Infallible {
    if try_join_all(caches.iter().map(Caches::wait_until_filled)).await.is_ok() {
        info!("all clusters and their objects are known");
        readiness.set_ready();
    }
    std::future::pending().await
}

/// The result of a reconcile.
type Outcome = Result<(ObjectRef<Cluster>, Action), Error<reconcile::Error, watcher::Error>>;

/// A controller for one scope, which runs while it is polled, and the caches that it fills.
fn start(
    scope: &Scope,
    work: &Work,
    turns: Arc<Semaphore>,
    rollout_slots: Arc<RolloutSlots>,
) -> (BoxStream<'static, Outcome>, Caches) {
    let (clusters, changed_clusters) = watch(scope.api(&work.client), watcher::Config::default());
    let (peers, changed_peers) = watch(scope.api(&work.client), labelled_etcd());
    let (pods, changed_pods) = watch(scope.api(&work.client), labelled_etcd());
    let (claims, changed_claims) = watch(scope.api(&work.client), labelled_etcd());
    let (services, changed_services) = watch(scope.api(&work.client), labelled_etcd());
    let (budgets, changed_budgets) = watch(scope.api(&work.client), labelled_etcd());
    let (nodes, changed_nodes) = watch_trimmed(Api::all(work.client.clone()), watcher::Config::default(), node::trim);
    let caches = Caches { clusters: clusters.clone(), peers, pods, claims, services, budgets, nodes };
    let context = Arc::new(Context {
        client: work.client.clone(),
        caches: caches.clone(),
        settings: work.settings.clone(),
        domain: work.domain.clone(),
        turns,
        applied: Applied::default(),
        events: Events::new(work.client.clone()),
        metrics: work.metrics.clone(),
        backoff: Backoff::default(),
        corruption_checks: CorruptionChecks::default(),
        health_histories: HealthHistories::default(),
        rollout_slots,
    });
    let shutdown = work.shutdown.clone();
    let controller = Controller::for_stream(changed_clusters, clusters.objects.clone())
        .watches_stream(changed_peers, |peer| cluster_of(&peer))
        .watches_stream(changed_pods, |pod| cluster_of(&pod))
        .watches_stream(changed_claims, |claim| cluster_of(&claim))
        .watches_stream(changed_services, |service| cluster_of(&service))
        .watches_stream(changed_budgets, |budget| cluster_of(&budget))
        // A cluster with an unhealthy member is reconciled often enough to notice changes of its node.
        .watches_stream(changed_nodes, |_| None::<ObjectRef<Cluster>>)
        .graceful_shutdown_on(async move { shutdown.begun().await })
        .run(reconcile, retry, context.clone())
        .inspect(move |outcome| forget_if_gone(outcome, &context))
        .take_until(stopped_before_it_began(work.shutdown.clone(), clusters.clone()))
        .boxed();
    (controller, caches)
}

/// Returns if the process stops while the cache is still empty. The controller would wait for the cache before it
/// stops.
async fn stopped_before_it_began(shutdown: Shutdown, clusters: Cache<Cluster>) {
    shutdown.begun().await;
    if clusters.is_filled() {
        std::future::pending().await
    }
}

fn forget_if_gone(outcome: &Outcome, context: &Context) {
    if let Err(Error::ObjectNotFound(cluster)) = outcome {
        let namespace = cluster.namespace.as_deref().unwrap_or_default();
        context.backoff.forget(namespace, &cluster.name);
        context.metrics.forget_members(namespace, &cluster.name);
        context.applied.forget(namespace, &cluster.name);
        context.corruption_checks.forget(namespace, &cluster.name);
        context.health_histories.forget(namespace, &cluster.name);
        context.rollout_slots.give_back(namespace, &cluster.name);
    }
}

fn log(outcome: Outcome) {
    match outcome {
        Ok((cluster, _)) => debug!(%cluster, "reconciled"),
        Err(Error::ObjectNotFound(cluster)) => debug!(%cluster, "gone"),
        Err(Error::ReconcilerFailed(error, cluster)) => warn!(%cluster, %error, "reconcile failed, trying again later"),
        Err(Error::QueueError(error)) => warn!(error = watch_problem(&error), "watching failed, trying again"),
        Err(Error::RunnerError(error)) => warn!(%error, "a cache was closed"),
    }
}

fn watch_problem(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(answer)) if answer.code == 404 => {
            "the API server knows no EtcdCluster or no EtcdPeer: install the CustomResourceDefinitions".into()
        }
        watcher::Error::InitialListFailed(cause)
        | watcher::Error::WatchStartFailed(cause)
        | watcher::Error::WatchFailed(cause) => describe(cause),
        other => other.to_string(),
    }
}
