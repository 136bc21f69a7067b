//! The fields of every kind, from the CustomResourceDefinitions.

use std::collections::HashMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

use super::{code, table};

/// The fields with types of Kubernetes. Their content is documented by Kubernetes.
const KUBERNETES: [(&str, &str); 9] = [
    ("affinity", "Affinity"),
    ("conditions", "Condition"),
    ("identitySecretKeyRef", "SecretKeySelector"),
    ("imagePullSecrets", "LocalObjectReference"),
    ("resources", "ResourceRequirements"),
    ("secretKeyRef", "SecretKeySelector"),
    ("tolerations", "Toleration"),
    ("topologySpreadConstraints", "TopologySpreadConstraint"),
    ("volumeClaimTemplate", "PersistentVolumeClaimSpec"),
];

/// The number of fields from which on a type is described only once.
const WORTH_A_REFERENCE: usize = 3;

pub fn sections(crds: &[CustomResourceDefinition]) -> String {
    let mut fields = Fields::default();
    crds.iter().map(|crd| fields.section(crd)).collect::<Vec<_>>().join("\n\n")
}

/// The paths of all fields of a type, and their types.
type Shape = Vec<(String, String)>;

#[derive(Default)]
struct Fields {
    /// Where each type was described.
    described: HashMap<Shape, String>,
}

impl Fields {
    fn section(&mut self, crd: &CustomResourceDefinition) -> String {
        let names = &crd.spec.names;
        let schemas =
            crd.spec.versions.iter().filter_map(|version| version.schema.as_ref()?.open_api_v3_schema.as_ref());
        let mut parts = vec![format!("## {}", names.kind)];
        for schema in schemas {
            let short = names.short_names.iter().flatten().map(|name| format!(", `{name}`")).collect::<String>();
            let about = schema.description.clone().unwrap_or_default();
            parts.push(format!("{about} Known to kubectl as `{}`{short}.", names.plural));
            for (part, schema) in properties(schema).filter(|(part, _)| *part != "metadata") {
                let rows = self.part(&names.kind, part, schema);
                parts.push(table(["Field", "Type", "Default", "Meaning"], &rows));
            }
        }
        parts.join("\n\n")
    }

    fn part(&mut self, kind: &str, part: &str, schema: &JSONSchemaProps) -> Vec<[String; 4]> {
        self.described.insert(shape_of(schema), format!("{kind} `{part}`"));
        let mut rows = Vec::new();
        self.describe(kind, part, schema, &mut rows);
        rows
    }

    fn describe(&mut self, kind: &str, path: &str, schema: &JSONSchemaProps, rows: &mut Vec<[String; 4]>) {
        for (name, field) in properties(schema) {
            let path = format!("{path}.{name}");
            let is_required = path.starts_with("spec.") && is_required(schema, name, field);
            let default = if is_required { "required".to_owned() } else { default_of(field) };
            let row = |meaning: String| [code(&path), type_of(name, field), default, meaning];
            let Some((suffix, inner)) = inner_of(name, field) else {
                rows.push(row(meaning_of(field)));
                continue;
            };
            let shape = shape_of(inner);
            if let Some(place) = self.described.get(&shape).filter(|_| shape.len() >= WORTH_A_REFERENCE) {
                rows.push(row(format!("{} Its fields are those of {place}.", meaning_of(field))));
                continue;
            }
            rows.push(row(meaning_of(field)));
            let path = format!("{path}{suffix}");
            self.described.insert(shape, format!("{kind} `{path}`"));
            self.describe(kind, &path, inner, rows);
        }
    }
}

fn properties(schema: &JSONSchemaProps) -> impl Iterator<Item = (&str, &JSONSchemaProps)> {
    schema.properties.iter().flatten().map(|(name, field)| (name.as_str(), field))
}

fn shape_of(schema: &JSONSchemaProps) -> Shape {
    let mut shape = Vec::new();
    for (name, field) in properties(schema) {
        shape.push((name.to_owned(), type_of(name, field)));
        if let Some((suffix, inner)) = inner_of(name, field) {
            shape.extend(shape_of(inner).into_iter().map(|(path, type_)| (format!("{name}{suffix}.{path}"), type_)));
        }
    }
    shape
}

