//! The controllers of EtcdBackups, EtcdBackupSchedules and EtcdRestores.
//!
//! Pods do the work: an `agent_job` is a Job whose pod executes one task and reports. `backup`, `schedule` and
//! `restore` each have the reconcile of one kind; `locations` has where backups are stored and how a pod accesses them,
//! `source` which of them an EtcdRestore names; `verify` builds the Job that verifies a backup; `status` writes the
//! status of all three kinds.
//!
//! The decisions of schedules belong in `etcd_operator_core::schedule`, and which stored backups may be deleted in
//! `etcd_operator_store::retention`. Nothing here talks to an object store or reads a Secret: that is the agent's part.

mod agent_job;
mod backup;
pub mod locations;
mod restore;
mod schedule;
mod source;
mod status;
mod verify;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use etcd_operator_api::{EtcdBackup, EtcdBackupSchedule, EtcdRestore, labels};
use futures::FutureExt;
use futures::channel::mpsc;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt, select_all};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::core::DeserializeGuard;
use kube::runtime::controller::{Action, Controller, Error as ControllerError};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tracing::{instrument, warn};

use crate::api_errors::describe;
use crate::controller::backoff::Backoff;
use crate::controller::events::Events;
use crate::controller::watch::{Cache, CacheClosed, watch};
use crate::controller::{Scope, Work};
use crate::metrics::Metrics;
use crate::objects::pod::Settings;
use crate::shutdown::Shutdown;

/// How many objects are reconciled concurrently.
const CONCURRENCY: usize = 16;
/// How long a reconcile may take, so that a slow one does not block others.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long reconciles in progress may take to finish when the process stops.
const LAST_RECONCILES: Duration = Duration::from_secs(10);

/// The label that distinguishes agent Jobs and their pods from the pods of clusters.
pub const APP_NAME: &str = "etcd-agent";
/// The same label on what earlier operators created, which may still run.
const EARLIER_APP_NAME: &str = "etcd-errand";

/// The objects that these controllers watch, as last observed.
#[derive(Clone)]
pub struct Caches {
    pub backups: Cache<DeserializeGuard<EtcdBackup>>,
    pub schedules: Cache<DeserializeGuard<EtcdBackupSchedule>>,
    pub restores: Cache<DeserializeGuard<EtcdRestore>>,
    pub jobs: Cache<Job>,
    pub pods: Cache<Pod>,
}

impl Caches {
    /// A cache that is not filled yet knows too little to base any decision on.
    async fn wait_until_filled(&self) -> Result<(), CacheClosed> {
        self.backups.wait_until_filled().await?;
        self.schedules.wait_until_filled().await?;
        self.restores.wait_until_filled().await?;
        self.jobs.wait_until_filled().await?;
        self.pods.wait_until_filled().await
    }

    fn are_filled(&self) -> bool {
        self.backups.is_filled()
            && self.schedules.is_filled()
            && self.restores.is_filled()
            && self.jobs.is_filled()
            && self.pods.is_filled()
    }
}

/// What every reconcile shares.
pub struct Context {
    pub client: Client,
    pub caches: Caches,
    pub settings: Settings,
    /// The DNS domain of the Kubernetes cluster.
    pub domain: String,
    pub events: Events,
    turns: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("reading the caches: {0}")]
    Caches(#[from] CacheClosed),
    #[error("{doing}: {}", describe(.source))]
    Api { doing: String, source: Box<kube::Error> },
    #[error("it took longer than {} s", DEADLINE.as_secs())]
    TookTooLong,
}

impl Error {
    /// For `map_err`: the operation that the API server rejected.
    pub fn doing(doing: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let doing = doing.into();
        move |source| Error::Api { doing, source: Box::new(source) }
    }
}

/// Runs until the process should stop, and finishes the reconciles in progress by then.
pub async fn run(work: &Work) {
    let turns = Arc::new(Semaphore::new(CONCURRENCY));
    let (controllers, caches): (Vec<_>, Vec<_>) =
        work.scopes.iter().map(|scope| start(scope, work, turns.clone())).unzip();
    let too_late = async {
        work.shutdown.begun().await;
        // A controller whose cache was never filled would wait for that before it stops.
        if caches.iter().all(Caches::are_filled) {
            sleep(LAST_RECONCILES).await;
        }
    };
    tokio::select! {
        () = select_all(controllers.into_iter().flatten()).for_each(|()| std::future::ready(())) => {}
        () = too_late => {}
    }
}

