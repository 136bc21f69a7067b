//! The Services and the PodDisruptionBudget of a cluster: whether they are as this process last applied them, and how
//! they are applied. One of their names that another client created is not taken over.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};

use etcd_operator_api::{EtcdCluster, EventReason, labels};
use etcd_operator_core::cluster::observed::{ServiceKind, SharedObjects};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::actor::Actor;
use super::errors::{Error, api_error};
use super::memory::{Key, Memory};
use crate::controllers::caches::Caches;
use crate::objects::services::{client_service, disruption_budget, headless_service};
use crate::runtime::status::FIELD_MANAGER;
use crate::runtime::strict;
use crate::runtime::watch::Cache;

/// The objects that exist and were not changed since they were applied.
pub fn observe(cluster: &EtcdCluster, caches: &Caches, memory: &Memory) -> SharedObjects {
    let is_as_applied = |kind: &ServiceKind| is_current(cluster, &caches.services, memory, &service(cluster, *kind));
    let services = ServiceKind::ALL.into_iter().filter(is_as_applied).collect();
    let budget = caches.budgets.get(&cluster.namespace().unwrap_or_default(), &cluster.name_any());
    let keeps = budget.and_then(|budget| keeps_available(&budget));
    let is_kept = |keeps: &usize| is_current(cluster, &caches.budgets, memory, &disruption_budget(cluster, *keeps));
    SharedObjects { services, min_available: keeps.filter(is_kept) }
}

fn service(cluster: &EtcdCluster, kind: ServiceKind) -> Service {
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

impl Actor<'_> {
    pub(super) async fn apply_service(&self, kind: ServiceKind) -> Result<(), Error> {
        let wanted = service(self.cluster, kind);
        self.apply(&self.context.caches.services, &wanted, EventReason::ServiceCreated).await
    }

    pub(super) async fn apply_disruption_budget(&self, min_available: usize) -> Result<(), Error> {
        let wanted = disruption_budget(self.cluster, min_available);
        self.apply(&self.context.caches.budgets, &wanted, EventReason::PodDisruptionBudgetCreated).await
    }

    async fn apply<K>(&self, cache: &Cache<K>, wanted: &K, news: EventReason) -> Result<(), Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
    {
        let (kind, name) = (K::kind(&()), wanted.name_any());
        let exists = cache.get(&self.observation.observed.names.namespace, &name).is_some();
        let failed = |error| api_error(format!("applying the {kind} {name}"), error);
        let created = if exists { None } else { self.create_applied(wanted).await.map_err(failed)? };
        let made = match created {
            Some(made) => {
                self.tell(news, &name, format!("Created the {kind} {name}")).await?;
                made
            }
            None => {
                let found = self.api::<K>().get(&name).await.map_err(failed)?;
                if !self.belongs_to_cluster(&found) {
                    return Err(Error::Impossible(format!(
                        "there is a {kind} {name} already that is not owned by this cluster"
                    )));
                }
                let parameters = PatchParams::apply(FIELD_MANAGER).force().validation_strict();
                self.api::<K>().patch(&name, &parameters, &Patch::Apply(wanted)).await.map_err(failed)?
            }
        };
        self.memory.applied().remember(key_of(wanted), hash_of(wanted), made.resource_version());
        Ok(())
    }

    /// Creates an object whose fields are this operator's. `None` if one of that name exists.
    async fn create_applied<K>(&self, wanted: &K) -> kube::Result<Option<K>>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
    {
        let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match strict::create(&self.context.client, &parameters, wanted).await {
            Ok(made) => Ok(Some(made)),
            Err(kube::Error::Api(answer)) if answer.code == 409 => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn belongs_to_cluster<K: Resource>(&self, object: &K) -> bool {
        let owners = object.owner_references();
        let labelled = object.labels().get(labels::CLUSTER_NAME) == Some(&self.cluster.name_any());
        owners.iter().any(|owner| Some(&owner.uid) == self.cluster.uid().as_ref()) || (owners.is_empty() && labelled)
    }
}

fn key_of<K: Resource<DynamicType = ()>>(object: &K) -> Key {
    (K::kind(&()).into_owned(), object.name_any())
}

fn hash_of(object: &impl Serialize) -> u64 {
    let mut hasher = DefaultHasher::new();
    // These types contain nothing that JSON can't represent.
    serde_json::to_string(object).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
