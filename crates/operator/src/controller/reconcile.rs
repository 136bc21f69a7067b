//! One reconcile: the way from an object that may have changed to a world that fits it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use etcd_operator_api::EtcdCluster;
use etcd_operator_core::status::{ObservedCluster, status_to_report};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use kube::{Client, ResourceExt};
use tokio::time::timeout;
use tracing::{debug, warn};

use super::backoff::Backoff;
use super::watch::{Cache, CacheClosed, Cluster, Peer};
use super::{observe, report};
use crate::metrics::Metrics;
use crate::words::describe;

/// How long a reconcile may take, so that a slow one gives up its place to others.
const DEADLINE: Duration = Duration::from_secs(30);

/// What every reconcile has at hand.
pub struct Context {
    pub client: Client,
    pub peers: Cache<Peer>,
    pub metrics: Arc<Metrics>,
    pub backoff: Backoff,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("counting the EtcdPeers: {0}")]
    CountPeers(#[from] CacheClosed),
    #[error("writing the status: {}", describe(.0))]
    WriteStatus(#[source] Box<kube::Error>),
    #[error("it took longer than {} s", DEADLINE.as_secs())]
    TookTooLong,
}

/// Reconciles one cluster, in time and with a record of how it went.
pub async fn reconcile(cluster: Arc<Cluster>, context: Arc<Context>) -> Result<Action, Error> {
    let cluster = match &cluster.0 {
        Ok(cluster) => cluster,
        Err(invalid) => {
            warn!(error = %invalid, "leaving this EtcdCluster alone, because it cannot be understood");
            return Ok(Action::await_change());
        }
    };
    let started = Instant::now();
    let result = timeout(DEADLINE, reconcile_cluster(cluster, &context)).await.unwrap_or(Err(Error::TookTooLong));
    context.metrics.record_reconcile("etcdcluster", result.is_ok(), started.elapsed());
    result?;
    context.backoff.forget(&cluster.namespace().unwrap_or_default(), &cluster.name_any());
    Ok(Action::await_change())
}

/// What to do about a reconcile that failed: try again, later each time.
pub fn retry(cluster: Arc<Cluster>, _error: &Error, context: Arc<Context>) -> Action {
    Action::requeue(context.backoff.after_failure(&cluster.namespace().unwrap_or_default(), &cluster.name_any()))
}

async fn reconcile_cluster(cluster: &EtcdCluster, context: &Context) -> Result<(), Error> {
    let name = cluster.name_any();
    let reference = ObjectRef::new(&name).within(&cluster.namespace().unwrap_or_default());
    let peers = observe::count_peers(&context.peers, &reference).await?;

    let reported = cluster.status.clone().unwrap_or_default();
    let observed = ObservedCluster { name: &name, generation: cluster.metadata.generation, peers, status: &reported };
    let status = status_to_report(&observed, &Time(jiff::Timestamp::now()));
    if status == reported {
        return Ok(());
    }
    debug!(?status, "reporting");
    let written = report::write_status(&context.client, cluster, &status).await;
    written.map_err(|error| Error::WriteStatus(Box::new(error)))
}
