//! What only this process knows about each cluster, behind one lookup. All of it may be lost: a new process observes it
//! again, which costs time and nothing else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use etcd_operator_core::cluster::corruption_history::CorruptionHistory;
use etcd_operator_core::cluster::health_history::HealthHistory;

/// By namespace and name of the cluster.
#[derive(Default)]
pub struct Memories(Mutex<HashMap<(String, String), Arc<Memory>>>);

/// What is known about one cluster.
#[derive(Default)]
pub struct Memory {
    /// Since when members have been unhealthy.
    health_history: Mutex<HealthHistory>,
    /// The comparisons of the members' data.
    corruption_history: Mutex<CorruptionHistory>,
    /// What was last applied of the objects that every cluster has.
    applied: Mutex<Applied>,
}

/// What was last applied of each object of a cluster, and the resulting resource version. As long as the cache shows
/// that version, no other client has changed the object and there is nothing to do.
#[derive(Default)]
pub struct Applied(HashMap<Key, (u64, String)>);

/// Kind and name of the object.
pub type Key = (String, String);

impl Applied {
    pub fn is_current(&self, key: &Key, wanted: u64, version: Option<&str>) -> bool {
        self.0.get(key).is_some_and(|(hash, applied)| *hash == wanted && Some(applied.as_str()) == version)
    }

    pub fn remember(&mut self, key: Key, wanted: u64, version: Option<String>) {
        self.0.insert(key, (wanted, version.unwrap_or_default()));
    }
}

impl Memories {
    pub fn of(&self, namespace: &str, cluster: &str) -> Arc<Memory> {
        lock(&self.0).entry((namespace.to_owned(), cluster.to_owned())).or_default().clone()
    }

    /// Forgets a cluster that is gone.
    pub fn forget(&self, namespace: &str, cluster: &str) {
        lock(&self.0).remove(&(namespace.to_owned(), cluster.to_owned()));
    }
}

impl Memory {
    pub fn health_history(&self) -> MutexGuard<'_, HealthHistory> {
        lock(&self.health_history)
    }

    pub fn corruption_history(&self) -> MutexGuard<'_, CorruptionHistory> {
        lock(&self.corruption_history)
    }

    pub fn applied(&self) -> MutexGuard<'_, Applied> {
        lock(&self.applied)
    }
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}
