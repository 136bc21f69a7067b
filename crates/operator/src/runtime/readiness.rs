//! Whether the process is ready, and if not, what it is waiting for.

use tokio::sync::watch;

pub struct Readiness(watch::Sender<Option<&'static str>>);

impl Readiness {
    pub fn waiting_for(what: &'static str) -> Self {
        Self(watch::Sender::new(Some(what)))
    }

    pub fn set_waiting_for(&self, what: &'static str) {
        self.0.send_replace(Some(what));
    }

    pub fn set_ready(&self) {
        self.0.send_replace(None);
    }

    /// What the process waits for; `None` if ready.
    pub fn missing(&self) -> Option<&'static str> {
        *self.0.borrow()
    }
}
