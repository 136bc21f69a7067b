//! Why a reconcile of a cluster fails.

use etcd_operator_etcd::Cause;

use crate::runtime::api_errors::describe;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{doing}: {}", describe(.source))]
    Api { doing: String, source: Box<kube::Error> },
    #[error("{doing}: {source}")]
    Etcd { doing: String, source: Box<etcd_operator_etcd::Error> },
    /// The state has changed since the plan was made. The next reconcile makes another plan.
    #[error("{0}, so the plan is out of date")]
    OutOfDate(String),
    /// etcd reports that it is too early: it requires the members to have been connected for some seconds before a
    /// change.
    #[error("{0}")]
    TooEarly(String),
    #[error("{0}")]
    Impossible(String),
}

pub fn api_error(doing: impl Into<String>, error: kube::Error) -> Error {
    Error::Api { doing: doing.into(), source: Box::new(error) }
}

pub fn etcd_error(doing: String, error: etcd_operator_etcd::Error) -> Error {
    match error.cause {
        Cause::Unhealthy(why) => Error::TooEarly(format!("{doing}: {why}")),
        _ => Error::Etcd { doing, source: Box::new(error) },
    }
}
