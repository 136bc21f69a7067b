//! Writing the status of an object: to report, and to record an intent before it is carried out.

use std::fmt::Debug;

use kube::api::{Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::core::object::HasStatus;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Who the operator is to the API server when it applies something.
pub const FIELD_MANAGER: &str = "etcd-operator";

/// Whether a status was written.
pub enum Written {
    Yes,
    /// The object has changed since it was read, or is gone: the status may be wrong, and the change will lead to
    /// another reconcile.
    Outdated,
}

/// Writes the whole status of an object. The API server refuses a field that it does not know instead of dropping it.
pub async fn write<K>(object: &K, status: &K::Status, client: &Client) -> kube::Result<Written>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + HasStatus + Clone + Debug + DeserializeOwned,
    K::Status: Serialize + Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), &object.namespace().unwrap_or_default());
    let parameters = PatchParams::apply(FIELD_MANAGER).force().validation_strict();
    let patch = Patch::Apply(AppliedStatus::of(object, status));
    match api.patch_status(&object.name_any(), &parameters, &patch).await {
        Ok(_) => Ok(Written::Yes),
        Err(kube::Error::Api(answer)) if answer.code == 404 || answer.code == 409 => Ok(Written::Outdated),
        Err(error) => Err(error),
    }
}

/// The whole status of an object, to be applied.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AppliedStatus<'a, S> {
    api_version: String,
    kind: String,
    metadata: AsRead,
    status: &'a S,
}

/// Only the object as it was read gets the status.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AsRead {
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<String>,
}

impl<'a, S> AppliedStatus<'a, S> {
    fn of<K: Resource<DynamicType = ()>>(object: &K, status: &'a S) -> Self {
        AppliedStatus {
            api_version: K::api_version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            metadata: AsRead { resource_version: object.resource_version() },
            status,
        }
    }
}
