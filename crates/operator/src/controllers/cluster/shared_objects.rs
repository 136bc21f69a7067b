//! The Services and the PodDisruptionBudget of a cluster: what they should be, and whether they are as this process last
//! applied them.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use etcd_operator_api::EtcdCluster;
use etcd_operator_core::cluster::observed::{ServiceKind, SharedObjects};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use serde::Serialize;

use super::memory::{Key, Memory};
use crate::controllers::caches::Caches;
use crate::objects::services::{client_service, disruption_budget, headless_service};
use crate::runtime::watch::Cache;

/// What there is of them, and whether it was changed since this process applied it.
pub fn observe(cluster: &EtcdCluster, caches: &Caches, memory: &Memory) -> SharedObjects {
    let is_as_applied = |kind: &ServiceKind| is_current(cluster, &caches.services, memory, &service(cluster, *kind));
    let services = ServiceKind::ALL.into_iter().filter(is_as_applied).collect();
    let budget = caches.budgets.get(&cluster.namespace().unwrap_or_default(), &cluster.name_any());
    let keeps = budget.and_then(|budget| keeps_available(&budget));
    let is_kept = |keeps: usize| is_current(cluster, &caches.budgets, memory, &disruption_budget(cluster, keeps));
    SharedObjects { services, min_available: keeps, budget_is_as_applied: keeps.is_some_and(is_kept) }
}

pub fn service(cluster: &EtcdCluster, kind: ServiceKind) -> Service {
    match kind {
        ServiceKind::Peers => headless_service(cluster),
        ServiceKind::Clients => client_service(cluster),
    }
}

fn keeps_available(budget: &PodDisruptionBudget) -> Option<usize> {
    match budget.spec.as_ref()?.min_available.as_ref()? {
        IntOrString::Int(number) => usize::try_from(*number).ok(),
        IntOrString::String(_) => None,
    }
}

/// Whether the cache shows an object in the very version that resulted from applying this one.
fn is_current<K>(cluster: &EtcdCluster, cache: &Cache<K>, memory: &Memory, wanted: &K) -> bool
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Serialize,
{
    let found = cache.get(&cluster.namespace().unwrap_or_default(), &wanted.name_any());
    let version = found.and_then(|object| object.resource_version());
    memory.applied().is_current(&key_of(wanted), hash_of(wanted), version.as_deref())
}

pub fn key_of<K: Resource<DynamicType = ()>>(object: &K) -> Key {
    (K::kind(&()).into_owned(), object.name_any())
}

pub fn hash_of(object: &impl Serialize) -> u64 {
    let mut hasher = DefaultHasher::new();
    // These types contain nothing that JSON can't represent.
    serde_json::to_string(object).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
