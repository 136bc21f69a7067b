//! Writing the status of an object.

use kube::api::{Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::api_errors::ApiError;

/// Who the operator is to the API server when it applies something.
pub const FIELD_MANAGER: &str = "etcd-operator";

/// Writes a status. If the object has changed since it was read, or is gone, nothing is written: the change triggers
/// another reconcile.
pub async fn write<K>(object: &K, status: &impl Serialize, client: &Client) -> Result<(), ApiError>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let meta = object.meta();
    let (name, namespace) = (meta.name.clone().unwrap_or_default(), meta.namespace.clone().unwrap_or_default());
    let patch = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": {"resourceVersion": meta.resource_version},
        "status": status,
    });
    let api: Api<K> = Api::namespaced(client.clone(), &namespace);
    match api.patch_status(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(patch)).await {
        Err(kube::Error::Api(answer)) if answer.code == 404 || answer.code == 409 => Ok(()),
        written => {
            let doing = format!("writing the status of the {} {namespace}/{name}", K::kind(&()));
            written.map(drop).map_err(ApiError::doing(doing))
        }
    }
}
