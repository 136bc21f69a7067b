//! What a container of ours says when it ends. The agent and the gate leave it as their termination message, as JSON, and
//! the operator reads it there. The gate in a pod is as old as the pod: earlier ones left plain text.

use serde::{Deserialize, Serialize};

use crate::gate::{MISCONFIGURED, REFUSED};
use crate::manifest::Manifest;

/// As much as Kubernetes keeps of a termination message.
pub const MAX_BYTES: usize = 4096;

/// The exit codes of the agent: it may succeed the next time, or never will.
pub const FAILED: u8 = 1;
pub const FAILED_FOR_GOOD: u8 = 2;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "camelCase")]
pub enum Report {
    Done(Box<Done>),
    Failed(Failure),
    /// The gate did not let its container go on.
    Refused(Refusal),
}

impl Report {
    /// The report as JSON, with less of what can be long if it would not fit: the kubelet would cut the end off, and what
    /// is left could not be read at all.
    pub fn into_json(mut self) -> String {
        loop {
            let words = serde_json::to_string(&self).unwrap_or_default();
            if words.len() <= MAX_BYTES || !shorten(&mut self, words.len() - MAX_BYTES) {
                return words;
            }
        }
    }
}

/// Makes it shorter by some of `excess` bytes; false if nothing in it can be shortened any more.
fn shorten(report: &mut Report, excess: usize) -> bool {
    match report {
        Report::Failed(failure) => cut(&mut failure.message, excess),
        Report::Refused(refusal) => cut(&mut refusal.message, excess),
        Report::Done(done) => {
            let pruned = done.pruned.as_mut();
            let of_pruned = pruned.is_some_and(|pruned| {
                pruned.would_delete.pop().is_some() || pruned.problem.as_mut().is_some_and(|words| cut(words, excess))
            });
            of_pruned || done.remark.as_mut().is_some_and(|words| cut(words, excess))
        }
    }
}

/// Leaves the beginning, which says what was being done. Half of it at least: what is escaped in JSON takes more bytes
/// there than here. So this may have to be repeated.
fn cut(words: &mut String, excess: usize) -> bool {
    const MORE: &str = " …";
    let whole = words.strip_suffix(MORE).unwrap_or(words).len();
    if whole == 0 {
        return false;
    }
    let mut end = whole.saturating_sub(excess + MORE.len()).max(whole / 2);
    while !words.is_char_boundary(end) {
        end -= 1;
    }
    words.truncate(end);
    words.push_str(MORE);
    true
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// The backup that was taken, checked, fetched or verified. A backup that was not taken by this operator has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Manifest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pruned: Option<Pruned>,
    /// For a backup without a manifest: what the file itself says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<SnapshotFile>,
    /// For people: what could not be compared when a backup was verified, or on what the gate lets etcd start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotFile {
    pub snapshot_size: u64,
    pub snapshot_sha256: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pruned {
    pub kept: u32,
    pub deleted: u32,
    /// In a dry run: what would have been deleted, as far as there is room to say so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub would_delete: Vec<String>,
    /// Why not everything could be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub reason: Reason,
    pub message: String,
}

/// The kinds of failure, as the status shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// The request makes no sense, for example a URL that is none.
    #[serde(alias = "BadOrder")]
    InvalidRequest,
    /// No member could be asked.
    EtcdUnreachable,
    /// The stream from etcd broke off, or its hash was wrong.
    BadStream,
    NoSuchBucket,
    NoSuchObject,
    AccessDenied,
    /// Something else is there already, which is never overwritten.
    ObjectExists,
    /// The bucket or the volume is full.
    NoSpace,
    StoreUnreachable,
    /// Any other answer of the store.
    StoreFailed,
    WrongKey,
    HashMismatch,
    WrongVersion,
    /// What was restored is not what the manifest says.
    #[serde(alias = "NotTheSame")]
    ContentMismatch,
    /// The pod was terminated before it finished.
    Stopped,
}

impl Reason {
    /// Whether another try could end otherwise, without anybody doing anything.
    pub fn may_pass(self) -> bool {
        matches!(
            self,
            Self::EtcdUnreachable
                | Self::BadStream
                | Self::StoreUnreachable
                | Self::StoreFailed
                | Self::NoSpace
                | Self::Stopped
        )
    }
}

/// Why the gate did not let etcd start, or a backup be restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    pub reason: RefusalReason,
    /// For people. It begins with the same words as that of earlier gates.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusalReason {
    /// The member's data is missing, unreadable or of another member.
    DataLost,
    /// The pod does not specify its member or whether it has data. No data is known to be lost.
    Misconfigured,
    /// Anything else, and what only later gates know: no data is known to be lost.
    #[serde(other)]
    Failed,
}

/// How messages of [`RefusalReason::Misconfigured`] began in gates of earlier operators.
const EARLIER_MISCONFIGURED: &str = "not told: ";

