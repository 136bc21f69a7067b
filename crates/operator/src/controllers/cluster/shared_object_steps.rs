//! The execution of steps about the Services and the PodDisruptionBudget. One of their names that another client created
//! is not taken over.

use std::fmt::Debug;

use etcd_operator_api::{EventReason, labels};
use etcd_operator_core::cluster::observed::ServiceKind;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::actor::Actor;
use super::errors::{Error, api_error};
use super::shared_objects::{hash_of, key_of, service};
use crate::objects::services::disruption_budget;
use crate::runtime::status::FIELD_MANAGER;
use crate::runtime::strict;
use crate::runtime::watch::Cache;

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
