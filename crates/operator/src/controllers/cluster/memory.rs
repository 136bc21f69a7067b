//! What only this process knows about each cluster, behind one lookup. All of it may be lost: a new process observes it
//! again, which costs time and nothing else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use etcd_operator_core::cluster::health_history::HealthHistory;

use super::corruption_check::LastCheck;
use super::ensure::Applied;

/// By namespace and name of the cluster.
#[derive(Default)]
pub struct Memories(Mutex<HashMap<(String, String), Arc<Memory>>>);

/// What is known about one cluster.
#[derive(Default)]
pub struct Memory {
    /// Since when members have been unhealthy.
    health_history: Mutex<HealthHistory>,
    /// The last comparison of the members' data.
    last_check: Mutex<Option<LastCheck>>,
    /// What was last applied of the objects that every cluster has.
    applied: Mutex<Applied>,
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

    pub fn last_check(&self) -> MutexGuard<'_, Option<LastCheck>> {
        lock(&self.last_check)
    }

    pub fn applied(&self) -> MutexGuard<'_, Applied> {
        lock(&self.applied)
    }
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}
