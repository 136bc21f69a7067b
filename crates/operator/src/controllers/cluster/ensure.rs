//! What every cluster has, whatever its plan: its Services, its PodDisruptionBudget, and the labels and owners of its
//! claims. If another client changes or deletes them, they are repaired. Objects that don't belong to the cluster are
//! left alone.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};

use etcd_operator_api::{EtcdCluster, EventReason, labels};
use etcd_operator_core::cluster::disruption_budget::voters_to_protect;
use etcd_operator_core::notice::Notice;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::errors::{Error, api_error};
use super::memory::Memory;
use super::observe::Observation;
use super::patches::{self, MetadataPatch, ObjectPatch};
use crate::controllers::caches::Caches;
use crate::objects::annotations::read_identity;
use crate::objects::claim::claim_metadata;
use crate::objects::services::{client_service, disruption_budget, headless_service};
use crate::runtime::events::Events;
use crate::runtime::status::FIELD_MANAGER;
use crate::runtime::strict;
use crate::runtime::watch::Cache;

pub struct Ensure<'a> {
    pub client: &'a Client,
    pub cluster: &'a EtcdCluster,
    pub caches: &'a Caches,
    pub memory: &'a Memory,
    pub events: &'a Events,
}

impl Ensure<'_> {
    pub async fn everything(&self, observation: &Observation) -> Result<(), Error> {
        let (services, created) = (&self.caches.services, EventReason::ServiceCreated);
        self.apply(services, &headless_service(self.cluster), created).await?;
        self.apply(services, &client_service(self.cluster), created).await?;
        let status = self.cluster.status.clone().unwrap_or_default();
        let budget = disruption_budget(self.cluster, voters_to_protect(&observation.observed, &status));
        self.apply(&self.caches.budgets, &budget, EventReason::PodDisruptionBudgetCreated).await?;
        for (ordinal, claim) in &observation.objects.claims {
            if self.is_ours(observation, *ordinal) {
                self.repair_claim(claim).await?;
            }
        }
        self.find_lost_claims(observation).await
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.cluster.namespace().unwrap_or_default())
    }

    /// Applies the desired state of an object. One of that name that another client created is not taken over.
    async fn apply<K>(&self, cache: &Cache<K>, wanted: &K, news: EventReason) -> Result<(), Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
    {
        let (kind, namespace) = (K::kind(&()), self.cluster.namespace().unwrap_or_default());
        let name = wanted.name_any();
        let key = (kind.to_string(), name.clone());
        let hash = hash_of(wanted);
        let found = cache.get(&namespace, &name);
        let version = found.as_ref().and_then(|object| object.resource_version());
        if self.memory.applied().is_current(&key, hash, version.as_deref()) {
            return Ok(());
        }
        let failed = |error| api_error(format!("applying the {kind} {name}"), error);
        let created = if found.is_none() { self.create(wanted).await.map_err(failed)? } else { None };
        let made = match created {
            Some(made) => {
                let notice = Notice::of(news, format!("Created the {kind} {name}")).about(&name);
                self.events.publish(self.cluster, &notice).await;
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
        self.memory.applied().remember(key, hash, made.resource_version());
        Ok(())
    }

    /// Creates an object. `None` if one of that name exists.
    async fn create<K>(&self, wanted: &K) -> kube::Result<Option<K>>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
    {
        let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match strict::create(self.client, &parameters, wanted).await {
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

    /// Whether a claim is this cluster's own. One that an earlier cluster of this name left, or another client created,
    /// is not: its owner decides what happens to it.
    fn is_ours(&self, observation: &Observation, ordinal: u32) -> bool {
        let observed = &observation.observed;
        observed.claims.get(&ordinal).is_some_and(|claim| {
            let bootstrapped_here = claim.bootstrap.is_some() && claim.bootstrap == observed.bootstrap;
            let is_member = claim.identity.is_some_and(|identity| Some(identity.cluster_id) == observed.cluster_id);
            !claim.deleting && (bootstrapped_here || is_member)
        })
    }

    async fn repair_claim(&self, claim: &PersistentVolumeClaim) -> Result<(), Error> {
        let wanted = claim_metadata(self.cluster, &claim.name_any());
        let (labels, owners) = (wanted.labels.unwrap_or_default(), wanted.owner_references.unwrap_or_default());
        let labelled = labels.iter().all(|(name, value)| claim.labels().get(name) == Some(value));
        if labelled && uids(claim.owner_references()) == uids(&owners) {
            return Ok(());
        }
        let labels = patches::set(labels);
        let patch = MetadataPatch { labels, owner_references: Some(owners), ..MetadataPatch::default() };
        let patch = Patch::Merge(ObjectPatch::of(patch));
        let name = claim.name_any();
        let patched = self.api::<PersistentVolumeClaim>().patch(&name, &patches::strictly(), &patch).await;
        patched.map(drop).map_err(|error| api_error(format!("repairing the volume claim {name}"), error))
    }

    /// A claim that lost its labels is no longer in the cache, and its member would be diagnosed as having lost its
    /// data. It is looked up by its name.
    async fn find_lost_claims(&self, observation: &Observation) -> Result<(), Error> {
        let observed = &observation.observed;
        let lost = observed.peers.iter().filter(|(ordinal, _)| !observed.claims.contains_key(ordinal));
        for (ordinal, peer) in lost.filter(|(_, peer)| observed.durable && peer.started) {
            let name = observed.names.member_name(*ordinal);
            let found = self.api::<PersistentVolumeClaim>().get_opt(&name).await;
            let found = found.map_err(|error| api_error(format!("looking for the volume claim {name}"), error))?;
            if let Some(claim) = found.filter(|claim| read_identity(claim.annotations()) == peer.identity) {
                self.repair_claim(&claim).await?;
            }
        }
        Ok(())
    }
}

fn uids(owners: &[OwnerReference]) -> Vec<&str> {
    owners.iter().map(|owner| owner.uid.as_str()).collect()
}

fn hash_of(object: &impl Serialize) -> u64 {
    let mut hasher = DefaultHasher::new();
    // These types contain nothing that JSON can't represent.
    serde_json::to_string(object).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
