//! The objects of one cluster's members: from the caches, or live from the API server.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use etcd_operator_api::{EtcdPeer, labels};
use etcd_operator_core::names::ClusterNames;
use etcd_operator_core::ordinal::Ordinal;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use kube::core::NamespaceResourceScope;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::errors::{Error, api_error};
use crate::controllers::caches::Caches;
use crate::objects::annotations::read_identity;
use crate::runtime::watch::Cache;

/// The label by which local volumes name their node.
const HOSTNAME: &str = "kubernetes.io/hostname";

pub struct MemberObjects {
    pub peers: BTreeMap<Ordinal, Arc<EtcdPeer>>,
    pub pods: BTreeMap<Ordinal, Arc<Pod>>,
    pub claims: BTreeMap<Ordinal, Arc<PersistentVolumeClaim>>,
    /// The names of the nodes that the members' volumes are bound to. Read only if their pods can't be scheduled.
    pub bound_to: BTreeMap<Ordinal, String>,
    /// The existing nodes of the pods and the volumes, by name.
    pub nodes: BTreeMap<String, Arc<Node>>,
}

impl MemberObjects {
    pub async fn in_caches(client: &Client, caches: &Caches, names: &ClusterNames) -> Result<Self, Error> {
        let peers = of_members(&caches.peers, names).into_iter();
        let understood = peers.filter_map(|(ordinal, peer)| Some((ordinal, Arc::new(peer.0.as_ref().ok()?.clone()))));
        let mut objects = MemberObjects {
            peers: understood.collect(),
            pods: of_members(&caches.pods, names),
            claims: of_members(&caches.claims, names),
            bound_to: BTreeMap::new(),
            nodes: BTreeMap::new(),
        };
        objects.find_lost_claims(client, names).await;
        objects.bound_to = objects.find_bound_volumes(client).await?;
        let node = |name: String| Some((name.clone(), caches.nodes.objects.get(&ObjectRef::new(&name))?));
        objects.nodes = objects.node_names().into_iter().filter_map(node).collect();
        Ok(objects)
    }

    /// Reads everything live. By name, because objects that lost their labels still exist.
    pub async fn live(client: &Client, names: &ClusterNames, ordinals: &BTreeSet<Ordinal>) -> Result<Self, Error> {
        let (peers, pods, claims) = futures::try_join!(
            members::<EtcdPeer>(client, names, ordinals),
            members::<Pod>(client, names, ordinals),
            members::<PersistentVolumeClaim>(client, names, ordinals)
        )?;
        let mut objects = MemberObjects { peers, pods, claims, bound_to: BTreeMap::new(), nodes: BTreeMap::new() };
        objects.bound_to = objects.find_bound_volumes(client).await?;
        let nodes: Api<Node> = Api::all(client.clone());
        let node = async |name: String| {
            let found = nodes.get_opt(&name).await;
            let found = found.map_err(|error| api_error(format!("reading the node {name}"), error))?;
            Ok::<_, Error>(found.map(|node| (name, Arc::new(node))))
        };
        objects.nodes = try_join_all(objects.node_names().into_iter().map(node)).await?.into_iter().flatten().collect();
        Ok(objects)
    }

