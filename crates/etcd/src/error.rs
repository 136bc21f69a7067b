//! Why a call to a member failed, in the terms in which a caller decides what to do next.

use std::error::Error as _;
use std::time::Duration;

use etcd_operator_errors::with_causes;
use tonic::{Code, Status};

/// A call that failed: what was being done, to whom, and why it failed.
#[derive(Debug, thiserror::Error)]
#[error("{doing} at {endpoint}: {cause}")]
pub struct Error {
    pub endpoint: String,
    pub doing: String,
    pub cause: Cause,
}

/// Why a call failed. After `Unreachable`, `TimedOut` and `NoConsensus` a change may have happened or may still
/// happen: list the members before trying again.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// No connection, or it broke.
    #[error("no answer: {0}")]
    Unreachable(String),
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The member answered that the cluster could not agree: no leader, a change of leaders, or too slow.
    #[error("the cluster did not agree: {0}")]
    NoConsensus(String),
    /// etcd refuses to change the membership while too few voters are connected or started.
    #[error("the membership cannot be changed now: {0}")]
    Unhealthy(String),
    /// Normal for a while after a learner was added: try again later.
    #[error("the learner has not caught up with the leader")]
    NotInSync,
    /// It was promoted already, perhaps by a call whose answer got lost.
    #[error("the member is no learner")]
    NotALearner,
    #[error("the cluster has as many learners as it takes")]
    TooManyLearners,
    #[error("there is no such member")]
    MemberNotFound,
    /// A member with this peer URL or ID exists, perhaps from a call whose answer got lost.
    #[error("the member exists: {0}")]
    ExistsAlready(String),
    /// Only the leader can do this.
    #[error("this member is not the leader")]
    NotLeader,
    /// Learners answer little: not even all that needs no agreement.
    #[error("this member is a learner")]
    IsLearner,
    #[error("the revision was compacted away")]
    Compacted,
    /// Normal for a member that is behind the others: it does not have this revision yet.
    #[error("the revision is in the future")]
    FutureRevision,
    /// Only the minor version right below the cluster's version can be downgraded to. While a downgrade is in progress
    /// the cluster's version changes, and for some seconds after one was cancelled it is still the lower one.
    #[error("the cluster cannot be downgraded to this version: {0}")]
    BadDowngradeTarget(String),
    #[error("a downgrade is in progress")]
    DowngradeInProgress,
    #[error("no downgrade is in progress")]
    NoDowngrade,
    #[error("{0}")]
    Other(String),
}

