//! Creating objects with strict field validation: the API server refuses a field that it does not know, instead of
//! dropping it. kube's parameters can ask for that when an object is patched, but not when it is created.

use http::Uri;
use kube::api::PostParams;
use kube::core::{NamespaceResourceScope, Request};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Creates an object in its own namespace.
pub async fn create<K>(client: &Client, parameters: &PostParams, object: &K) -> kube::Result<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Serialize + DeserializeOwned,
{
    let path = K::url_path(&(), object.namespace().as_deref());
    let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
    let mut request = Request::new(path).create(parameters, body).map_err(kube::Error::BuildRequest)?;
    *request.uri_mut() = strict(request.uri()).map_err(|error| kube::Error::HttpError(error.into()))?;
    // As kube does: the name of the request's span.
    request.extensions_mut().insert("create");
    client.request(request).await
}

fn strict(uri: &Uri) -> Result<Uri, http::uri::InvalidUri> {
    let others = uri.query().filter(|query| !query.is_empty()).map(|query| format!("{query}&")).unwrap_or_default();
    format!("{}?{others}fieldValidation=Strict", uri.path()).parse()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_validation_is_added_to_other_parameters() {
        for (before, after) in [
            ("/api/v1/pods?", "/api/v1/pods?fieldValidation=Strict"),
            ("/api/v1/pods?fieldManager=x", "/api/v1/pods?fieldManager=x&fieldValidation=Strict"),
        ] {
            assert_eq!(strict(&before.parse().unwrap()).unwrap(), after);
        }
    }
}