/// The operator's own type in a field, if it is an object or a list of objects, and the path to it.
fn inner_of<'a>(name: &str, field: &'a JSONSchemaProps) -> Option<(&'static str, &'a JSONSchemaProps)> {
    let (suffix, inner) = items_of(field).map_or(("", field), |items| ("[]", items));
    let is_ours = inner.properties.is_some() && kubernetes_type(name).is_none();
    is_ours.then_some((suffix, inner))
}

fn items_of(field: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match &field.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => Some(items),
        _ => None,
    }
}

fn kubernetes_type(name: &str) -> Option<&'static str> {
    KUBERNETES.iter().find(|(field, _)| *field == name).map(|(_, type_)| *type_)
}

fn type_of(name: &str, field: &JSONSchemaProps) -> String {
    match (kubernetes_type(name), items_of(field)) {
        (Some(type_), Some(_)) => format!("list of Kubernetes' {type_}"),
        (Some(type_), None) => format!("Kubernetes' {type_}"),
        (None, Some(items)) => format!("list of {}", plain_type_of(items)),
        (None, None) => plain_type_of(field),
    }
}

fn plain_type_of(field: &JSONSchemaProps) -> String {
    if let Some(values) = &field.enum_ {
        let values = values.iter().filter_map(|value| value.0.as_str());
        return values.map(code).collect::<Vec<_>>().join(", ");
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &field.additional_properties {
        return format!("map of {}", plain_type_of(values));
    }
    match (field.type_.as_deref(), field.format.as_deref()) {
        (Some("string"), Some("date-time")) => "time".to_owned(),
        (Some(type_), _) => type_.to_owned(),
        (None, _) if field.x_kubernetes_int_or_string == Some(true) => "string or integer".to_owned(),
        (None, _) => "any".to_owned(),
    }
}

/// Some fields are required by the schema, some by a validation rule, which only their description mentions.
fn is_required(schema: &JSONSchemaProps, name: &str, field: &JSONSchemaProps) -> bool {
    let is_said = field.description.as_deref().is_some_and(|it| it.starts_with("Required."));
    is_said || schema.required.iter().flatten().any(|required| required == name)
}

fn default_of(field: &JSONSchemaProps) -> String {
    match field.default.as_ref().map(|default| &default.0) {
        None => String::new(),
        Some(Value::String(text)) => code(text),
        Some(other) => code(&other.to_string()),
    }
}

/// The first paragraph of a description. Whether a field is required has its own column.
fn meaning_of(field: &JSONSchemaProps) -> String {
    let description = field.description.as_deref().unwrap_or_default();
    let first = description.split("\n\n").next().unwrap_or_default();
    first.trim_start_matches("Optional. ").trim_start_matches("Required. ").to_owned()
}

#[cfg(test)]
mod tests {
    use etcd_operator_api::all_crds;

    use super::*;

    fn row_of(path: &str) -> String {
        let page = sections(&all_crds());
        let start = format!("| `{path}` |");
        page.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("no {path}")).to_owned()
    }

    #[test]
    fn rows_have_type_default_and_meaning() {
        assert!(
            row_of("spec.compression")
                .starts_with("| `spec.compression` | `None`, `Zstd` | `None` | `None`, the default,")
        );
        assert!(row_of("spec.version").contains("| string | required |"));
        assert!(row_of("status.members[].healthy").contains("| boolean |"));
    }

    #[test]
    fn types_of_kubernetes_are_one_row() {
        assert!(row_of("spec.podTemplate.affinity").contains("| Kubernetes' Affinity |"));
        assert!(!sections(&all_crds()).contains("nodeAffinity"));
    }

    #[test]
    fn types_that_are_used_again_are_described_once() {
        assert!(row_of("spec.backupTemplate.spec").ends_with("Its fields are those of EtcdBackup `spec`. |"));
    }
}
