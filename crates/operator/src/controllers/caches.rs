//! The objects that are watched, as last observed. Each kind is watched once, whoever reads it.

use etcd_operator_api::{EtcdBackup, EtcdBackupSchedule, EtcdCluster, EtcdPeer, EtcdRestore, labels};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::core::DeserializeGuard;
use kube::{Resource, ResourceExt};

use crate::runtime::watch::{Cache, Filled};

/// What is in the caches: an object, or why it can't be deserialized. So one invalid object does not block the others.
pub type Guarded<K> = DeserializeGuard<K>;

#[derive(Clone)]
pub struct Caches {
    pub clusters: Cache<Guarded<EtcdCluster>>,
    pub peers: Cache<Guarded<EtcdPeer>>,
    pub pods: Cache<Pod>,
    pub claims: Cache<PersistentVolumeClaim>,
    pub services: Cache<Service>,
    pub budgets: Cache<PodDisruptionBudget>,
    pub nodes: Cache<Node>,
    pub backups: Cache<Guarded<EtcdBackup>>,
    pub schedules: Cache<Guarded<EtcdBackupSchedule>>,
    pub restores: Cache<Guarded<EtcdRestore>>,
    pub jobs: Cache<Job>,
    pub job_pods: Cache<Pod>,
}

impl Caches {
    /// Whether those that reconciles of clusters read are filled.
    pub fn of_clusters_filled(&self) -> Filled {
        Filled::all(vec![
            self.clusters.filled(),
            self.peers.filled(),
            self.pods.filled(),
            self.claims.filled(),
            self.services.filled(),
            self.budgets.filled(),
            self.nodes.filled(),
        ])
    }

    /// Whether those that reconciles of backups, schedules and restores read are filled.
    pub fn of_backups_filled(&self) -> Filled {
        Filled::all(vec![
            self.clusters.filled(),
            self.backups.filled(),
            self.schedules.filled(),
            self.restores.filled(),
            self.jobs.filled(),
            self.job_pods.filled(),
        ])
    }
}

/// The cluster that an object is labelled with.
pub fn by_label<K: Resource>(object: &K) -> Option<String> {
    object.labels().get(labels::CLUSTER_NAME).cloned()
}

/// The cluster that a schedule takes backups of.
pub fn of_schedule(schedule: &Guarded<EtcdBackupSchedule>) -> Option<String> {
    schedule.0.as_ref().ok()?.spec.backup_spec().cluster_name
}

/// The cluster that a restore creates.
pub fn of_restore(restore: &Guarded<EtcdRestore>) -> Option<String> {
    Some(restore.0.as_ref().ok()?.spec.cluster_template.cluster_name.clone())
}

/// The object of a kind that owns another one.
pub fn owner_of_kind<K: Resource>(object: &K, kind: &str) -> Option<String> {
    object.owner_references().iter().find(|owner| owner.kind == kind).map(|owner| owner.name.clone())
}
