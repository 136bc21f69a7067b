//! An index of cached objects by what they belong to (a pod to a cluster, say), so that no reconcile scans a cache.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt};

/// A namespace and a name in it.
pub type Key = (String, String);

/// What an object belongs to, by name, if to anything. It is in the same namespace.
pub type OwnerOf<K> = fn(&K) -> Option<String>;

#[derive(Default)]
pub struct Index(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    objects: HashMap<Key, Entry>,
    /// The names of the objects that belong to something.
    of_owner: HashMap<Key, BTreeSet<String>>,
    /// What a list that is not complete yet has named so far. It counts once it is complete: a list that is given up
    /// in between is repeated.
    listed: HashMap<Key, Entry>,
}

#[derive(PartialEq, Eq)]
struct Entry {
    owner: Option<String>,
    resource_version: String,
}

/// What an event of a watch tells that was not known before.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    Nothing,
    /// The object in the event has changed, or is gone.
    OfTheEvent,
    /// These have changed, by a list that is complete now and in the cache. A list that is repeated after an
    /// interruption names objects that have not changed, too.
    OfTheList(Vec<Key>),
}

impl Index {
    /// The names of the objects that belong to an owner.
    pub fn names_of(&self, namespace: &str, owner: &str) -> Vec<String> {
        let entries = self.entries();
        let names = entries.of_owner.get(&(namespace.to_owned(), owner.to_owned()));
        names.into_iter().flatten().cloned().collect()
    }

    /// Follows an event of a watch.
    pub fn follow<K: Resource<DynamicType = ()>>(&self, event: &Event<K>, owner_of: OwnerOf<K>) -> News {
        let mut entries = self.entries();
        match event {
            Event::Init => {
                entries.listed.clear();
                News::Nothing
            }
            Event::InitApply(object) => {
                entries.listed.insert(key_of(object), entry_of(object, owner_of));
                News::Nothing
            }
            Event::Apply(object) => {
                entries.set(key_of(object), entry_of(object, owner_of));
                News::OfTheEvent
            }
            Event::Delete(object) => {
                entries.remove(&key_of(object));
                News::OfTheEvent
            }
            Event::InitDone => News::OfTheList(entries.take_over_the_list()),
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn set(&mut self, key: Key, entry: Entry) {
        self.remove(&key);
        if let Some(owner) = &entry.owner {
            self.of_owner.entry((key.0.clone(), owner.clone())).or_default().insert(key.1.clone());
        }
        self.objects.insert(key, entry);
    }

    /// Returns what is new or has changed.
    fn take_over_the_list(&mut self) -> Vec<Key> {
        let listed = std::mem::take(&mut self.listed);
        let gone: Vec<Key> = self.objects.keys().filter(|key| !listed.contains_key(*key)).cloned().collect();
        for key in gone {
            self.remove(&key);
        }
        let changed = listed.into_iter().filter(|(key, entry)| self.objects.get(key) != Some(entry));
        let changed: Vec<(Key, Entry)> = changed.collect();
        let keys = changed.iter().map(|(key, _)| key.clone()).collect();
        for (key, entry) in changed {
            self.set(key, entry);
        }
        keys
    }

    fn remove(&mut self, key: &Key) {
        let Some(owner) = self.objects.remove(key).and_then(|entry| entry.owner) else { return };
        let of_owner = (key.0.clone(), owner);
        if let Some(names) = self.of_owner.get_mut(&of_owner) {
            names.remove(&key.1);
            if names.is_empty() {
                self.of_owner.remove(&of_owner);
            }
        }
    }
}

fn entry_of<K: Resource<DynamicType = ()>>(object: &K, owner_of: OwnerOf<K>) -> Entry {
    Entry { owner: owner_of(object), resource_version: object.resource_version().unwrap_or_default() }
}

fn key_of<K: Resource<DynamicType = ()>>(object: &K) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

#[cfg(test)]
mod tests {
    use etcd_operator_api::labels;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    fn pod(name: &str, cluster: &str, version: u32) -> Pod {
        let metadata = json!({
            "name": name, "namespace": "ns", "resourceVersion": version.to_string(),
            "labels": {labels::CLUSTER_NAME: cluster},
        });
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    fn follow(index: &Index, event: Event<Pod>) -> News {
        index.follow(&event, |pod| pod.labels().get(labels::CLUSTER_NAME).cloned())
    }

    #[test]
    fn objects_are_found_by_cluster_until_they_are_deleted_or_relabelled() {
        let index = Index::default();
        for name in ["c-0", "c-1"] {
            assert_eq!(follow(&index, Event::Apply(pod(name, "c", 1))), News::OfTheEvent);
        }
        assert_eq!(index.names_of("ns", "c"), ["c-0", "c-1"]);
        assert_eq!(index.names_of("other", "c"), [""; 0]);
        follow(&index, Event::Delete(pod("c-0", "c", 2)));
        follow(&index, Event::Apply(pod("c-1", "d", 3)));
        assert_eq!(index.names_of("ns", "c"), [""; 0]);
        assert_eq!(index.names_of("ns", "d"), ["c-1"]);
        assert_eq!(index.entries().of_owner.len(), 1, "nothing is left of what is gone");
    }

    /// The names that a list makes known.
    fn list(index: &Index, pods: [Pod; 2]) -> Vec<String> {
        follow(index, Event::Init);
        for pod in pods {
            assert_eq!(follow(index, Event::InitApply(pod)), News::Nothing, "it is not in the cache yet");
        }
        let News::OfTheList(mut news) = follow(index, Event::InitDone) else { panic!("the list is complete") };
        news.sort();
        news.into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn repeated_list_is_news_only_where_something_changed() {
        let index = Index::default();
        assert_eq!(list(&index, [pod("c-0", "c", 1), pod("c-1", "c", 2)]), ["c-0", "c-1"]);
        assert_eq!(list(&index, [pod("c-0", "c", 1), pod("c-1", "c", 3)]), ["c-1"]);
        assert_eq!(list(&index, [pod("c-0", "c", 1), pod("c-2", "c", 4)]), ["c-2"]);
        assert_eq!(index.names_of("ns", "c"), ["c-0", "c-2"], "c-1 was deleted while nobody watched");
    }

    #[test]
    fn list_that_is_given_up_half_way_hides_no_change_from_the_next_one() {
        let index = Index::default();
        list(&index, [pod("c-0", "c", 1), pod("c-1", "c", 2)]);
        follow(&index, Event::Init);
        follow(&index, Event::InitApply(pod("c-0", "c", 9)));
        assert_eq!(index.names_of("ns", "c"), ["c-0", "c-1"], "what is not complete counts for nothing");
        assert_eq!(list(&index, [pod("c-0", "c", 9), pod("c-1", "c", 2)]), ["c-0"]);
    }
}
