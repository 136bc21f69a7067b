//! Errors of the API server, and how they are worded in the log and in messages.

use etcd_operator_errors::with_causes;

/// A request to the API server that failed, and what it was for.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {}", describe(.source))]
pub struct ApiError {
    pub doing: String,
    pub source: Box<kube::Error>,
}

impl ApiError {
    /// For `map_err`: the operation that failed.
    pub fn doing(doing: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let doing = doing.into();
        move |source| ApiError { doing, source: Box::new(source) }
    }
}

/// What went wrong, in a sentence: the message of the API server alone rather than its whole response.
pub fn describe(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => with_causes(other),
    }
}
