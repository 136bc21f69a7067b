//! What every cluster has, whatever it is doing: its Services, its PodDisruptionBudget, and the labels and owners of its
//! claims. Whoever changes or deletes them finds them repaired.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use etcd_operator_api::EtcdCluster;
use etcd_operator_core::observed::{Membership, Observed};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::caches::Caches;
use super::events::Events;
use super::observe::World;
use super::report::FIELD_MANAGER;
use super::watch::Cache;
use crate::objects::claim::claim_metadata;
use crate::objects::services::{client_service, disruption_budget, headless_service};

/// What was applied last, and which version of the object came of it. As long as the cache shows that version, nobody
/// has changed it and there is nothing to do.
#[derive(Default)]
pub struct Applied(Mutex<HashMap<String, (u64, String)>>);

impl Applied {
    fn is_current(&self, key: &str, wanted: u64, seen: Option<&str>) -> bool {
        let applied = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        applied.get(key).is_some_and(|(hash, version)| *hash == wanted && Some(version.as_str()) == seen)
    }

    fn remember(&self, key: String, wanted: u64, version: Option<String>) {
        let mut applied = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        applied.insert(key, (wanted, version.unwrap_or_default()));
    }
}

pub struct Ensure<'a> {
    pub client: &'a Client,
    pub cluster: &'a EtcdCluster,
    pub caches: &'a Caches,
    pub applied: &'a Applied,
    pub events: &'a Events,
}

impl Ensure<'_> {
    pub async fn everything(&self, world: &World) -> kube::Result<()> {
        self.apply::<Service>(&self.caches.services, headless_service(self.cluster)).await?;
        self.apply::<Service>(&self.caches.services, client_service(self.cluster)).await?;
        let budget = disruption_budget(self.cluster, voters(&world.observed));
        self.apply::<PodDisruptionBudget>(&self.caches.budgets, budget).await?;
        for claim in world.claims.values() {
            self.claim(claim).await?;
        }
        Ok(())
    }

    async fn apply<K>(&self, cache: &Cache<K>, wanted: Value) -> kube::Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
    {
        let namespace = self.cluster.namespace().unwrap_or_default();
        let name = wanted["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let key = format!("{} {namespace}/{name}", K::kind(&()));
        let hash = hash_of(&wanted);
        let seen = cache.objects.get(&ObjectRef::new(&name).within(&namespace));
        let version = seen.as_ref().and_then(|object| object.resource_version());
        if self.applied.is_current(&key, hash, version.as_deref()) {
            return Ok(());
        }
        let api: Api<K> = Api::namespaced(self.client.clone(), &namespace);
        let applied = api.patch(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(wanted)).await?;
        if seen.is_none() {
            let kind = K::kind(&());
            self.events
                .done(self.cluster, &format!("{kind}Created"), &name, format!("Created the {kind} {name}"))
                .await;
        }
        self.applied.remember(key, hash, applied.resource_version());
        Ok(())
    }

    async fn claim(&self, claim: &PersistentVolumeClaim) -> kube::Result<()> {
        let wanted = claim_metadata(self.cluster, &claim.name_any());
        let owners = json!(claim.owner_references());
        let labelled = wanted["labels"].as_object().is_some_and(|labels| {
            labels.iter().all(|(name, value)| claim.labels().get(name).map(String::as_str) == value.as_str())
        });
        if labelled && owner_uids(&owners) == owner_uids(&wanted["ownerReferences"]) {
            return Ok(());
        }
        let patch = json!({"metadata": {"labels": wanted["labels"], "ownerReferences": wanted["ownerReferences"]}});
        let claims: Api<PersistentVolumeClaim> =
            Api::namespaced(self.client.clone(), &self.cluster.namespace().unwrap_or_default());
        claims.patch(&claim.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
    }
}

fn owner_uids(owners: &Value) -> Vec<&str> {
    owners.as_array().into_iter().flatten().filter_map(|owner| owner["uid"].as_str()).collect()
}

/// How many members vote, or will when the cluster is as it should be.
fn voters(observed: &Observed) -> usize {
    let voting = observed.membership.as_ref().map(|membership: &Membership| membership.voters().count());
    voting.unwrap_or(observed.replicas as usize)
}

fn hash_of(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}
