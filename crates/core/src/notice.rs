//! What is worth an event.

use etcd_operator_api::{Announced, Reason, Severity};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub severity: Severity,
    pub reason: Reason,
    /// The name of the object that it is about, if that is not the one that is reconciled.
    pub about: Option<String>,
    pub note: String,
}

impl Notice {
    pub fn of(reason: impl Announced, note: impl Into<String>) -> Self {
        Notice { severity: reason.severity(), reason: reason.into(), about: None, note: note.into() }
    }

    /// The same, about the object of this name.
    pub fn about(self, name: impl Into<String>) -> Self {
        Notice { about: Some(name.into()), ..self }
    }

    /// Something failed for a reason that is the same in a condition. It may be a word of Kubernetes.
    pub fn of_failure(reason: Reason, note: impl Into<String>) -> Self {
        Notice { severity: Severity::Warning, reason, about: None, note: note.into() }
    }
}
