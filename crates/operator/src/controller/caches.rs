//! The objects that the controller watches, as last observed, and the cluster that each belongs to.

use std::collections::BTreeMap;
use std::sync::Arc;

use etcd_operator_api::labels;
use etcd_operator_core::names::ClusterNames;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};

use super::watch::{Cache, CacheClosed, Cluster, Peer};

#[derive(Clone)]
pub struct Caches {
    pub clusters: Cache<Cluster>,
    pub peers: Cache<Peer>,
    pub pods: Cache<Pod>,
    pub claims: Cache<PersistentVolumeClaim>,
    pub services: Cache<Service>,
    pub budgets: Cache<PodDisruptionBudget>,
    pub nodes: Cache<Node>,
}

impl Caches {
    /// A cache that is not filled yet knows too little to base any decision on.
    pub async fn wait_until_filled(&self) -> Result<(), CacheClosed> {
        self.clusters.wait_until_filled().await?;
        self.peers.wait_until_filled().await?;
        self.pods.wait_until_filled().await?;
        self.claims.wait_until_filled().await?;
        self.services.wait_until_filled().await?;
        self.budgets.wait_until_filled().await?;
        self.nodes.wait_until_filled().await
    }
}

/// The cluster that an object belongs to, by its label.
pub fn cluster_of<K: Resource>(object: &K) -> Option<ObjectRef<Cluster>> {
    let name = object.labels().get(labels::CLUSTER_NAME)?;
    Some(ObjectRef::new(name).within(&object.namespace()?))
}

/// The objects of one kind that belong to the members of a cluster, by ordinal.
pub fn of_members<K>(cache: &Cache<K>, names: &ClusterNames) -> BTreeMap<u32, Arc<K>>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let is_ours = |object: &Arc<K>| {
        object.namespace().as_deref() == Some(&names.namespace)
            && object.labels().get(labels::CLUSTER_NAME) == Some(&names.cluster)
    };
    let ours = cache.objects.state().into_iter().filter(is_ours);
    ours.filter_map(|object| Some((names.ordinal_of_name(&object.name_any())?, object))).collect()
}
