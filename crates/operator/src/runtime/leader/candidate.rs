//! A process that is a candidate for the leadership.

use std::hash::{BuildHasher, RandomState};
use std::time::Instant;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use tokio::time::sleep;
use tracing::{info, warn};

use super::LOOK_EVERY;
use super::decide::{Decision, Sighting, what_to_do};
use super::leadership::Leadership;
use super::leases::{Error, Leases};
use super::record;

pub struct Candidate {
    leases: Leases,
    identity: String,
}

impl Candidate {
    pub fn new(client: Client, namespace: String) -> Self {
        Self { leases: Leases::new(client, &namespace), identity: identity() }
    }

    /// Waits until this process is the leader. Calls `on_contact` whenever the API server has answered.
    pub async fn win(self, on_contact: impl Fn()) -> Leadership {
        info!(identity = self.identity, "waiting to become the leader");
        let mut seen = None;
        loop {
            match self.look_once(&mut seen).await {
                Ok(Some(leadership)) => return leadership,
                Ok(None) => on_contact(),
                Err(Error::WrittenByAnother) => info!("another process was faster to become the leader"),
                Err(error) => warn!(%error, "cannot take part in the election"),
            }
            sleep(LOOK_EVERY).await;
        }
    }

    async fn look_once(&self, seen: &mut Option<Sighting>) -> Result<Option<Leadership>, Error> {
        let lease = self.leases.read().await?;
        let now = Instant::now();
        let sighting = Sighting::after(seen.clone(), lease.spec.clone().unwrap_or_default(), now);
        if seen.as_ref().is_none_or(|seen| seen.holder() != sighting.holder()) {
            info!(leader = sighting.holder().unwrap_or("none"), "observed leader");
        }
        let decision = what_to_do(&sighting, &self.identity, now);
        *seen = Some(sighting);
        match decision {
            Decision::Wait => Ok(None),
            Decision::Acquire | Decision::Renew => self.take(lease).await.map(Some),
        }
    }

    async fn take(&self, lease: Lease) -> Result<Leadership, Error> {
        let sent = Instant::now();
        let record = record::held(&lease.spec.clone().unwrap_or_default(), &self.identity, record::wall_clock());
        let lease = self.leases.write(&lease, record).await?;
        info!(identity = self.identity, "leading");
        Ok(Leadership::new(self.leases.clone(), self.identity.clone(), lease, sent))
    }
}

/// The pod's name, and a random part so that no two processes have the same identity, not even in the same pod.
fn identity() -> String {
    let name =
        std::env::var("POD_NAME").or_else(|_| std::env::var("HOSTNAME")).unwrap_or_else(|_| "etcd-operator".into());
    format!("{name}_{:016x}", RandomState::new().hash_one(()))
}