    /// A claim that lost its labels is no longer in the cache, and its member would be diagnosed as having lost its
    /// data. It is looked up by its name.
    async fn find_lost_claims(&mut self, client: &Client, names: &ClusterNames) {
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), &names.namespace);
        for (ordinal, peer) in &self.peers {
            let status = peer.status.as_ref().filter(|status| status.started && !peer.spec.storage.is_ephemeral());
            let Some(status) = status.filter(|_| !self.claims.contains_key(ordinal)) else { continue };
            // If it can't be read now, the cache decides, and nothing is destroyed without a live read.
            let found = claims.get_opt(&names.member_name(*ordinal)).await.ok().flatten();
            let identity = found.as_ref().and_then(|claim| read_identity(claim.annotations()));
            let is_its = identity.is_some_and(|identity| {
                (Some(identity.member_id), Some(identity.cluster_id)) == (status.member_id(), status.cluster_id())
            });
            if let Some(claim) = found.filter(|_| is_its) {
                self.claims.insert(*ordinal, Arc::new(claim));
            }
        }
    }

    /// The node-bound volumes of pods that have no node. That is rare, so they are read when needed.
    async fn find_bound_volumes(&self, client: &Client) -> Result<BTreeMap<Ordinal, String>, Error> {
        let volumes: Api<PersistentVolume> = Api::all(client.clone());
        let homeless = self.pods.iter().filter(|(_, pod)| node_of_pod(pod).is_none()).map(|(ordinal, _)| ordinal);
        let mut bound_to = BTreeMap::new();
        for (ordinal, claim) in homeless.filter_map(|ordinal| Some((ordinal, self.claims.get(ordinal)?))) {
            let Some(name) = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()) else { continue };
            let volume = volumes.get_opt(name).await;
            let volume = volume.map_err(|error| api_error(format!("reading the volume {name}"), error))?;
            bound_to.extend(volume.as_ref().and_then(home_of).map(|node| (*ordinal, node)));
        }
        Ok(bound_to)
    }

    /// Every ordinal of which any object exists.
    pub fn ordinals(&self) -> BTreeSet<Ordinal> {
        self.peers.keys().chain(self.pods.keys()).chain(self.claims.keys()).copied().collect()
    }

    fn node_names(&self) -> BTreeSet<String> {
        let of_pods = self.pods.values().filter_map(|pod| node_of_pod(pod)).map(str::to_owned);
        of_pods.chain(self.bound_to.values().cloned()).collect()
    }
}

/// The cached objects of one kind that belong to the members of a cluster, by ordinal.
fn of_members<K>(cache: &Cache<K>, names: &ClusterNames) -> BTreeMap<Ordinal, Arc<K>>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let ours = cache.of(&names.namespace, &names.cluster).into_iter();
    ours.filter_map(|object| Some((names.ordinal_of_name(&object.name_any())?, object))).collect()
}

pub fn node_of_pod(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// The only node on which a volume can be used. `None` if it can be used on several.
fn home_of(volume: &PersistentVolume) -> Option<String> {
    let required = volume.spec.as_ref()?.node_affinity.as_ref()?.required.as_ref()?;
    let [term] = &required.node_selector_terms[..] else { return None };
    let expressions = term.match_expressions.iter().flatten();
    let mut hosts = expressions.filter(|it| it.key == HOSTNAME && it.operator == "In").flat_map(|it| &it.values);
    match hosts.next().map(Vec::as_slice) {
        Some([host]) => Some(host.clone()),
        _ => None,
    }
}

/// The objects of one kind with the names of members. An object of such a name that another client created is not the
/// cluster's.
async fn members<K>(
    client: &Client,
    names: &ClusterNames,
    ordinals: &BTreeSet<Ordinal>,
) -> Result<BTreeMap<Ordinal, Arc<K>>, Error>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), &names.namespace);
    let read = async |ordinal: Ordinal| {
        let name = names.member_name(ordinal);
        let found = api.get_opt(&name).await;
        let found = found.map_err(|error| api_error(format!("reading the {} {name}", K::kind(&())), error))?;
        Ok::<_, Error>(found.map(|object| (ordinal, Arc::new(object))))
    };
    let found = try_join_all(ordinals.iter().map(|ordinal| read(*ordinal))).await?;
    let is_ours = |object: &K| {
        let label = object.labels().get(labels::CLUSTER_NAME);
        label.is_none_or(|cluster| *cluster == names.cluster)
    };
    Ok(found.into_iter().flatten().filter(|(_, object)| is_ours(object)).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn home(terms: Value) -> Option<String> {
        let spec = json!({"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}});
        home_of(&serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap())
    }

    #[test]
    fn only_a_volume_of_one_node_is_bound_to_it() {
        let on = |values: Value| json!({"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": values}]});
        let zone =
            json!({"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]});
        assert_eq!(home(json!([on(json!(["node1"]))])).as_deref(), Some("node1"));
        assert_eq!(home(json!([on(json!(["node1", "node2"]))])), None);
        assert_eq!(home(json!([on(json!(["node1"])), on(json!(["node2"]))])), None);
        assert_eq!(home(json!([zone])), None);
        assert_eq!(home_of(&PersistentVolume::default()), None);
    }
}