impl Refusal {
    /// A refusal with this message, the beginning of which tells the reason. It may be all that an earlier gate left.
    pub fn new(message: impl Into<String>) -> Self {
        let message = message.into();
        let begins_with = |prefix: &str| message.starts_with(prefix);
        let reason = if begins_with(REFUSED) {
            RefusalReason::DataLost
        } else if begins_with(MISCONFIGURED) || begins_with(EARLIER_MISCONFIGURED) {
            RefusalReason::Misconfigured
        } else {
            RefusalReason::Failed
        };
        Self { reason, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_is_written_with_its_reason() {
        let written = |message: &str| Report::Refused(Refusal::new(message)).into_json();
        let lost = r#"{"end":"refused","reason":"DataLost","message":"refused: its data is gone"}"#;
        assert_eq!(written("refused: its data is gone"), lost);
        let unclear = r#"{"end":"refused","reason":"Misconfigured","message":"misconfigured: x"}"#;
        assert_eq!(written("misconfigured: x"), unclear);
        assert_eq!(written("usage: x"), r#"{"end":"refused","reason":"Failed","message":"usage: x"}"#);
    }

    #[test]
    fn messages_of_earlier_gates_have_a_reason() {
        let reason = |message: &str| Refusal::new(message).reason;
        assert_eq!(reason("refused: its data is gone"), RefusalReason::DataLost);
        assert_eq!(["misconfigured: x", "not told: x"].map(reason), [RefusalReason::Misconfigured; 2]);
        assert_eq!(["panic: refused: x", "panic: not told: x"].map(reason), [RefusalReason::Failed; 2]);
    }

    /// Whatever a later gate may say, the operator must not take it for lost data.
    #[test]
    fn unknown_reason_of_a_refusal_means_no_lost_data() {
        let report = serde_json::from_str(r#"{"end":"refused","reason":"Later","message":"refused: x","more":1}"#);
        let refusal = Refusal { reason: RefusalReason::Failed, message: "refused: x".to_owned() };
        assert_eq!(report.ok(), Some(Report::Refused(refusal)));
    }

    /// The agent may be of an earlier version than the operator.
    #[test]
    fn reasons_of_earlier_agents_are_parsed() {
        let reason = |name: &str| serde_json::from_value::<Reason>(name.into()).unwrap();
        assert_eq!(["BadOrder", "NotTheSame"].map(reason), [Reason::InvalidRequest, Reason::ContentMismatch]);
    }

    fn read(words: &str) -> Report {
        assert!(words.len() <= MAX_BYTES, "{} bytes", words.len());
        serde_json::from_str(words).unwrap()
    }

    #[test]
    fn report_that_fits_is_unchanged() {
        let failure = Failure { reason: Reason::WrongKey, message: "x".repeat(MAX_BYTES - 100) };
        let report = Report::Failed(failure);
        assert_eq!(read(&report.clone().into_json()), report);
    }

    #[test]
    fn long_message_is_truncated_and_the_report_still_parses() {
        for long in ["x", "\"", "\u{1}", "ä", "…"] {
            let message = format!("writing s3://b/x.db: {}", long.repeat(5000));
            let Report::Failed(failure) =
                read(&Report::Failed(Failure { reason: Reason::StoreFailed, message }).into_json())
            else {
                panic!("it was a failure")
            };
            assert!(failure.message.starts_with("writing s3://b/x.db: "), "{}", failure.message);
            assert!(failure.message.ends_with(" …"), "{}", failure.message);
            assert!(failure.message.len() > 400, "{}", failure.message);
        }
    }

    #[test]
    fn list_of_backups_to_delete_is_truncated_to_fit() {
        let all: Vec<String> = (0..500).map(|n| format!("s3://backups/team/{n}.db")).collect();
        let pruned = Pruned { kept: 3, deleted: 0, would_delete: all.clone(), problem: Some("y".repeat(100)) };
        let report = Report::Done(Box::new(Done { pruned: Some(pruned), ..Done::default() }));
        let Report::Done(done) = read(&report.into_json()) else { panic!("it was done") };
        let pruned = done.pruned.unwrap();
        assert!(pruned.would_delete.len() > 100, "{}", pruned.would_delete.len());
        assert!(all.starts_with(&pruned.would_delete));
        assert_eq!(pruned.problem, Some("y".repeat(100)));
    }

    #[test]
    fn long_refusal_is_truncated_and_keeps_its_reason() {
        let report = read(&Report::Refused(Refusal::new(format!("{REFUSED}{}", "x".repeat(5000)))).into_json());
        let Report::Refused(refusal) = report else { panic!("it was a refusal") };
        assert_eq!(refusal.reason, RefusalReason::DataLost);
        assert!(refusal.message.starts_with(REFUSED) && refusal.message.ends_with(" …"), "{}", refusal.message);
    }
}
