//! The first step of a reconcile: find out what there is, from the caches and from etcd itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use etcd_operator_api::{EtcdCluster, EtcdPeer, parse_id};
use etcd_operator_core::names::Place;
use etcd_operator_core::observed::{Birth, Claim, Identity, Observed, Peer as SeenPeer, Pod as SeenPod};
use k8s_openapi::api::core::v1::{ContainerStatus, PersistentVolumeClaim, Pod};
use kube::{Resource, ResourceExt};

use super::ask::{Endpoints, ask_members};
use super::caches::{Caches, of_members};
use crate::objects::annotations::{ROLE, VOTER, read_birth, read_identity, read_told};

/// More members than anybody runs. The API server refuses more; what is noted elsewhere is not checked by it.
const MOST_MEMBERS: u32 = 99;

/// What was observed, in the terms of decisions, and the objects behind it.
pub struct World {
    pub observed: Observed,
    pub endpoints: Endpoints,
    pub peers: BTreeMap<u32, Arc<EtcdPeer>>,
    pub pods: BTreeMap<u32, Arc<Pod>>,
    pub claims: BTreeMap<u32, Arc<PersistentVolumeClaim>>,
}

pub async fn observe(cluster: &EtcdCluster, place: Place, caches: &Caches) -> World {
    let pods = of_members(&caches.pods, &place);
    let claims = of_members(&caches.claims, &place);
    let peers: BTreeMap<u32, Arc<EtcdPeer>> = of_members(&caches.peers, &place)
        .into_iter()
        .filter_map(|(ordinal, peer)| Some((ordinal, Arc::new(peer.0.as_ref().ok()?.clone()))))
        .collect();
    let endpoints: Endpoints = pods.iter().filter_map(|(ordinal, pod)| Some((*ordinal, endpoint(pod)?))).collect();
    let asked = ask_members(&endpoints, &place).await;
    let status = cluster.status.clone().unwrap_or_default();
    let observed = Observed {
        place,
        uid: cluster.uid().unwrap_or_default(),
        replicas: u32::try_from(cluster.spec.replicas).unwrap_or_default().min(MOST_MEMBERS),
        durable: !cluster.spec.storage.is_ephemeral(),
        deleting: cluster.metadata.deletion_timestamp.is_some(),
        birth: status.birth.as_ref().map(|birth| Birth {
            token: birth.token.clone(),
            size: u32::try_from(birth.size).unwrap_or_default().min(MOST_MEMBERS),
        }),
        // An ID that can't be read is nobody's: nothing is founded, and nothing that answers is taken for this cluster.
        cluster_id: status.cluster_id.as_ref().map(|_| status.cluster_id().unwrap_or_default()),
        outdated: peers.iter().filter(|(_, peer)| is_outdated(peer, cluster)).map(|(ordinal, _)| *ordinal).collect(),
        peers: peers.iter().map(|(ordinal, peer)| (*ordinal, see_peer(peer, &cluster.uid()))).collect(),
        pods: pods.iter().map(|(ordinal, pod)| (*ordinal, see_pod(pod, &peers))).collect(),
        claims: claims.iter().map(|(ordinal, claim)| (*ordinal, see_claim(claim, &cluster.uid()))).collect(),
        answers: asked.answers,
        membership: asked.membership,
    };
    World { observed, endpoints, peers, pods, claims }
}

/// Whether a member was made from another spec than the user wants now.
fn is_outdated(peer: &EtcdPeer, cluster: &EtcdCluster) -> bool {
    let (made, wanted) = (&peer.spec, &cluster.spec);
    made.version != wanted.version
        || made.image != wanted.image
        || made.etcd != wanted.etcd
        || made.pod_template != wanted.pod_template()
}

/// Where a pod's etcd would answer, once it has an address and its etcd has been started.
fn endpoint(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let runs = status.container_statuses.iter().flatten().any(is_running);
    let address = status.pod_ip.as_ref().filter(|_| runs)?;
    Some(if address.contains(':') { format!("http://[{address}]:2379") } else { format!("http://{address}:2379") })
}

fn is_running(container: &ContainerStatus) -> bool {
    container.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// Whether an object is going away: it is being deleted, or its owner is gone and it will be. The latter is how what an
/// earlier EtcdCluster of the same name left looks until Kubernetes has collected it.
fn is_going<K: Resource>(object: &K, is_owner: impl Fn(&str) -> bool) -> bool {
    let owners = object.owner_references();
    object.meta().deletion_timestamp.is_some() || owners.iter().any(|owner| !is_owner(&owner.uid))
}

fn see_peer(peer: &EtcdPeer, cluster: &Option<String>) -> SeenPeer {
    let status = peer.status.clone().unwrap_or_default();
    let id = |text: &Option<String>| text.as_deref().and_then(parse_id);
    let identity = id(&status.member_id).zip(id(&status.cluster_id));
    SeenPeer {
        identity: identity.map(|(member_id, cluster_id)| Identity { member_id, cluster_id }),
        started: status.started,
        deleting: is_going(peer, |uid| Some(uid) == cluster.as_deref()),
    }
}

fn see_pod(pod: &Pod, peers: &BTreeMap<u32, Arc<EtcdPeer>>) -> SeenPod {
    let is_peer = |uid: &str| peers.values().any(|peer| peer.metadata.uid.as_deref() == Some(uid));
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
    SeenPod {
        deleting: is_going(pod, is_peer),
        finished: phase == "Failed" || phase == "Succeeded",
        told: read_told(pod.annotations()),
        serves_clients: pod.labels().get(ROLE).is_some_and(|role| role == VOTER),
        problem: problem_of(pod),
    }
}

fn see_claim(claim: &PersistentVolumeClaim, cluster: &Option<String>) -> Claim {
    Claim {
        deleting: is_going(claim, |uid| Some(uid) == cluster.as_deref()),
        birth: read_birth(claim.annotations()),
        identity: read_identity(claim.annotations()),
    }
}

/// What keeps a pod from running, in the words of whoever knows: the gate, the kubelet or the scheduler.
fn problem_of(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let containers = status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
    for container in containers {
        let state = container.state.as_ref();
        let last = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
        let ended = state.and_then(|state| state.terminated.as_ref()).or(last).filter(|ended| ended.exit_code != 0);
        if let Some(message) = ended.and_then(|ended| ended.message.as_deref()).filter(|_| container.name == "gate") {
            return Some(message.trim().to_owned());
        }
        let waiting = state.and_then(|state| state.waiting.as_ref());
        let reason = waiting.and_then(|waiting| waiting.reason.as_deref()).unwrap_or_default();
        if !["", "PodInitializing", "ContainerCreating"].contains(&reason) {
            let message = waiting.and_then(|waiting| waiting.message.as_deref()).unwrap_or("no further message");
            return Some(format!("the container {} waits: {reason} ({message})", container.name));
        }
    }
    let unschedulable = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    unschedulable.and_then(|condition| condition.message.as_deref()).map(|why| format!("no node takes its pod: {why}"))
}
