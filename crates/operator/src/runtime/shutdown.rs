//! Detects that the process should stop.

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::info;

/// Informs every holder of a clone whether the process should stop.
#[derive(Clone)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// A shutdown that begins with SIGTERM or SIGINT.
    pub fn on_signals() -> anyhow::Result<Self> {
        let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
        let (begin, begun) = watch::channel(false);
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => info!("stopping, because of SIGTERM"),
                _ = interrupt.recv() => info!("stopping, because of SIGINT"),
            }
            begin.send_replace(true);
        });
        Ok(Self(begun))
    }

    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once the process should stop.
    pub async fn begun(&self) {
        // An error means that the sender is gone, which happens only when the runtime itself is being torn down.
        let _ = self.0.clone().wait_for(|begun| *begun).await;
    }
}
