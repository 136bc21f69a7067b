//! Watching objects and keeping them in caches.

use std::fmt::Debug;
use std::sync::Arc;

use futures::stream::{self, Stream, StreamExt};
use kube::runtime::reflector::{ObjectRef, Store, store};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::index::{Index, Key, News, OwnerOf};

/// The objects of one kind, as last observed.
pub struct Cache<K: Resource<DynamicType = ()> + 'static> {
    pub objects: Store<K>,
    index: Arc<Index>,
    filled: watch::Receiver<bool>,
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> Cache<K> {
    /// The object of a name.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.objects.get(&ObjectRef::new(name).within(namespace))
    }

    /// The objects that belong to an owner in their namespace: to a cluster, say.
    pub fn of(&self, namespace: &str, owner: &str) -> Vec<Arc<K>> {
        let names = self.index.names_of(namespace, owner);
        names.iter().filter_map(|name| self.get(namespace, name)).collect()
    }

    /// For whoever waits until it is filled. The store reports that too, but wakes only one waiter.
    pub fn filled(&self) -> watch::Receiver<bool> {
        self.filled.clone()
    }
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self { objects: self.objects.clone(), index: self.index.clone(), filled: self.filled.clone() }
    }
}

#[cfg(test)]
impl<K: Resource<DynamicType = ()> + Clone + 'static> Cache<K> {
    /// Filled, without any object.
    pub fn empty() -> Self {
        let (objects, _) = store();
        let (_, filled) = watch::channel(true);
        Cache { objects, index: Arc::new(Index::default()), filled }
    }

    /// Filled, with one object.
    pub fn holding(object: K) -> Self {
        let (objects, mut writer) = store();
        writer.apply_watcher_event(&Event::Apply(object));
        let (_, filled) = watch::channel(true);
        Cache { objects, index: Arc::new(Index::default()), filled }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the cache is not filled any more")]
pub struct CacheClosed;

/// Whether caches have been filled: whether all their objects have been listed once. A cache that is not filled yet
/// knows too little to base any decision on.
#[derive(Clone)]
pub struct Filled(Vec<watch::Receiver<bool>>);

impl Filled {
    pub fn all(caches: Vec<watch::Receiver<bool>>) -> Self {
        Filled(caches)
    }

    pub fn is_true(&self) -> bool {
        self.0.iter().all(|filled| *filled.borrow())
    }

    pub async fn wait(&self) -> Result<(), CacheClosed> {
        for filled in &self.0 {
            filled.clone().wait_for(|filled| *filled).await.map_err(|_| CacheClosed)?;
        }
        Ok(())
    }
}

/// What to watch and to keep.
pub struct Watched<K> {
    pub config: watcher::Config,
    /// Removes what is never read, which is most of many an object.
    pub trim: fn(&mut K),
    /// What it is found by.
    pub owner_of: OwnerOf<K>,
}

/// Creates a cache, and a stream that fills it while it is polled and yields every object that is changed or deleted.
pub fn watch<K>(api: Api<K>, watched: Watched<K>) -> (Cache<K>, impl Stream<Item = watcher::Result<K>> + Send + 'static)
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
{
    let (objects, writer) = store();
    let (fill, filled) = watch::channel(false);
    let index = Arc::new(Index::default());
    let listed = objects.clone();
    let cache = Cache { objects, index: index.clone(), filled };
    let Watched { config, trim, owner_of } = watched;
    let changes = watcher(api, config)
        .default_backoff()
        .modify(move |object| {
            // Nothing here reads the managed fields, and they are half of many an object.
            object.managed_fields_mut().clear();
            trim(object);
        })
        .reflect(writer)
        .flat_map(move |event| {
            let news = event.map(|event| {
                let news = index.follow(&event, owner_of);
                // After the index, which whoever waits for this goes by.
                if matches!(event, Event::InitDone) {
                    fill.send_replace(true);
                }
                match news {
                    News::Nothing => Vec::new(),
                    News::OfTheEvent => object_in(event).into_iter().collect(),
                    News::OfTheList(keys) => keys.iter().filter_map(|key| object_of(&listed, key)).collect(),
                }
            });
            stream::iter(match news {
                Ok(objects) => objects.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            })
        });
    (cache, changes)
}

/// An object that is in the cache, in its namespace if it has one.
fn object_of<K>(objects: &Store<K>, (namespace, name): &Key) -> Option<K>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let reference = ObjectRef::new(name);
    let reference = if namespace.is_empty() { reference } else { reference.within(namespace) };
    objects.get(&reference).map(|object| object.as_ref().clone())
}

fn object_in<K>(event: Event<K>) -> Option<K> {
    match event {
        Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) => Some(object),
        Event::Init | Event::InitDone => None,
    }
}
