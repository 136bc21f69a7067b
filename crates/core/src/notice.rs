//! What is worth an event.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub is_bad: bool,
    pub reason: String,
    /// The name of the object that it is about, if that is not the one that is reconciled.
    pub about: Option<String>,
    pub note: String,
}

impl Notice {
    /// Something was done.
    pub fn good(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Notice { is_bad: false, reason: reason.into(), about: None, note: note.into() }
    }

    /// Something failed.
    pub fn bad(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Notice { is_bad: true, ..Notice::good(reason, note) }
    }
}