/// The controllers of one scope, which run while they are polled, and the caches that they fill.
fn start(scope: &Scope, work: &Work, turns: Arc<Semaphore>) -> ([BoxStream<'static, ()>; 3], Caches) {
    let (backups, changed_backups) = watch(scope.api(&work.client), watcher::Config::default());
    let (schedules, changed_schedules) = watch(scope.api(&work.client), watcher::Config::default());
    let (restores, changed_restores) = watch(scope.api(&work.client), watcher::Config::default());
    let (jobs, changed_jobs) = watch::<Job>(scope.api(&work.client), labelled_agent_jobs());
    let (pods, changed_pods) = watch::<Pod>(scope.api(&work.client), labelled_agent_jobs());
    let caches = Caches { backups, schedules, restores, jobs, pods };
    let context = Arc::new(Context {
        client: work.client.clone(),
        caches: caches.clone(),
        settings: work.settings.clone(),
        domain: work.domain.clone(),
        events: Events::new(work.client.clone()),
        turns,
        metrics: work.metrics.clone(),
    });
    // Each stream has one consumer, which forwards what concerns the others.
    let (schedule_sender, schedule_receiver) = mpsc::unbounded();
    let (restore_sender, restore_receiver) = mpsc::unbounded();
    let forward = Arc::new(Forward { schedules: schedule_sender, restores: restore_sender });
    let (of_backups, of_jobs, of_pods) = (forward.clone(), forward.clone(), forward);

    let backups =
        Controller::for_stream(changed_backups.inspect(move |it| of_backups.tell(it)), caches.backups.objects.clone())
            .watches_stream(changed_jobs.inspect(move |it| of_jobs.tell(it)), |it| named_by(&it, labels::BACKUP_NAME))
            .watches_stream(changed_pods.inspect(move |it| of_pods.tell(it)), |it| named_by(&it, labels::BACKUP_NAME));
    let schedules =
        Controller::for_stream(changed_schedules, caches.schedules.objects.clone()).reconcile_on(schedule_receiver);
    let restores =
        Controller::for_stream(changed_restores, caches.restores.objects.clone()).reconcile_on(restore_receiver);
    let shutdown = || work.shutdown.clone();
    let controllers = [
        keep_running(backups, shutdown(), context.clone(), "etcdbackup", |it, context| {
            async move { backup::reconcile(&it, &context).await }.boxed()
        }),
        keep_running(schedules, shutdown(), context.clone(), "etcdbackupschedule", |it, context| {
            async move { schedule::reconcile(&it, &context).await }.boxed()
        }),
        keep_running(restores, shutdown(), context, "etcdrestore", |it, context| {
            async move { restore::reconcile(&it, &context).await }.boxed()
        }),
    ];
    (controllers, caches)
}

/// Which Jobs and pods to watch.
fn labelled_agent_jobs() -> watcher::Config {
    watcher::Config::default().labels(&format!("{} in ({APP_NAME},{EARLIER_APP_NAME})", labels::APP))
}

/// The object that a label names, in the same namespace.
fn named_by<K, O>(object: &O, label: &str) -> Option<ObjectRef<K>>
where
    K: Resource<DynamicType = ()>,
    O: Resource,
{
    Some(ObjectRef::new(object.labels().get(label)?).within(&object.namespace()?))
}

/// Notifies schedules and restores that one of their objects has changed.
struct Forward {
    schedules: mpsc::UnboundedSender<ObjectRef<DeserializeGuard<EtcdBackupSchedule>>>,
    restores: mpsc::UnboundedSender<ObjectRef<DeserializeGuard<EtcdRestore>>>,
}

impl Forward {
    fn tell<O: Resource>(&self, changed: &watcher::Result<O>) {
        let Ok(object) = changed else { return };
        // There is no receiver any more when the process stops.
        if let Some(schedule) = named_by(object, labels::BACKUP_SCHEDULE_NAME) {
            let _ = self.schedules.unbounded_send(schedule);
        }
        if let Some(restore) = named_by(object, labels::RESTORED_FROM) {
            let _ = self.restores.unbounded_send(restore);
        }
    }
}

type Reconcile<K> = fn(Arc<K>, Arc<Context>) -> BoxFuture<'static, Result<Action, Error>>;

/// Runs a controller until the process should stop. Objects that can't be deserialized are left alone, failures are
/// retried later.
fn keep_running<K>(
    controller: Controller<DeserializeGuard<K>>,
    shutdown: Shutdown,
    context: Arc<Context>,
    kind: &'static str,
    reconcile: Reconcile<K>,
) -> BoxStream<'static, ()>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
{
    let backoff = Arc::new(Backoff::default());
    let (after_success, after_failure) = (backoff.clone(), backoff);
    controller
        .graceful_shutdown_on(async move { shutdown.begun().await })
        .run(
            move |object, context| {
                let backoff = after_success.clone();
                async move {
                    let again = in_turn(&object, context, kind, reconcile).await?;
                    backoff.forget(&object.namespace().unwrap_or_default(), &object.name_any());
                    Ok(again)
                }
            },
            move |object, _: &Error, _| {
                let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
                Action::requeue(after_failure.after_failure(&namespace, &name))
            },
            context,
        )
        .map(move |outcome| match outcome {
            Err(ControllerError::ReconcilerFailed(error, object)) => {
                warn!(%object, %error, "reconcile failed, trying again later");
            }
            Err(ControllerError::QueueError(error)) => warn!(kind, %error, "watching failed, trying again"),
            Err(ControllerError::RunnerError(error)) => warn!(kind, %error, "a cache was closed"),
            Ok(_) | Err(ControllerError::ObjectNotFound(_)) => {}
        })
        .boxed()
}

/// Reconciles one object, with a deadline and metrics. Every line that is logged meanwhile names the object.
#[instrument(name = "reconcile", skip_all, fields(kind = kind, namespace = object.namespace(), name = object.name_any()))]
async fn in_turn<K>(
    object: &Arc<DeserializeGuard<K>>,
    context: Arc<Context>,
    kind: &'static str,
    reconcile: Reconcile<K>,
) -> Result<Action, Error>
where
    K: Resource<DynamicType = ()> + Clone,
{
    let object = match &object.0 {
        Ok(object) => Arc::new(object.clone()),
        Err(invalid) => {
            warn!(kind, error = %invalid, "leaving this object alone, because it cannot be understood");
            return Ok(Action::await_change());
        }
    };
    context.caches.wait_until_filled().await?;
    let _turn = context.turns.acquire().await;
    let started = Instant::now();
    let result = timeout(DEADLINE, reconcile(object, context.clone())).await.unwrap_or(Err(Error::TookTooLong));
    context.metrics.record_reconcile(kind, result.is_ok(), started.elapsed());
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_earlier_operators_are_watched_too() {
        let selector = labelled_agent_jobs().label_selector;
        assert_eq!(selector.as_deref(), Some("app.kubernetes.io/name in (etcd-agent,etcd-errand)"));
    }
}
