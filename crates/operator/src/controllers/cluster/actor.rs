//! What the execution of steps has in common: access to the objects of a cluster, and telling what was done. The steps
//! themselves are in the files that `act` names.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use etcd_operator_api::{EtcdCluster, EtcdClusterStatus, EtcdPeer, EventReason};
use etcd_operator_core::notice::Notice;
use etcd_operator_core::ordinal::Ordinal;
use kube::api::{DeleteParams, Patch, PostParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::errors::{Error, api_error};
use super::memory::Memory;
use super::observe::Observation;
use super::patches::{self, ObjectPatch, PeerRecord, StatusPatch};
use crate::controllers::context::Context;
use crate::runtime::status::{self, Written};
use crate::runtime::strict;

/// Everything that steps need to be executed.
pub struct Actor<'a> {
    pub context: &'a Context,
    pub cluster: &'a EtcdCluster,
    pub observation: &'a Observation,
    pub(super) memory: Arc<Memory>,
    /// EtcdPeers created by earlier steps of the same plan, which are not in the cache yet.
    pub(super) made: BTreeMap<Ordinal, Arc<EtcdPeer>>,
}

impl<'a> Actor<'a> {
    pub fn new(context: &'a Context, cluster: &'a EtcdCluster, observation: &'a Observation) -> Self {
        let names = &observation.observed.names;
        let memory = context.memories.of(&names.namespace, &names.cluster);
        Actor { context, cluster, observation, memory, made: BTreeMap::new() }
    }

    pub(super) fn name(&self, ordinal: Ordinal) -> String {
        self.observation.observed.names.member_name(ordinal)
    }

    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.context.client.clone(), &self.observation.observed.names.namespace)
    }

    pub(super) async fn tell(&self, reason: EventReason, about: &str, note: String) -> Result<(), Error> {
        tracing::info!(%reason, note);
        self.context.events.publish(self.cluster, &Notice::of(reason, note).about(about)).await;
        Ok(())
    }

    /// Records something in the cluster's status before anything else happens. Fails if the cluster has changed since
    /// it was read.
    pub(super) async fn record(&self, change: impl FnOnce(&mut EtcdClusterStatus)) -> Result<(), Error> {
        let mut status = self.cluster.status.clone().unwrap_or_default();
        change(&mut status);
        let written = status::write(self.cluster, &status, &self.context.client).await;
        match written.map_err(|error| api_error("recording in the status", error))? {
            Written::Yes => Ok(()),
            Written::Outdated => Err(Error::OutOfDate("the EtcdCluster has changed".into())),
        }
    }

    /// Records something in the status of an EtcdPeer.
    pub(super) async fn record_in_peer(&self, ordinal: Ordinal, status: PeerRecord) -> Result<(), Error> {
        let name = self.name(ordinal);
        let patch = Patch::Merge(StatusPatch { status });
        let patched = self.api::<EtcdPeer>().patch_status(&name, &patches::strictly(), &patch).await;
        patched.map(drop).map_err(|error| api_error(format!("recording in the status of {name}"), error))
    }

    /// Creates an object. `None` if one of that name already exists.
    pub(super) async fn create<K>(&self, object: &K) -> Result<Option<K>, Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
    {
        match strict::create(&self.context.client, &PostParams::default(), object).await {
            Ok(created) => Ok(Some(created)),
            Err(kube::Error::Api(answer)) if answer.code == 409 => Ok(None),
            Err(error) => Err(api_error(format!("creating the {} {}", K::kind(&()), object.name_any()), error)),
        }
    }

    pub(super) async fn patch<K>(&self, name: &str, patch: &ObjectPatch<impl Serialize + Debug>) -> Result<(), Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let doing = || format!("changing the {} {name}", K::kind(&()));
        let patched = self.api::<K>().patch(name, &patches::strictly(), &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|error| api_error(doing(), error))
    }

    /// Deletes an object, but only the very one that was observed.
    pub(super) async fn delete<K>(&self, name: &str, uid: Option<String>, grace: Option<u32>) -> Result<(), Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let only = Preconditions { uid, resource_version: None };
        let parameters =
            DeleteParams { preconditions: Some(only), grace_period_seconds: grace, ..DeleteParams::background() };
        match self.api::<K>().delete(name, &parameters).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(answer)) if answer.code == 404 => Ok(()),
            // Another object has this name by now.
            Err(kube::Error::Api(answer)) if answer.code == 409 => Err(Error::OutOfDate(format!("{name} has changed"))),
            Err(error) => Err(api_error(format!("deleting the {} {name}", K::kind(&())), error)),
        }
    }
}
