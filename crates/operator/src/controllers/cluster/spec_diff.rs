//! Finds the members that were not created from the current spec of their cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use etcd_operator_api::labels::RESTART;
use etcd_operator_api::{EtcdCluster, EtcdPeer};
use etcd_operator_core::cluster::spec_diff::{Current, Desired, SpecDiff, spec_diff};
use etcd_operator_core::ordinal::Ordinal;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::member_objects::MemberObjects;
use crate::objects::annotations::{IMAGE, RESIZE_REFUSED};
use crate::objects::is_pod_of;

/// The differences, by the ordinals of the outdated members.
pub fn find(cluster: &EtcdCluster, objects: &MemberObjects, etcd_repository: &str) -> BTreeMap<Ordinal, SpecDiff> {
    let image = cluster.spec.image(etcd_repository);
    let wanted =
        Desired { spec: &cluster.spec, restart: cluster.annotations().get(RESTART).map(String::as_str), image: &image };
    let change = |(ordinal, peer): (&Ordinal, &Arc<EtcdPeer>)| {
        // The pod of an earlier EtcdPeer may still be terminating.
        let pod = objects.pods.get(ordinal).map(Arc::as_ref).filter(|pod| is_pod_of(pod, peer));
        Some((*ordinal, spec_diff(&made(cluster, peer, pod), &wanted)?))
    };
    objects.peers.iter().filter_map(change).collect()
}

fn made<'a>(cluster: &EtcdCluster, peer: &'a EtcdPeer, pod: Option<&'a Pod>) -> Current<'a> {
    let refused = pod.and_then(|pod| pod.annotations().get(RESIZE_REFUSED));
    Current {
        spec: &peer.spec,
        restart: peer.annotations().get(RESTART).map(String::as_str),
        image: pod.and_then(|pod| pod.annotations().get(IMAGE)).map(String::as_str),
        refuses_resize: refused.is_some_and(|refused| *refused == resources_in_words(cluster)),
        is_short: pod.is_some_and(|pod| is_short(pod, peer)),
    }
}

/// The resources in a cluster's spec, as they are annotated when Kubernetes refuses them.
pub fn resources_in_words(cluster: &EtcdCluster) -> String {
    let resources = cluster.spec.pod_template().and_then(|template| template.resources);
    serde_json::to_string(&resources.unwrap_or_default()).unwrap_or_default()
}

/// Whether a pod was promised resources that its node will never have. Resizes by another client are ignored.
fn is_short(pod: &Pod, peer: &EtcdPeer) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    // A condition of an earlier generation of the pod is obsolete.
    let is_current = |seen: Option<i64>| seen.is_none() || seen == pod.metadata.generation;
    let infeasible = conditions.into_iter().any(|it| {
        let is_infeasible = it.type_ == "PodResizePending" && it.reason.as_deref() == Some("Infeasible");
        is_infeasible && is_current(it.observed_generation)
    });
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let promised =
        containers.into_iter().find(|container| container.name == "etcd").and_then(|it| it.resources.as_ref());
    let made = peer.spec.pod_template().resources.unwrap_or_default();
    infeasible && promised.is_some_and(|promised| promised.limits == made.limits || promised.requests == made.requests)
}
