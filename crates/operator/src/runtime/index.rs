//! An index of cached objects by what they belong to (a pod to a cluster, say), so that no reconcile scans a cache.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt};

/// A namespace and a name in it.
type Key = (String, String);

/// What an object belongs to, by name, if to anything. It is in the same namespace.
pub type OwnerOf<K> = fn(&K) -> Option<String>;

#[derive(Default)]
pub struct Index(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    objects: HashMap<Key, Entry>,
    /// The names of the objects that belong to something.
    of_owner: HashMap<Key, BTreeSet<String>>,
    /// What a list that is not complete yet has named so far.
    listed: HashSet<Key>,
}

struct Entry {
    owner: Option<String>,
    resource_version: String,
}

impl Index {
    /// The names of the objects that belong to an owner.
    pub fn names_of(&self, namespace: &str, owner: &str) -> Vec<String> {
        let entries = self.entries();
        let names = entries.of_owner.get(&(namespace.to_owned(), owner.to_owned()));
        names.into_iter().flatten().cloned().collect()
    }

    /// Follows an event of a watch. Returns whether it is news: a list that is repeated after an interruption names
    /// objects that have not changed.
    pub fn follow<K: Resource<DynamicType = ()>>(&self, event: &Event<K>, owner_of: OwnerOf<K>) -> bool {
        let mut entries = self.entries();
        match event {
            Event::Init => {
                entries.listed.clear();
                false
            }
            Event::InitApply(object) => {
                entries.listed.insert(key_of(object));
                entries.set(object, owner_of(object))
            }
            Event::Apply(object) => {
                entries.set(object, owner_of(object));
                true
            }
            Event::Delete(object) => {
                entries.remove(&key_of(object));
                true
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut entries.listed);
                let gone: Vec<Key> = entries.objects.keys().filter(|key| !listed.contains(*key)).cloned().collect();
                for key in gone {
                    entries.remove(&key);
                }
                false
            }
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    /// Returns whether the object is new or has changed.
    fn set<K: Resource<DynamicType = ()>>(&mut self, object: &K, owner: Option<String>) -> bool {
        let key = key_of(object);
        let resource_version = object.resource_version().unwrap_or_default();
        let known = self.objects.get(&key);
        if known.is_some_and(|known| known.resource_version == resource_version && known.owner == owner) {
            return false;
        }
        self.remove(&key);
        if let Some(owner) = &owner {
            self.of_owner.entry((key.0.clone(), owner.clone())).or_default().insert(key.1.clone());
        }
        self.objects.insert(key, Entry { owner, resource_version });
        true
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

    fn follow(index: &Index, event: Event<Pod>) -> bool {
        index.follow(&event, |pod| pod.labels().get(labels::CLUSTER_NAME).cloned())
    }

    #[test]
    fn objects_are_found_by_cluster_until_they_are_deleted_or_relabelled() {
        let index = Index::default();
        for name in ["c-0", "c-1"] {
            assert!(follow(&index, Event::Apply(pod(name, "c", 1))));
        }
        assert_eq!(index.names_of("ns", "c"), ["c-0", "c-1"]);
        assert_eq!(index.names_of("other", "c"), [""; 0]);
        follow(&index, Event::Delete(pod("c-0", "c", 2)));
        follow(&index, Event::Apply(pod("c-1", "d", 3)));
        assert_eq!(index.names_of("ns", "c"), [""; 0]);
        assert_eq!(index.names_of("ns", "d"), ["c-1"]);
        assert_eq!(index.entries().of_owner.len(), 1, "nothing is left of what is gone");
    }

    #[test]
    fn repeated_list_is_news_only_where_something_changed() {
        let index = Index::default();
        let list = |pods: [Pod; 2]| {
            follow(&index, Event::Init);
            let news = pods.map(|pod| follow(&index, Event::InitApply(pod)));
            follow(&index, Event::InitDone);
            news
        };
        assert_eq!(list([pod("c-0", "c", 1), pod("c-1", "c", 2)]), [true, true]);
        assert_eq!(list([pod("c-0", "c", 1), pod("c-1", "c", 3)]), [false, true]);
        assert_eq!(list([pod("c-0", "c", 1), pod("c-2", "c", 4)]), [false, true]);
        assert_eq!(index.names_of("ns", "c"), ["c-0", "c-2"], "c-1 was deleted while nobody watched");
    }
}
