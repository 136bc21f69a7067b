//! Starts the controllers: watches every kind once, and lets each controller know of the changes that concern it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use etcd_operator_api::{EtcdBackup, EtcdBackupSchedule, EtcdCluster, EtcdPeer, EtcdRestore, labels};
use futures::FutureExt;
use futures::channel::mpsc;
use futures::future::try_join_all;
use futures::stream::{BoxStream, StreamExt, select_all};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::Controller;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tracing::{debug, info, warn};

use super::agent_job::labelled_agent_jobs;
use super::caches::{Caches, Guarded, by_label, of_restore, of_schedule, owner_of_kind};
use super::cluster::memory::Memories;
use super::cluster::rollout_slots::RolloutSlots;
use super::cluster::{self, node};
use super::context::Context;
use super::{backup, backup_schedule, restore, trim};
use crate::objects::containers::Settings;
use crate::runtime::controller::{Driver, Kind};
use crate::runtime::events::Events;
use crate::runtime::metrics::Metrics;
use crate::runtime::readiness::Readiness;
use crate::runtime::scope::Scope;
use crate::runtime::shutdown::Shutdown;
use crate::runtime::watch::{Cache, Filled, Watched, watch};

/// How many objects are reconciled concurrently: EtcdClusters, and of each other kind.
const CLUSTERS_AT_A_TIME: usize = 32;
const OTHERS_AT_A_TIME: usize = 16;
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

/// What all scopes share: how many of each kind are reconciled concurrently, and which clusters restart members.
struct Shared {
    clusters: Arc<Semaphore>,
    backups: Arc<Semaphore>,
    schedules: Arc<Semaphore>,
    restores: Arc<Semaphore>,
    rollout_slots: Arc<RolloutSlots>,
}

impl Shared {
    fn new(max_rolling_clusters: usize) -> Self {
        let others = || Arc::new(Semaphore::new(OTHERS_AT_A_TIME));
        Shared {
            clusters: Arc::new(Semaphore::new(CLUSTERS_AT_A_TIME)),
            backups: others(),
            schedules: others(),
            restores: others(),
            rollout_slots: Arc::new(RolloutSlots::at_most(max_rolling_clusters)),
        }
    }
}