/// Which cause does etcd's answer stand for? Several causes share a code, so those are told apart by etcd's message;
/// the code alone decides what is unambiguous.
pub(crate) fn cause_of(status: &Status, deadline: Duration) -> Cause {
    // Only a status that was made on this side has a source: the connection's own error.
    if let Some(source) = status.source() {
        return Cause::Unreachable(with_causes(source));
    }
    let message = status.message().strip_prefix("etcdserver: ").unwrap_or(status.message());
    match (status.code(), message) {
        // The code differs from version to version.
        (_, "rpc not supported for learner") => Cause::IsLearner,
        (Code::DeadlineExceeded, _) => Cause::TimedOut(deadline),
        (Code::NotFound, "member not found") => Cause::MemberNotFound,
        (Code::FailedPrecondition, "can only promote a learner member which is in sync with leader") => {
            Cause::NotInSync
        }
        (Code::FailedPrecondition, "can only promote a learner member") => Cause::NotALearner,
        (Code::FailedPrecondition, "too many learner members in cluster") => Cause::TooManyLearners,
        (Code::FailedPrecondition, "not leader") => Cause::NotLeader,
        (Code::FailedPrecondition, "Peer URLs already exists" | "member ID already exist") => {
            Cause::ExistsAlready(message.into())
        }
        (Code::FailedPrecondition, "re-configuration failed due to not enough started members")
        | (Code::Unavailable, "unhealthy cluster") => Cause::Unhealthy(message.into()),
        (Code::OutOfRange, "mvcc: required revision has been compacted") => Cause::Compacted,
        (Code::OutOfRange, "mvcc: required revision is a future revision") => Cause::FutureRevision,
        (Code::InvalidArgument, "invalid downgrade target version" | "wrong downgrade target version format") => {
            Cause::BadDowngradeTarget(message.into())
        }
        (Code::FailedPrecondition, "cluster has a downgrade job in progress") => Cause::DowngradeInProgress,
        (Code::FailedPrecondition, "no inflight downgrade job") => Cause::NoDowngrade,
        // Here too the code differs from version to version.
        (_, "cluster version not found during downgrade") => Cause::NoConsensus(message.into()),
        (Code::Unavailable, "no leader" | "leader changed") => Cause::NoConsensus(message.into()),
        (Code::Unavailable, m) if m.starts_with("request timed out") => Cause::NoConsensus(message.into()),
        // A member that shuts down, or a proxy in front of one.
        (Code::Unavailable, _) => Cause::Unreachable(message.into()),
        (code, _) => Cause::Other(format!("{message} ({code:?})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_secs(3);

    fn cause(code: Code, message: &str) -> Cause {
        cause_of(&Status::new(code, message), DEADLINE)
    }

    #[test]
    fn etcd_errors_are_mapped_to_causes() {
        let precondition = |message| cause(Code::FailedPrecondition, message);
        assert_eq!(
            precondition("etcdserver: can only promote a learner member which is in sync with leader"),
            Cause::NotInSync
        );
        assert_eq!(precondition("etcdserver: can only promote a learner member"), Cause::NotALearner);
        assert_eq!(precondition("etcdserver: too many learner members in cluster"), Cause::TooManyLearners);
        assert_eq!(precondition("etcdserver: not leader"), Cause::NotLeader);
        assert!(matches!(precondition("etcdserver: Peer URLs already exists"), Cause::ExistsAlready(_)));
        assert!(matches!(
            precondition("etcdserver: re-configuration failed due to not enough started members"),
            Cause::Unhealthy(_)
        ));
        assert!(matches!(precondition("etcdserver: bad leader transferee"), Cause::Other(_)));

        let unavailable = |message| cause(Code::Unavailable, message);
        assert!(matches!(unavailable("etcdserver: unhealthy cluster"), Cause::Unhealthy(_)));
        assert!(matches!(unavailable("etcdserver: no leader"), Cause::NoConsensus(_)));
        assert!(matches!(
            unavailable("etcdserver: request timed out, possibly due to connection lost"),
            Cause::NoConsensus(_)
        ));
        assert!(matches!(unavailable("etcdserver: server stopped"), Cause::Unreachable(_)));
        for code in [Code::Unavailable, Code::FailedPrecondition] {
            assert_eq!(cause(code, "etcdserver: rpc not supported for learner"), Cause::IsLearner);
        }

        let out_of_range = |message| cause(Code::OutOfRange, message);
        assert_eq!(out_of_range("etcdserver: mvcc: required revision has been compacted"), Cause::Compacted);
        assert_eq!(out_of_range("etcdserver: mvcc: required revision is a future revision"), Cause::FutureRevision);
        assert!(matches!(out_of_range("something else"), Cause::Other(_)));

        let invalid = |message| cause(Code::InvalidArgument, message);
        assert!(matches!(invalid("etcdserver: invalid downgrade target version"), Cause::BadDowngradeTarget(_)));
        assert!(matches!(invalid("etcdserver: wrong downgrade target version format"), Cause::BadDowngradeTarget(_)));
        assert!(matches!(invalid("etcdserver: key is not provided"), Cause::Other(_)));
        assert_eq!(precondition("etcdserver: cluster has a downgrade job in progress"), Cause::DowngradeInProgress);
        assert_eq!(precondition("etcdserver: no inflight downgrade job"), Cause::NoDowngrade);
        for code in [Code::Unavailable, Code::FailedPrecondition] {
            let no_version = cause(code, "etcdserver: cluster version not found during downgrade");
            assert!(matches!(no_version, Cause::NoConsensus(_)));
        }

        assert_eq!(cause(Code::NotFound, "etcdserver: member not found"), Cause::MemberNotFound);
        assert_eq!(cause(Code::DeadlineExceeded, "context deadline exceeded"), Cause::TimedOut(DEADLINE));
        assert!(matches!(cause(Code::PermissionDenied, "etcdserver: permission denied"), Cause::Other(_)));
    }

    #[test]
    fn error_names_request_address_and_cause() {
        let error = Error {
            endpoint: "http://10.0.0.1:2379".into(),
            doing: "promoting member 2a".into(),
            cause: Cause::TimedOut(DEADLINE),
        };
        assert_eq!(error.to_string(), "promoting member 2a at http://10.0.0.1:2379: no answer within 3s");
    }
}
