//! Runs the reconciles of one kind: each object in turn, with a deadline, metrics, and a backoff after failures. An
//! object that can't be understood is left alone, and disturbs no other.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt};
use kube::core::DeserializeGuard;
use kube::runtime::controller::{Action, Config, Controller, Error as ControllerError};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tracing::{debug, instrument, warn};

use super::api_errors::describe;
use super::backoff::Backoff;
use super::metrics::Metrics;
use super::shutdown::Shutdown;
use super::watch::{CacheClosed, Filled};

/// How long a reconcile may take, so that a slow one does not block others.
const DEADLINE: Duration = Duration::from_secs(30);

/// How many objects of a kind queue for a turn at most, in the order in which they came. Beyond that kube picks whom it
/// lets into the queue, and not in order, so there is room for all that are ever due at once; but all of them are polled
/// at every wake-up, so not for any number.
const QUEUE: u16 = 1024;

/// A reconcile, which says when to reconcile again.
type Reconciling<E> = BoxFuture<'static, Result<Action, E>>;

/// How the objects of one kind are reconciled, given what all controllers of a scope share.
pub struct Kind<K: Resource<DynamicType = ()> + 'static, C, E> {
    /// As it is called in metrics and in the log.
    pub name: &'static str,
    pub reconcile: fn(Arc<K>, Arc<C>) -> Reconciling<E>,
    /// Forgets what is remembered about an object that is gone: its namespace and its name.
    pub forget: fn(&str, &str, &C),
    /// How many of them are reconciled concurrently, in all scopes together.
    pub turns: Arc<Semaphore>,
}

/// What runs the controllers of one scope.
pub struct Driver<C> {
    pub context: Arc<C>,
    pub filled: Filled,
    pub metrics: Arc<Metrics>,
    pub shutdown: Shutdown,
}

#[derive(Debug, thiserror::Error)]
pub enum Error<E: std::error::Error + 'static> {
    #[error("reading the caches: {0}")]
    Caches(#[from] CacheClosed),
    #[error(transparent)]
    Reconcile(E),
    #[error("it took longer than {} s", DEADLINE.as_secs())]
    TookTooLong,
}

/// The kind, with what its reconciles share.
struct Running<K: Resource<DynamicType = ()> + 'static, C, E> {
    kind: Kind<K, C, E>,
    objects: Store<DeserializeGuard<K>>,
    context: Arc<C>,
    filled: Filled,
    metrics: Arc<Metrics>,
    backoff: Backoff,
}

impl<C: Send + Sync + 'static> Driver<C> {
    /// A stream that runs a controller while it is polled, and ends after the process should stop.
    pub fn drive<K, E>(
        &self,
        controller: Controller<DeserializeGuard<K>>,
        kind: Kind<K, C, E>,
    ) -> BoxStream<'static, ()>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
        E: std::error::Error + Send + Sync + 'static,
    {
        let shutdown = self.shutdown.clone();
        let running = Arc::new(Running {
            kind,
            objects: controller.store(),
            context: self.context.clone(),
            filled: self.filled.clone(),
            metrics: self.metrics.clone(),
            backoff: Backoff::default(),
        });
        let of_outcomes = running.clone();
        controller
            .with_config(Config::default().concurrency(QUEUE))
            .graceful_shutdown_on(async move { shutdown.begun().await })
            .run(
                |object, running: Arc<Running<K, C, E>>| async move { running.reconcile(&object).await },
                |object, _: &Error<E>, running| Action::requeue(running.after_failure(&object)),
                running,
            )
            .map(move |outcome| of_outcomes.conclude(outcome))
            .take_until(self.stopped_before_it_began())
            .boxed()
    }

    /// Returns if the process should stop while a cache is still empty. A controller would wait for the cache before it
    /// stops.
    fn stopped_before_it_began(&self) -> impl Future<Output = ()> + Send + 'static {
        let (shutdown, filled) = (self.shutdown.clone(), self.filled.clone());
        async move {
            shutdown.begun().await;
            if filled.is_true() {
                std::future::pending().await
            }
        }
    }
}

impl<K, C, E> Running<K, C, E>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    /// Reconciles one object. Every line that is logged meanwhile names it.
    #[instrument(
        name = "reconcile",
        skip_all,
        fields(kind = self.kind.name, namespace = object.namespace(), name = object.name_any())
    )]
    async fn reconcile(&self, object: &DeserializeGuard<K>) -> Result<Action, Error<E>> {
        self.filled.wait().await?;
        self.metrics.queued.inc();
        let turn = self.kind.turns.acquire().await;
        self.metrics.queued.dec();
        let (namespace, name) = key_of(object);
        // It may have changed or gone while it waited.
        let Some(object) = self.objects.get(&ObjectRef::new(&name).within(&namespace)) else {
            self.forget(&namespace, &name);
            return Ok(Action::await_change());
        };
        let object = match &object.0 {
            Ok(object) => Arc::new(object.clone()),
            Err(invalid) => {
                warn!(error = %invalid, "leaving this object alone, because it cannot be understood");
                return Ok(Action::await_change());
            }
        };
        let started = Instant::now();
        self.metrics.active.inc();
        let reconciled = match timeout(DEADLINE, (self.kind.reconcile)(object, self.context.clone())).await {
            Ok(reconciled) => reconciled.map_err(Error::Reconcile),
            Err(_) => Err(Error::TookTooLong),
        };
        drop(turn);
        self.metrics.active.dec();
        self.metrics.record_reconcile(self.kind.name, reconciled.is_ok(), started.elapsed());
        let again = reconciled?;
        self.backoff.forget(&namespace, &name);
        Ok(again)
    }

    /// Forgets what is remembered about an object that is gone.
    fn forget(&self, namespace: &str, name: &str) {
        self.backoff.forget(namespace, name);
        (self.kind.forget)(namespace, name, &self.context);
    }

    /// How a failed reconcile is handled: it is retried, later each time.
    fn after_failure(&self, object: &DeserializeGuard<K>) -> Duration {
        let (namespace, name) = key_of(object);
        self.backoff.after_failure(&namespace, &name)
    }

    fn conclude(&self, outcome: Outcome<K, E>) {
        let kind = self.kind.name;
        match outcome {
            Ok((object, _)) => debug!(kind, %object, "reconciled"),
            Err(ControllerError::ObjectNotFound(object)) => {
                debug!(kind, %object, "gone");
                let namespace = object.namespace.as_deref().unwrap_or_default();
                self.forget(namespace, &object.name);
            }
            Err(ControllerError::ReconcilerFailed(error, object)) => {
                warn!(kind, %object, %error, "reconcile failed, trying again later");
            }
            Err(ControllerError::QueueError(error)) => {
                warn!(kind, error = watch_problem(&error), "watching failed, trying again");
            }
            Err(ControllerError::RunnerError(error)) => warn!(kind, %error, "a cache was closed"),
        }
    }
}

/// The result of a reconcile.
type Outcome<K, E> = Result<(ObjectRef<DeserializeGuard<K>>, Action), ControllerError<Error<E>, watcher::Error>>;

fn key_of(object: &impl ResourceExt) -> (String, String) {
    (object.namespace().unwrap_or_default(), object.name_any())
}

fn watch_problem(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(answer)) if answer.code == 404 => {
            "the API server knows no such kind: install the CustomResourceDefinitions".into()
        }
        watcher::Error::InitialListFailed(cause)
        | watcher::Error::WatchStartFailed(cause)
        | watcher::Error::WatchFailed(cause) => describe(cause),
        other => other.to_string(),
    }
}
