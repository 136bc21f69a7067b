//! Watching objects and keeping them in caches.

use std::fmt::Debug;

use etcd_operator_api::{EtcdCluster, EtcdPeer, labels};
use futures::stream::{Stream, StreamExt};
use kube::core::DeserializeGuard;
use kube::runtime::reflector::{Store, store};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

/// The content of the caches: an object, or why it can't be deserialized. So one invalid object does not block the
/// others.
pub type Cluster = DeserializeGuard<EtcdCluster>;
pub type Peer = DeserializeGuard<EtcdPeer>;

/// The objects of one kind, as last observed.
pub struct Cache<K: Resource<DynamicType = ()> + 'static> {
    pub objects: Store<K>,
    /// Whether all objects have been listed once. The store reports that too, but wakes only one waiter.
    filled: watch::Receiver<bool>,
}

#[derive(Debug, thiserror::Error)]
#[error("the cache is not filled any more")]
pub struct CacheClosed;

impl<K: Resource<DynamicType = ()> + 'static> Cache<K> {
    pub fn is_filled(&self) -> bool {
        *self.filled.borrow()
    }

    pub async fn wait_until_filled(&self) -> Result<(), CacheClosed> {
        self.filled.clone().wait_for(|filled| *filled).await.map(|_| ()).map_err(|_| CacheClosed)
    }
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self { objects: self.objects.clone(), filled: self.filled.clone() }
    }
}

/// Creates a cache, and a stream that fills it while it is polled and yields every object that is changed or deleted.
pub fn watch<K>(
    api: Api<K>,
    config: watcher::Config,
) -> (Cache<K>, impl Stream<Item = watcher::Result<K>> + Send + 'static)
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
{
    watch_trimmed(api, config, |_| {})
}

/// The same, for objects of which most is never read: `trim` removes that before they are cached.
pub fn watch_trimmed<K>(
    api: Api<K>,
    config: watcher::Config,
    trim: impl Fn(&mut K) + Send + Sync + 'static,
) -> (Cache<K>, impl Stream<Item = watcher::Result<K>> + Send + 'static)
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
{
    let (objects, writer) = store();
    let (fill, filled) = watch::channel(false);
    let changes = watcher(api, config)
        .default_backoff()
        .modify(move |object| {
            // Nothing here reads the managed fields, and they are half of many an object.
            object.managed_fields_mut().clear();
            trim(object);
        })
        .reflect(writer)
        .inspect(move |event| {
            if matches!(event, Ok(Event::InitDone)) {
                fill.send_replace(true);
            }
        })
        .touched_objects();
    (Cache { objects, filled }, changes)
}

/// Which objects to watch: those that carry the label of etcd.
pub fn labelled_etcd() -> watcher::Config {
    watcher::Config::default().labels(&format!("{}={}", labels::APP, labels::APP_NAME))
}
