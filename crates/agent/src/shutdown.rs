//! Noticing that the pod should end.

use std::future::Future;

use etcd_operator_protocol::report::{Failure, Reason};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Tells whether the pod should end, from when on nothing new is begun.
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// It begins with SIGTERM or SIGINT.
    pub fn on_signals() -> Result<Self, Failure> {
        let listening = |e| Failure { reason: Reason::Stopped, message: format!("listening for signals: {e}") };
        let mut terminate = signal(SignalKind::terminate()).map_err(listening)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(listening)?;
        let (begin, begun) = watch::channel(false);
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            begin.send_replace(true);
        });
        Ok(Self(begun))
    }

    /// Does this, and drops it where it is when the pod should end.
    pub async fn before<A>(&self, work: impl Future<Output = Result<A, Failure>>) -> Result<A, Failure> {
        let mut begun = self.0.clone();
        tokio::select! {
            biased;
            // An error means that the sender is gone, which happens only when the runtime itself is being torn down.
            _ = begun.wait_for(|begun| *begun) => {
                Err(Failure { reason: Reason::Stopped, message: "the pod was terminated before it finished".into() })
            }
            outcome = work => outcome,
        }
    }
}
