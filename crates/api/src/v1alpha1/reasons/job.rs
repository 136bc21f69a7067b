//! Why the Job of an agent failed.

use etcd_operator_protocol::report;

reasons! {
    /// Why the work of a Job failed: taking a backup, proving it, reading it before a restore, or deleting stored backups.
    /// If nobody else says why, it is a word of Kubernetes, of the Job or of the container, such as `OOMKilled`.
    pub enum JobFailureReason {
        /// The request makes no sense: a URL, a template, a region, the address of a cluster. Also if that was noticed
        /// before there was a Job.
        InvalidRequest,
        /// No member could be asked.
        EtcdUnreachable,
        /// The snapshot broke off, or its hash was wrong.
        BadStream,
        /// There is no such bucket.
        NoSuchBucket,
        /// There is no such backup.
        NoSuchObject,
        /// The store refuses the credentials.
        AccessDenied,
        /// Something else is stored under that name, and is never overwritten.
        ObjectExists,
        /// The bucket or the volume is full.
        NoSpace,
        /// The store does not answer.
        StoreUnreachable,
        /// Any other answer of the store.
        StoreFailed,
        /// The key does not open the backup.
        WrongKey,
        /// What is stored is not what was written there.
        HashMismatch,
        /// This version of etcd can't restore the backup.
        WrongVersion,
        /// What was restored is not what the manifest says.
        ContentMismatch,
        /// The pod was terminated before it finished.
        Stopped,
        /// All tries together took longer than the deadline. Kubernetes has the same word for it.
        DeadlineExceeded,
        /// The pod could not start for too long: a Secret, an image or a node is missing.
        PodCannotStart,
        /// The Job failed, and nothing says why.
        Failed,
        /// A container ended with an error, and nothing says why. Kubernetes has the same word for it.
        Error,
    }
}

/// The agent's own words. A Job may be run by an agent of another version, so this is not the place to rename one.
impl From<report::Reason> for JobFailureReason {
    fn from(reason: report::Reason) -> Self {
        match reason {
            report::Reason::InvalidRequest => JobFailureReason::InvalidRequest,
            report::Reason::EtcdUnreachable => JobFailureReason::EtcdUnreachable,
            report::Reason::BadStream => JobFailureReason::BadStream,
            report::Reason::NoSuchBucket => JobFailureReason::NoSuchBucket,
            report::Reason::NoSuchObject => JobFailureReason::NoSuchObject,
            report::Reason::AccessDenied => JobFailureReason::AccessDenied,
            report::Reason::ObjectExists => JobFailureReason::ObjectExists,
            report::Reason::NoSpace => JobFailureReason::NoSpace,
            report::Reason::StoreUnreachable => JobFailureReason::StoreUnreachable,
            report::Reason::StoreFailed => JobFailureReason::StoreFailed,
            report::Reason::WrongKey => JobFailureReason::WrongKey,
            report::Reason::HashMismatch => JobFailureReason::HashMismatch,
            report::Reason::WrongVersion => JobFailureReason::WrongVersion,
            report::Reason::ContentMismatch => JobFailureReason::ContentMismatch,
            report::Reason::Stopped => JobFailureReason::Stopped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_of_the_agent_keeps_its_word() {
        let of_agent = |word: &JobFailureReason| serde_json::from_value::<report::Reason>(word.as_str().into()).ok();
        let said: Vec<_> = JobFailureReason::ALL.iter().filter_map(|word| Some((of_agent(word)?, *word))).collect();
        assert_eq!(said.len(), JobFailureReason::ALL.len() - 4, "the last four are those of the Job: {said:?}");
        for (reason, word) in said {
            assert_eq!(JobFailureReason::from(reason), word);
        }
    }
}
