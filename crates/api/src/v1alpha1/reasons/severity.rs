//! Which events are warnings: that follows from what they say.

use super::Reason;

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Normal,
    Warning,
}

/// A reason that events have.
pub trait Announced: Into<Reason> {
    fn severity(&self) -> Severity;
}
