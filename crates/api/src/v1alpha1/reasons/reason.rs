//! A reason as it is written and read, whichever enum it is of.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reason of a condition, of an event or in a status. It is made from a variant of an enum. What was stored may be a
/// word of an earlier or later operator, and Kubernetes has words of its own: these are kept as they are.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Reason(Cow<'static, str>);

impl Reason {
    /// A word that somebody else chose: Kubernetes, or whoever wrote a status.
    pub fn verbatim(word: impl Into<String>) -> Self {
        Reason(Cow::Owned(word.into()))
    }

    /// Only for the enums.
    pub(super) const fn of(word: &'static str) -> Self {
        Reason(Cow::Borrowed(word))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BackupReason, JobFailureReason};
    use super::*;

    #[test]
    fn reason_is_stored_as_its_word_and_equals_itself_when_read_back() {
        let reason = Reason::from(BackupReason::ClusterNotReady);
        let stored = serde_json::to_string(&reason).unwrap();
        assert_eq!(stored, r#""ClusterNotReady""#);
        let read: Reason = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, reason);
        assert!(read == BackupReason::ClusterNotReady && read != JobFailureReason::Failed);
    }

    #[test]
    fn word_of_another_version_is_read_and_written_as_it_is() {
        let read: Reason = serde_json::from_str(r#""LaterWord""#).unwrap();
        assert_eq!(read, Reason::verbatim("LaterWord"));
        assert_eq!(serde_json::to_string(&read).unwrap(), r#""LaterWord""#);
    }
}