/// Runs until the process should stop, and finishes the reconciles in progress by then.
pub async fn run(work: &Work) {
    work.readiness.set_waiting_for("the list of all clusters and their objects");
    let shared = Shared::new(work.max_rolling_clusters);
    let (controllers, caches): (Vec<_>, Vec<_>) = work.scopes.iter().map(|scope| start(scope, work, &shared)).unzip();
    info!(scopes = ?work.scopes, "working");
    let reconciles = select_all(controllers.into_iter().flatten()).for_each(|()| {
        let clusters: usize = caches.iter().map(|caches| caches.clusters.objects.len()).sum();
        work.metrics.clusters.set(clusters as i64);
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

/// Marks the process as ready as soon as the caches of clusters are filled.
async fn announce(caches: &[Caches], readiness: &Readiness) -> Infallible {
    let filled: Vec<Filled> = caches.iter().map(Caches::of_clusters_filled).collect();
    if try_join_all(filled.iter().map(Filled::wait)).await.is_ok() {
        info!("all clusters and their objects are known");
        readiness.set_ready();
    }
    std::future::pending().await
}

/// The controllers of one scope, which run while they are polled, and the caches that they fill.
fn start(scope: &Scope, work: &Work, shared: &Shared) -> ([BoxStream<'static, ()>; 4], Caches) {
    let client = &work.client;
    let etcd = || watcher::Config::default().labels(&format!("{}={}", labels::APP, labels::APP_NAME));
    let (clusters, changed_clusters) = watch(scope.api(client), whole(watcher::Config::default(), |_| None));
    let (peers, changed_peers) = watch(scope.api::<Guarded<EtcdPeer>>(client), whole(etcd(), by_label));
    let (pods, changed_pods) = watch(scope.api(client), trimmed(etcd(), trim::pod, by_label));
    let (claims, changed_claims) = watch(scope.api(client), trimmed(etcd(), trim::claim, by_label));
    let (services, changed_services) = watch(scope.api(client), trimmed(etcd(), trim::service, by_label));
    let (budgets, changed_budgets) = watch(scope.api(client), trimmed(etcd(), trim::budget, by_label));
    let all = watcher::Config::default();
    let (nodes, changed_nodes) = watch(Api::all(client.clone()), trimmed(all, node::trim, |_| None));
    let of_a_schedule = |backup: &Guarded<EtcdBackup>| owner_of_kind(backup, "EtcdBackupSchedule");
    let (backups, changed_backups) = watch(scope.api(client), whole(watcher::Config::default(), of_a_schedule));
    let (schedules, changed_schedules) = watch(scope.api(client), whole(watcher::Config::default(), of_schedule));
    let (restores, changed_restores) = watch(scope.api(client), whole(watcher::Config::default(), of_restore));
    let (jobs, changed_jobs) = watch(scope.api::<Job>(client), whole(labelled_agent_jobs(), |_| None));
    let of_a_job = |pod: &Pod| owner_of_kind(pod, "Job");
    let (job_pods, changed_job_pods) = watch(scope.api(client), trimmed(labelled_agent_jobs(), trim::pod, of_a_job));
    let caches = Caches {
        clusters,
        peers,
        pods,
        claims,
        services,
        budgets,
        nodes,
        backups,
        schedules,
        restores,
        jobs,
        job_pods,
    };

    // Each stream has one consumer, which lets the others know.
    let (forward, changed) = forward(&caches);
    let (of_clusters, of_backups, of_jobs) = (forward.clone(), forward.clone(), forward.clone());
    let clusters = Controller::for_stream(
        changed_clusters.inspect(move |it| of_clusters.cluster(it)),
        caches.clusters.objects.clone(),
    )
    .watches_stream(changed_peers, |it| cluster_of(&it))
    .watches_stream(changed_pods, |it| cluster_of(&it))
    .watches_stream(changed_claims, |it| cluster_of(&it))
    .watches_stream(changed_services, |it| cluster_of(&it))
    .watches_stream(changed_budgets, |it| cluster_of(&it))
    // A cluster with an unhealthy member is reconciled often enough to notice changes of its node.
    .watches_stream(changed_nodes, |_| None::<ObjectRef<Guarded<EtcdCluster>>>);
    let backups = Controller::for_stream(
        changed_backups.inspect(move |it| of_backups.labelled(it)),
        caches.backups.objects.clone(),
    )
    .watches_stream(changed_jobs.inspect(move |it| of_jobs.labelled(it)), |it| named_by(&it, labels::BACKUP_NAME))
    .watches_stream(changed_job_pods.inspect(move |it| forward.labelled(it)), |it| named_by(&it, labels::BACKUP_NAME));
    let schedules =
        Controller::for_stream(changed_schedules, caches.schedules.objects.clone()).reconcile_on(changed.schedules);
    let restores =
        Controller::for_stream(changed_restores, caches.restores.objects.clone()).reconcile_on(changed.restores);

    let context = Arc::new(Context {
        client: client.clone(),
        caches: caches.clone(),
        settings: work.settings.clone(),
        domain: work.domain.clone(),
        events: Events::new(client.clone()),
        metrics: work.metrics.clone(),
        memories: Memories::default(),
        rollout_slots: shared.rollout_slots.clone(),
    });
    let driver = |filled: Filled| Driver {
        context: context.clone(),
        filled,
        metrics: work.metrics.clone(),
        shutdown: work.shutdown.clone(),
    };
    let of_clusters = driver(caches.of_clusters_filled());
    let of_backups = driver(caches.of_backups_filled());
    let controllers = [
        of_clusters.drive(
            clusters,
            Kind {
                name: "etcdcluster",
                reconcile: |cluster, context| {
                    async move { cluster::reconcile::reconcile(&cluster, &context).await }.boxed()
                },
                forget: |namespace, name, context| {
                    context.memories.forget(namespace, name);
                    context.metrics.forget_members(namespace, name);
                    context.rollout_slots.give_back(namespace, name);
                },
                turns: shared.clusters.clone(),
            },
        ),
        of_backups.drive(
            backups,
            Kind {
                name: "etcdbackup",
                reconcile: |backup, context| async move { backup::reconcile(&backup, &context).await }.boxed(),
                forget: |_, _, _| {},
                turns: shared.backups.clone(),
            },
        ),
        of_backups.drive(
            schedules,
            Kind {
                name: "etcdbackupschedule",
                reconcile: |it, context| async move { backup_schedule::reconcile(&it, &context).await }.boxed(),
                forget: |_, _, _| {},
                turns: shared.schedules.clone(),
            },
        ),
        of_backups.drive(
            restores,
            Kind {
                name: "etcdrestore",
                reconcile: |restore, context| async move { restore::reconcile(&restore, &context).await }.boxed(),
                forget: |_, _, _| {},
                turns: shared.restores.clone(),
            },
        ),
    ];
    (controllers, caches)
}

/// To watch objects of which all is kept.
fn whole<K>(config: watcher::Config, owner_of: fn(&K) -> Option<String>) -> Watched<K> {
    trimmed(config, |_| {}, owner_of)
}

/// To watch objects of which only some is kept.
fn trimmed<K>(config: watcher::Config, trim: fn(&mut K), owner_of: fn(&K) -> Option<String>) -> Watched<K> {
    Watched { config, trim, owner_of }
}

/// The cluster that an object belongs to, by its label.
fn cluster_of<K: Resource>(object: &K) -> Option<ObjectRef<Guarded<EtcdCluster>>> {
    named_by(object, labels::CLUSTER_NAME)
}

/// The object that a label names, in the same namespace.
fn named_by<K, O>(object: &O, label: &str) -> Option<ObjectRef<K>>
where
    K: Resource<DynamicType = ()>,
    O: Resource,
{
    Some(ObjectRef::new(object.labels().get(label)?).within(&object.namespace()?))
}

/// Lets schedules and restores know that something has changed that they depend on.
#[derive(Clone)]
struct Forward {
    to_schedules: mpsc::UnboundedSender<ObjectRef<Guarded<EtcdBackupSchedule>>>,
    to_restores: mpsc::UnboundedSender<ObjectRef<Guarded<EtcdRestore>>>,
    schedules: Cache<Guarded<EtcdBackupSchedule>>,
    restores: Cache<Guarded<EtcdRestore>>,
}

/// What is to be reconciled because of that.
struct Changed {
    schedules: mpsc::UnboundedReceiver<ObjectRef<Guarded<EtcdBackupSchedule>>>,
    restores: mpsc::UnboundedReceiver<ObjectRef<Guarded<EtcdRestore>>>,
}

fn forward(caches: &Caches) -> (Forward, Changed) {
    let (to_schedules, schedules) = mpsc::unbounded();
    let (to_restores, restores) = mpsc::unbounded();
    let forward =
        Forward { to_schedules, to_restores, schedules: caches.schedules.clone(), restores: caches.restores.clone() };
    (forward, Changed { schedules, restores })
}

impl Forward {
    /// A cluster has changed or is gone: the restores that create it and the schedules that back it up may depend on it.
    fn cluster(&self, changed: &watcher::Result<Guarded<EtcdCluster>>) {
        let Ok(cluster) = changed else { return };
        let (namespace, name) = (cluster.namespace().unwrap_or_default(), cluster.name_any());
        // There is no receiver any more when the process stops.
        for restore in self.restores.of(&namespace, &name) {
            let _ = self.to_restores.unbounded_send(ObjectRef::from_obj(restore.as_ref()));
        }
        let deletes = |it: &Guarded<EtcdBackupSchedule>| it.0.as_ref().is_ok_and(|it| it.spec.delete_with_cluster);
        for schedule in self.schedules.of(&namespace, &name).into_iter().filter(|it| deletes(it)) {
            let _ = self.to_schedules.unbounded_send(ObjectRef::from_obj(schedule.as_ref()));
        }
    }

    /// An object has changed whose labels say what it is for.
    fn labelled<O: Resource>(&self, changed: &watcher::Result<O>) {
        let Ok(object) = changed else { return };
        if let Some(schedule) = named_by(object, labels::BACKUP_SCHEDULE_NAME) {
            let _ = self.to_schedules.unbounded_send(schedule);
        }
        if let Some(restore) = named_by(object, labels::RESTORED_FROM) {
            let _ = self.to_restores.unbounded_send(restore);
        }
    }
}
