//! A process that is the leader.

use std::convert::Infallible;
use std::time::Instant;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use super::leases::{Error, Leases};
use super::watchdog::{Watchdog, end_process};
use super::{GIVE_UP_AFTER, RENEW_EVERY, record};

pub struct Leadership {
    leases: Leases,
    identity: String,
    /// The lease as it was last written or read.
    lease: Lease,
    watchdog: Watchdog,
}

impl Leadership {
    /// `sent` is when the request that acquired the lease was sent: the lease may have started at that moment.
    pub(super) fn new(leases: Leases, identity: String, lease: Lease, sent: Instant) -> Self {
        Self { leases, identity, lease, watchdog: Watchdog::start(sent + GIVE_UP_AFTER) }
    }

    /// Renews the lease for as long as it is polled. If the leadership is lost, the process exits.
    pub async fn keep(&mut self) -> Infallible {
        let mut ticks = interval(RENEW_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let sent = Instant::now();
            match self.renew().await {
                Ok(()) => self.watchdog.extend(sent + GIVE_UP_AFTER),
                Err(error) => warn!(%error, "cannot renew the lease, trying again"),
            }
        }
    }

    /// Releases the leadership, so that another process can acquire it at once.
    pub async fn release(mut self) {
        match self.write(record::released).await {
            Ok(()) => info!(identity = self.identity, "not leading any more"),
            Err(error) => warn!(%error, "cannot release the lease, it will expire by itself"),
        }
        self.watchdog.stop();
    }

    async fn renew(&mut self) -> Result<(), Error> {
        let me = self.identity.clone();
        self.write(|previous| record::held(previous, &me, record::wall_clock())).await
    }

    /// Writes the lease. If it has changed since it was last read, checks whether this process still holds it and
    /// retries once: the change may have been our own write, whose response was lost.
    async fn write(&mut self, new: impl Fn(&LeaseSpec) -> LeaseSpec) -> Result<(), Error> {
        match self.leases.write(&self.lease, new(&self.record())).await {
            Err(Error::WrittenByAnother) => {
                self.lease = self.leases.read().await?;
                let holder = self.record().holder_identity.unwrap_or_default();
                if holder != self.identity {
                    end_process(format!("the lease was taken by {holder:?}"));
                }
                self.lease = self.leases.write(&self.lease, new(&self.record())).await?;
            }
            written => self.lease = written?,
        }
        Ok(())
    }

    fn record(&self) -> LeaseSpec {
        self.lease.spec.clone().unwrap_or_default()
    }
}
