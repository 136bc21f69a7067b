//! The first step of a reconcile: find out what there is.

use kube::runtime::reflector::store::WriterDropped;
use kube::runtime::reflector::{ObjectRef, Store};

use super::watch::{Cluster, Peer, cluster_of};

/// How many peers a cluster has. Waits for the cache first, which would otherwise know too few.
pub async fn count_peers(peers: &Store<Peer>, cluster: &ObjectRef<Cluster>) -> Result<usize, WriterDropped> {
    peers.wait_until_ready().await?;
    Ok(peers
        .state()
        .iter()
        .filter(|peer| cluster_of(peer).as_ref() == Some(cluster))
        .count())
}
