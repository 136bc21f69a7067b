//! The CustomResourceDefinitions to install.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps};
use kube::CustomResourceExt;

use crate::{EtcdCluster, EtcdPeer};

/// Every CustomResourceDefinition of this API, always in the same order and with the same content.
pub fn all_crds() -> Vec<CustomResourceDefinition> {
    vec![declare_name(EtcdCluster::crd()), EtcdPeer::crd()]
}

/// Declares `metadata.name` in the schema, without which the API server lets no rule name it as the field at fault.
fn declare_name(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let name = JSONSchemaProps { type_: Some("string".into()), ..Default::default() };
    let metadata = JSONSchemaProps {
        type_: Some("object".into()),
        properties: Some(BTreeMap::from([("name".into(), name)])),
        ..Default::default()
    };
    let schemas =
        crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    for schema in schemas {
        schema.properties.get_or_insert_default().insert("metadata".into(), metadata.clone());
    }
    crd
}
