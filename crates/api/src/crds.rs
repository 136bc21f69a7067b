//! The CustomResourceDefinitions to install.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use crate::{EtcdBackup, EtcdBackupSchedule, EtcdCluster, EtcdPeer, EtcdRestore};

/// Every CustomResourceDefinition of this API, always in the same order and with the same content.
pub fn all_crds() -> Vec<CustomResourceDefinition> {
    let crds = [
        corrected(EtcdBackup::crd(), declare_name),
        corrected(EtcdBackupSchedule::crd(), declare_name),
        corrected(EtcdCluster::crd(), declare_name),
        EtcdPeer::crd(),
        corrected(corrected(EtcdRestore::crd(), declare_name), forget_changes_of_template),
    ];
    crds.map(|crd| corrected(crd, take_null_for_absent)).into()
}

fn corrected(mut crd: CustomResourceDefinition, correct: impl Fn(&mut JSONSchemaProps)) -> CustomResourceDefinition {
    let schemas =
        crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    schemas.for_each(correct);
    crd
}

/// Takes the rules about changes out of the template of an EtcdRestore: it cannot be changed at all, which one rule says.
fn forget_changes_of_template(schema: &mut JSONSchemaProps) {
    let spec = schema.properties.as_mut().and_then(|properties| properties.get_mut("spec"));
    let template = spec.and_then(|spec| spec.properties.as_mut()?.get_mut("clusterTemplate"));
    template.into_iter().for_each(forget_changes);
}

fn forget_changes(schema: &mut JSONSchemaProps) {
    if let Some(rules) = &mut schema.x_kubernetes_validations {
        rules.retain(|rule| !rule.rule.contains("oldSelf"));
    }
    schema.properties.iter_mut().flat_map(BTreeMap::values_mut).for_each(forget_changes);
}

/// Declares `metadata.name` in the schema, without which the API server lets no rule name it as the field at fault.
fn declare_name(schema: &mut JSONSchemaProps) {
    let name = JSONSchemaProps { type_: Some("string".into()), ..Default::default() };
    let metadata = JSONSchemaProps {
        type_: Some("object".into()),
        properties: Some(BTreeMap::from([("name".into(), name)])),
        ..Default::default()
    };
    schema.properties.get_or_insert_default().insert("metadata".into(), metadata);
}

/// Makes the API server drop a field that is null, so that rules have to do with fields that are there or not.
fn take_null_for_absent(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.properties.iter_mut().flat_map(BTreeMap::values_mut).for_each(take_null_for_absent);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        take_null_for_absent(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        take_null_for_absent(values);
    }
}
