//! The controller of EtcdClusters: keeps each cluster as its user wants it, as far as this version can.
//!
//! Each reconcile goes the same way: `observe` what there is, let `etcd_operator_core` decide what to make of it,
//! `report` it. `watch` brings the objects, `reconcile` puts the steps in order.

mod backoff;
mod observe;
mod reconcile;
mod report;
mod scope;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{BoxStream, StreamExt, select_all};
use kube::Client;
use kube::runtime::controller::{Action, Config, Controller, Error};
use kube::runtime::reflector::{ObjectRef, Store, store};
use kube::runtime::watcher;
use tokio::time::sleep;
use tracing::{debug, info, warn};

use crate::metrics::Metrics;
use crate::readiness::Readiness;
use crate::shutdown::Shutdown;
use crate::words::describe;
use backoff::Backoff;
use reconcile::{Context, reconcile, retry};
pub use scope::Scope;
use watch::{Cluster, Peer, cluster_of, labelled_etcd, watch_into};

/// How many clusters are worked on at the same time.
const CONCURRENCY: usize = 32;
/// How long reconciles that have begun may take to finish when the process stops.
const LAST_RECONCILES: Duration = Duration::from_secs(10);

/// What to work on and with.
pub struct Work {
    pub client: Client,
    pub scopes: Vec<Scope>,
    pub metrics: Arc<Metrics>,
    pub readiness: Arc<Readiness>,
    pub shutdown: Shutdown,
}

/// Works until the process should stop, and finishes what was begun by then.
pub async fn run(work: &Work) {
    work.readiness.set_waiting_for("the list of EtcdClusters and EtcdPeers");
    let started: Vec<Started> = work.scopes.iter().map(|scope| start(scope, work)).collect();
    let caches: Vec<(Store<Cluster>, Store<Peer>)> = started
        .iter()
        .map(|started| (started.clusters.clone(), started.peers.clone()))
        .collect();
    info!(scopes = ?work.scopes, "working");

    let reconciles = select_all(started.into_iter().map(|started| started.reconciles)).for_each(|outcome| {
        let clusters: usize = caches.iter().map(|(clusters, _)| clusters.len()).sum();
        work.metrics.clusters.set(clusters as i64);
        log(outcome);
        std::future::ready(())
    });
    let announcement = async {
        let synced = join_all(
            caches
                .iter()
                .map(async |(clusters, peers)| clusters.wait_until_ready().await.and(peers.wait_until_ready().await)),
        );
        if synced.await.into_iter().all(|synced| synced.is_ok()) {
            info!("all EtcdClusters and EtcdPeers are known");
            work.readiness.set_ready();
        }
        std::future::pending().await
    };
    let too_late = async {
        work.shutdown.begun().await;
        sleep(LAST_RECONCILES).await;
    };
    tokio::select! {
        () = reconciles => debug!("every reconcile has finished"),
        () = too_late => warn!("stopping although a reconcile has not finished"),
        () = announcement => {}
    }
}

type Outcome = Result<(ObjectRef<Cluster>, Action), Error<reconcile::Error, watcher::Error>>;

struct Started {
    clusters: Store<Cluster>,
    peers: Store<Peer>,
    /// Does the work while it is polled, and yields how each reconcile went.
    reconciles: BoxStream<'static, Outcome>,
}

fn start(scope: &Scope, work: &Work) -> Started {
    let (clusters, clusters_cache) = store();
    let (peers, peers_cache) = store();
    let all_clusters = watch_into(clusters_cache, scope.api(&work.client), watcher::Config::default());
    let all_peers = watch_into(peers_cache, scope.api(&work.client), labelled_etcd());

    let context = Arc::new(Context {
        client: work.client.clone(),
        peers: peers.clone(),
        metrics: work.metrics.clone(),
        backoff: Backoff::default(),
    });
    let shutdown = work.shutdown.clone();
    let share = CONCURRENCY.div_ceil(work.scopes.len());
    let reconciles = Controller::for_stream(all_clusters, clusters.clone())
        .watches_stream(all_peers, |peer| cluster_of(&peer))
        .with_config(Config::default().concurrency(u16::try_from(share).unwrap_or(1)))
        .graceful_shutdown_on(async move { shutdown.begun().await })
        .run(reconcile, retry, context.clone())
        .inspect(move |outcome| forget_if_gone(outcome, &context.backoff))
        .boxed();
    Started {
        clusters,
        peers,
        reconciles,
    }
}

fn forget_if_gone(outcome: &Outcome, backoff: &Backoff) {
    if let Err(Error::ObjectNotFound(cluster)) = outcome {
        backoff.forget(cluster.namespace.as_deref().unwrap_or_default(), &cluster.name);
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
        watcher::Error::InitialListFailed(kube::Error::Api(answer)) if answer.is_not_found() => {
            "the API server knows no EtcdCluster or no EtcdPeer: install the CustomResourceDefinitions".into()
        }
        watcher::Error::InitialListFailed(cause)
        | watcher::Error::WatchStartFailed(cause)
        | watcher::Error::WatchFailed(cause) => describe(cause),
        other => other.to_string(),
    }
}
