//! What this process remembers of each cluster from one reconcile to the next.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use etcd_operator_core::health_history::HealthHistory;
use etcd_operator_core::observed::Observed;

/// By namespace and name of the cluster.
#[derive(Default)]
pub struct HealthHistories(Mutex<HashMap<(String, String), HealthHistory>>);

impl HealthHistories {
    /// Adds what is remembered to an observation, and remembers that as well.
    pub fn keep(&self, observed: &mut Observed) {
        let key = (observed.names.namespace.clone(), observed.names.cluster.clone());
        self.all().entry(key).or_default().keep(observed);
    }

    /// Forgets a cluster that is gone.
    pub fn forget(&self, namespace: &str, cluster: &str) {
        self.all().remove(&(namespace.to_owned(), cluster.to_owned()));
    }

    fn all(&self) -> MutexGuard<'_, HashMap<(String, String), HealthHistory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
