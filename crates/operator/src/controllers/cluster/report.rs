//! The fourth step of a reconcile: report to the user.

use etcd_operator_api::{EtcdCluster, EtcdClusterStatus, EtcdPeer};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};

use super::observe::Observation;
use super::patches::{AppliedStatus, PeerRecord, StatusPatch, strictly};
use crate::objects::is_pod_of;
use crate::runtime::status::FIELD_MANAGER;

/// Whether a status was written.
pub enum Written {
    Yes,
    /// The cluster has changed since it was read, or is gone: the status may be wrong, and the change will lead to
    /// another reconcile.
    Outdated,
}

pub async fn write_status(client: &Client, cluster: &EtcdCluster, status: &EtcdClusterStatus) -> kube::Result<Written> {
    let clusters: Api<EtcdCluster> = Api::namespaced(client.clone(), &cluster.namespace().unwrap_or_default());
    let params = PatchParams::apply(FIELD_MANAGER).force().validation_strict();
    let patch = Patch::Apply(AppliedStatus::of(cluster, status));
    match clusters.patch_status(&cluster.name_any(), &params, &patch).await {
        Ok(_) => Ok(Written::Yes),
        Err(kube::Error::Api(answer)) if answer.code == 404 || answer.code == 409 => Ok(Written::Outdated),
        Err(error) => Err(error),
    }
}

/// Records in each EtcdPeer the version of etcd that its member runs. Returns the members and versions that changed.
pub async fn write_versions(client: &Client, observation: &Observation) -> kube::Result<Vec<(String, String)>> {
    let mut news = Vec::new();
    let peers: Api<EtcdPeer> = Api::namespaced(client.clone(), &observation.observed.names.namespace);
    for (ordinal, answer) in &observation.observed.answers {
        let (Ok(answer), Some(peer)) = (answer, observation.objects.peers.get(ordinal)) else { continue };
        // The pod of an earlier EtcdPeer may still answer.
        if !observation.objects.pods.get(ordinal).is_some_and(|pod| is_pod_of(pod, peer)) {
            continue;
        }
        let known = peer.status.as_ref().and_then(|status| status.server_version.as_ref());
        if known != Some(&answer.version) {
            let status = PeerRecord::ServerVersion { server_version: answer.version.clone() };
            let patch = Patch::Merge(StatusPatch { status });
            match peers.patch_status(&peer.name_any(), &strictly(), &patch).await {
                Err(kube::Error::Api(gone)) if gone.code == 404 => {}
                written => {
                    written?;
                    news.push((peer.name_any(), answer.version.clone()));
                }
            }
        }
    }
    Ok(news)
}
