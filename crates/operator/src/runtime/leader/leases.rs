//! Reads and writes the lease.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::timeout;

use super::{LEASE_NAME, REQUEST_TIMEOUT};
use crate::runtime::api_errors::describe;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("another process wrote the lease {LEASE_NAME} first")]
    WrittenByAnother,
    #[error("{doing} the lease {LEASE_NAME}: {}", describe(.source))]
    Failed { doing: &'static str, source: Box<kube::Error> },
    #[error("{doing} the lease {LEASE_NAME}: no answer within {} s", REQUEST_TIMEOUT.as_secs())]
    NoAnswer { doing: &'static str },
}

#[derive(Clone)]
pub struct Leases(Api<Lease>);

impl Leases {
    pub fn new(client: Client, namespace: &str) -> Self {
        Self(Api::namespaced(client, namespace))
    }

    /// The current lease, or an empty one without a holder if there is none yet.
    pub async fn read(&self) -> Result<Lease, Error> {
        let lease = in_time("reading", self.0.get_opt(LEASE_NAME)).await?;
        Ok(lease.unwrap_or_default())
    }

    /// Writes `record` into the lease, only if no other process has written it since `lease` was read.
    pub async fn write(&self, lease: &Lease, record: LeaseSpec) -> Result<Lease, Error> {
        let exists = lease.metadata.resource_version.is_some();
        let mut metadata = lease.metadata.clone();
        metadata.managed_fields = None;
        let new = Lease {
            metadata: if exists { metadata } else { ObjectMeta { name: Some(LEASE_NAME.into()), ..metadata } },
            spec: Some(record),
        };
        let params = PostParams::default();
        if exists {
            // The API server rejects a replacement whose resourceVersion is not the current one.
            in_time("writing", self.0.replace(LEASE_NAME, &params, &new)).await
        } else {
            in_time("creating", self.0.create(&params, &new)).await
        }
    }
}

async fn in_time<T>(doing: &'static str, request: impl Future<Output = kube::Result<T>>) -> Result<T, Error> {
    match timeout(REQUEST_TIMEOUT, request).await {
        Err(_) => Err(Error::NoAnswer { doing }),
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) if status.code == 409 => Err(Error::WrittenByAnother),
        Ok(Err(source)) => Err(Error::Failed { doing, source: Box::new(source) }),
    }
}
