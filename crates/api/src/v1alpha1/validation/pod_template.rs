//! Rules about `spec.podTemplate`.

use kube::core::{Reason, Rule};

use crate::labels::{APP, RESERVED_PREFIX};

/// What Kubernetes takes as the value of a label, apart from its length.
const LABEL_VALUE: &str = "^([a-zA-Z0-9]([-._a-zA-Z0-9]*[a-zA-Z0-9])?)?$";

/// What Kubernetes takes as the name of a label, apart from the length of the part before the slash.
const LABEL_NAME: &str = r"^([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?[a-zA-Z0-9]([-._a-zA-Z0-9]{0,61}[a-zA-Z0-9])?$";

pub fn labels_are_not_reserved() -> Rule {
    are_not_reserved("spec.podTemplate.metadata.labels")
}

pub fn labels_are_well_formed() -> Rule {
    are_well_formed("spec.podTemplate.metadata.labels")
}

pub fn template_labels_are_not_reserved() -> Rule {
    are_not_reserved("metadata.labels")
}

pub fn template_labels_are_well_formed() -> Rule {
    are_well_formed("metadata.labels")
}

fn are_not_reserved(field: &str) -> Rule {
    Rule::new(format!("self.all(name, name != '{APP}' && !name.startsWith('{RESERVED_PREFIX}'))"))
        .message(
            format!(
                "{field} must not have app.kubernetes.io/name nor names that begin with etcd.improbable.io/, which are \
             reserved for the operator; remove or rename them"
            )
            .as_str(),
        )
        .reason(Reason::FieldValueForbidden)
}

fn are_well_formed(field: &str) -> Rule {
    Rule::new(format!(
        "self.all(name, name.matches('{LABEL_NAME}') && size(self[name]) <= 63 && self[name].matches('{LABEL_VALUE}'))"
    ))
    .message(format!(
        "{field} must have names and values that Kubernetes takes as labels: at most 63 letters, digits, '-', '_' and \
         '.', beginning and ending with a letter or digit; use annotations for anything else"
    ).as_str())
}

pub fn annotations_are_not_reserved() -> Rule {
    Rule::new(format!("self.all(name, !name.startsWith('{RESERVED_PREFIX}'))"))
        .message(
            "spec.podTemplate.metadata.annotations must not have names that begin with etcd.improbable.io/, which are \
             reserved for the operator; remove or rename them",
        )
        .reason(Reason::FieldValueForbidden)
}

pub fn limits_are_quantities() -> Rule {
    Rule::new("!has(self.limits) || self.limits.all(name, isQuantity(string(self.limits[name])))")
        .message("spec.podTemplate.resources.limits must be amounts; write them like cpu: 500m and memory: 2Gi")
        .field_path(".limits")
}

pub fn requests_are_quantities() -> Rule {
    Rule::new("!has(self.requests) || self.requests.all(name, isQuantity(string(self.requests[name])))")
        .message("spec.podTemplate.resources.requests must be amounts; write them like cpu: 500m and memory: 2Gi")
        .field_path(".requests")
}
