//! Reports what a plan says about an EtcdBackup, EtcdBackupSchedule or EtcdRestore: in its status and in events.

use std::fmt::Debug;

use etcd_operator_core::notice::Notice;
use kube::core::NamespaceResourceScope;
use kube::core::object::HasStatus;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::debug;

use super::context::Context;
use crate::runtime::api_errors::ApiError;
use crate::runtime::status::{self, Written};

/// Writes the status if it changed, and publishes what is worth an event then.
pub async fn report<K>(object: &K, status: &K::Status, notices: &[Notice], context: &Context) -> Result<(), ApiError>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + HasStatus + Clone + Debug + DeserializeOwned,
    K::Status: Serialize + Debug + PartialEq,
{
    if object.status() == Some(status) {
        return Ok(());
    }
    debug!(?status, "reporting");
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let doing = || format!("writing the status of the {} {namespace}/{name}", K::kind(&()));
    let written = status::write(object, status, &context.client).await.map_err(|error| ApiError::doing(doing())(error));
    match written? {
        Written::Yes => {
            for notice in notices {
                context.events.publish(object, notice).await;
            }
        }
        // The next reconcile finds out whether it is still so, and would publish all of it again.
        Written::Outdated => {}
    }
    Ok(())
}
