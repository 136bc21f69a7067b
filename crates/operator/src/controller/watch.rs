//! Watching objects and keeping them in caches.

use std::fmt::Debug;

use etcd_operator_api::{EtcdCluster, EtcdPeer, labels};
use futures::Stream;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::{ObjectRef, store::Writer};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

/// What is in the caches: an object, or why it cannot be understood. So one strange object does not stop the others.
pub type Cluster = DeserializeGuard<EtcdCluster>;
pub type Peer = DeserializeGuard<EtcdPeer>;

/// Watches objects, fills the cache behind `cache`, and yields every object that changes or goes.
pub fn watch_into<K>(
    cache: Writer<K>,
    api: Api<K>,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<K>> + Send
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
{
    watcher(api, config)
        .default_backoff()
        // Nothing here reads them, and they are half of many an object.
        .modify(|object| object.managed_fields_mut().clear())
        .reflect(cache)
        .touched_objects()
}

/// Which peers to watch: those that carry the label of etcd.
pub fn labelled_etcd() -> watcher::Config {
    watcher::Config::default().labels(&format!("{}={}", labels::APP, labels::APP_NAME))
}

/// The cluster that a peer belongs to, by its label.
pub fn cluster_of(peer: &Peer) -> Option<ObjectRef<Cluster>> {
    let name = peer.labels().get(labels::CLUSTER_NAME)?;
    Some(ObjectRef::new(name).within(&peer.namespace()?))
}
