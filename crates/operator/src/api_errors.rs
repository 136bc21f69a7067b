//! How errors of the API server are worded in the log and in messages.

use etcd_operator_errors::with_causes;

/// What went wrong, in a sentence: the message of the API server alone rather than its whole response.
pub fn describe(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => with_causes(other),
    }
}
