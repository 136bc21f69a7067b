//! Leader election: of several operators that run concurrently, at most one is active.
//!
//! The leader holds the Lease `etcd-operator`. It renews the lease every [`RENEW_EVERY`]; if it can't for
//! [`GIVE_UP_AFTER`], the process exits. Another process may take over once it has observed no renewal for
//! [`LEASE_DURATION`]. Since the first time is shorter than the second, both measured by monotonic clocks, the old
//! leader is gone before the new one starts.

mod candidate;
mod decide;
mod leadership;
mod leases;
mod record;
mod watchdog;

use std::time::Duration;

use anyhow::bail;

pub use candidate::Candidate;

const LEASE_NAME: &str = "etcd-operator";
const LEASE_DURATION: Duration = Duration::from_secs(12);
const GIVE_UP_AFTER: Duration = Duration::from_secs(8);
const RENEW_EVERY: Duration = Duration::from_secs(2);
/// How often a process that is not the leader reads the lease.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The namespace in which the operator itself runs and has its lease.
pub fn own_namespace() -> anyhow::Result<String> {
    let from_env = std::env::var("POD_NAMESPACE").unwrap_or_default();
    let from_file = || std::fs::read_to_string(NAMESPACE_FILE).unwrap_or_default();
    let namespace = if from_env.is_empty() { from_file().trim().to_string() } else { from_env };
    if namespace.is_empty() {
        bail!(
            "the namespace for the lease of leader election is unknown: set the environment variable POD_NAMESPACE to \
             it, or switch leader election off with --enable-leader-election=false"
        );
    }
    Ok(namespace)
}
