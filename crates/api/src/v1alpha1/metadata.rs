//! Labels and annotations of objects that are made from a template.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::validation;
use crate::schema;

/// Labels and annotations of the object that is made.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Optional. Labels to put on the object, for example `team: storage`. `app.kubernetes.io/name` and names that begin
    /// with `etcd.improbable.io/` are reserved for the operator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = schema::bound_labels)]
    #[x_kube(validation = validation::template_labels_are_not_reserved(), validation = validation::template_labels_are_well_formed())]
    pub labels: BTreeMap<String, String>,

    /// Optional. Annotations to put on the object.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 100))]
    pub annotations: BTreeMap<String, String>,
}
