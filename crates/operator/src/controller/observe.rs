//! The first step of a reconcile: find out what there is.

use kube::runtime::reflector::ObjectRef;

use super::watch::{Cache, CacheClosed, Cluster, Peer, cluster_of};

/// How many peers a cluster has. Waits for the cache first, which would otherwise know too few.
pub async fn count_peers(peers: &Cache<Peer>, cluster: &ObjectRef<Cluster>) -> Result<usize, CacheClosed> {
    peers.wait_until_filled().await?;
    Ok(peers.objects.state().iter().filter(|peer| cluster_of(peer).as_ref() == Some(cluster)).count())
}
