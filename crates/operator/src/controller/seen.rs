//! The objects of one cluster's members: as the caches show them, or as the API server has them at this moment.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use etcd_operator_api::{EtcdPeer, labels};
use etcd_operator_core::names::Place;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use kube::core::NamespaceResourceScope;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::act::{Error, api_error};
use super::caches::{Caches, of_members};

/// On claims: the node that the scheduler chose when the volume was to be made.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

pub struct Seen {
    pub peers: BTreeMap<u32, Arc<EtcdPeer>>,
    pub pods: BTreeMap<u32, Arc<Pod>>,
    pub claims: BTreeMap<u32, Arc<PersistentVolumeClaim>>,
    /// The nodes of the pods and the claims, by name, as far as there are such nodes.
    pub nodes: BTreeMap<String, Arc<Node>>,
}

impl Seen {
    pub fn in_caches(caches: &Caches, place: &Place) -> Self {
        let peers = of_members(&caches.peers, place).into_iter();
        let understood = peers.filter_map(|(ordinal, peer)| Some((ordinal, Arc::new(peer.0.as_ref().ok()?.clone()))));
        let mut seen = Seen {
            peers: understood.collect(),
            pods: of_members(&caches.pods, place),
            claims: of_members(&caches.claims, place),
            nodes: BTreeMap::new(),
        };
        let node = |name: String| Some((name.clone(), caches.nodes.objects.get(&ObjectRef::new(&name))?));
        seen.nodes = seen.node_names().into_iter().filter_map(node).collect();
        seen
    }

    /// Reads everything past the caches. By name, because what lost its labels is there nevertheless.
    pub async fn live(client: &Client, place: &Place, ordinals: &BTreeSet<u32>) -> Result<Self, Error> {
        let (peers, pods, claims) = futures::try_join!(
            members::<EtcdPeer>(client, place, ordinals),
            members::<Pod>(client, place, ordinals),
            members::<PersistentVolumeClaim>(client, place, ordinals)
        )?;
        let mut seen = Seen { peers, pods, claims, nodes: BTreeMap::new() };
        let nodes: Api<Node> = Api::all(client.clone());
        let node = async |name: String| {
            let found = nodes.get_opt(&name).await;
            let found = found.map_err(|error| api_error(format!("reading the node {name}"), error))?;
            Ok::<_, Error>(found.map(|node| (name, Arc::new(node))))
        };
        seen.nodes = try_join_all(seen.node_names().into_iter().map(node)).await?.into_iter().flatten().collect();
        Ok(seen)
    }

    /// Every ordinal that something is known of.
    pub fn ordinals(&self) -> BTreeSet<u32> {
        self.peers.keys().chain(self.pods.keys()).chain(self.claims.keys()).copied().collect()
    }

    fn node_names(&self) -> BTreeSet<String> {
        let of_pods = self.pods.values().filter_map(|pod| node_of_pod(pod));
        of_pods.chain(self.claims.values().filter_map(|claim| node_of_claim(claim))).map(str::to_owned).collect()
    }
}

pub fn node_of_pod(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

pub fn node_of_claim(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.annotations().get(SELECTED_NODE).map(String::as_str)
}

/// The objects of one kind with the names of members. What somebody else gave such a name is not the cluster's.
async fn members<K>(client: &Client, place: &Place, ordinals: &BTreeSet<u32>) -> Result<BTreeMap<u32, Arc<K>>, Error>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), &place.namespace);
    let read = async |ordinal: u32| {
        let name = place.member_name(ordinal);
        let found = api.get_opt(&name).await;
        let found = found.map_err(|error| api_error(format!("reading the {} {name}", K::kind(&())), error))?;
        Ok::<_, Error>(found.map(|object| (ordinal, Arc::new(object))))
    };
    let found = try_join_all(ordinals.iter().map(|ordinal| read(*ordinal))).await?;
    let is_ours = |object: &K| {
        let label = object.labels().get(labels::CLUSTER_NAME);
        label.is_none_or(|cluster| *cluster == place.cluster)
    };
    Ok(found.into_iter().flatten().filter(|(_, object)| is_ours(object)).collect())
}
