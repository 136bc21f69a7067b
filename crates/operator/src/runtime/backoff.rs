//! How long to wait after a failed reconcile: longer each time, for each object separately.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// Namespace and name of an object.
type Key = (String, String);

#[derive(Default)]
pub struct Backoff {
    failures: Mutex<HashMap<Key, u32>>,
}

impl Backoff {
    /// Counts a failure and returns how long to wait.
    pub fn after_failure(&self, namespace: &str, name: &str) -> Duration {
        let mut failures = self.failures();
        let count = failures.entry((namespace.into(), name.into())).or_default();
        *count += 1;
        delay_after(*count)
    }

    /// Forgets the failures of an object that succeeded or is gone.
    pub fn forget(&self, namespace: &str, name: &str) {
        self.failures().remove(&(namespace.into(), name.into()));
    }

    fn failures(&self) -> MutexGuard<'_, HashMap<Key, u32>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn delay_after(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    FIRST.saturating_mul(1 << doublings).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_a_minute() {
        let waits: Vec<u64> = (1..=8).map(|failures| delay_after(failures).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(delay_after(u32::MAX), LONGEST);
    }

    #[test]
    fn each_object_waits_for_itself() {
        let backoff = Backoff::default();
        assert_eq!(backoff.after_failure("a", "c").as_secs(), 1);
        assert_eq!(backoff.after_failure("a", "c").as_secs(), 2);
        assert_eq!(backoff.after_failure("b", "c").as_secs(), 1);
        backoff.forget("a", "c");
        assert_eq!(backoff.after_failure("a", "c").as_secs(), 1);
    }
}
