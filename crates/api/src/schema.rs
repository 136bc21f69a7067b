//! Corrections to the schemas that are generated from the types.

use schemars::Schema;
use schemars::transform::transform_subschemas;
use serde_json::{Value, json};

/// More resources than any container has, and few enough for the API server to admit a rule that looks at each.
const MAX_RESOURCES: u32 = 12;

/// More flags than anybody sets, and few enough for the API server to admit rules that look at each.
const MAX_EXTRA_ARGS: u32 = 64;

/// Longer than any sensible value of a flag.
const MAX_EXTRA_ARG: u32 = 1024;

/// More labels than anybody sets, and few enough for the API server to admit rules that look at each.
const MAX_LABELS: u32 = 64;

/// Somewhat more than Kubernetes allows, so that what is too long meets the rule with its sentence.
const MAX_LABEL: u32 = 256;

/// Longer than any sensible duration.
const MAX_DURATION: u32 = 16;

/// Allows what an operator of an earlier version may still write while it runs under these definitions.
pub fn allow_earlier_phases(schema: &mut Schema) {
    if let Some(Value::Array(phases)) = schema.get_mut("enum") {
        phases.extend(["Checking", "Growing"].map(Value::from));
    }
}

/// Takes `required` out of the schema of a type that checks the presence of its fields with rules.
///
/// The API server answers a violated `required` with the words "Required value" alone, a violated rule with our sentence.
pub fn leave_required_to_rules(schema: &mut Schema) {
    schema.remove("required");
}

/// Puts each paragraph of a description on one line, throughout a schema, so that `kubectl explain` can wrap it.
pub fn join_wrapped_lines(schema: &mut Schema) {
    if let Some(description) = schema.get("description").and_then(|description| description.as_str()) {
        let paragraphs: Vec<String> = description.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
        schema.insert("description".into(), paragraphs.join("\n\n").into());
    }
    transform_subschemas(&mut join_wrapped_lines, schema);
}

/// Bounds maps of quantities and describes a quantity in a sentence, throughout a schema.
pub fn tidy_quantities(schema: &mut Schema) {
    if is_quantity(schema.as_value()) {
        schema.insert("description".into(), "An amount, for example `2`, `500m` or `10Gi`.".into());
    } else if schema.get("additionalProperties").is_some_and(is_quantity) {
        schema.insert("maxProperties".into(), MAX_RESOURCES.into());
    }
    transform_subschemas(&mut tidy_quantities, schema);
}

/// Takes out the width of a number, which the API server has no name for if the number cannot be negative.
pub fn plain_number(schema: &mut Schema) {
    schema.remove("format");
}

/// The same for a list of numbers, with their bounds, which a rule has a sentence about.
pub fn plain_numbers(schema: &mut Schema) {
    let mut plain = |number: &mut Schema| {
        for bound in ["format", "minimum", "maximum"] {
            number.remove(bound);
        }
    };
    transform_subschemas(&mut plain, schema);
}

/// Takes out the default of a field that has one only because rules check its presence.
pub fn no_default(schema: &mut Schema) {
    schema.remove("default");
}

/// Bounds the text of a duration.
pub fn bound_duration(schema: &mut Schema) {
    schema.insert("maxLength".into(), MAX_DURATION.into());
}

/// Bounds a map of flags and their values.
pub fn bound_extra_args(schema: &mut Schema) {
    bound_map(schema, MAX_EXTRA_ARGS, MAX_EXTRA_ARG);
}

/// Bounds a map of labels.
pub fn bound_labels(schema: &mut Schema) {
    bound_map(schema, MAX_LABELS, MAX_LABEL);
}

fn bound_map(schema: &mut Schema, max_properties: u32, max_length: u32) {
    schema.insert("maxProperties".into(), max_properties.into());
    schema.insert("additionalProperties".into(), json!({"type": "string", "maxLength": max_length}));
}

fn is_quantity(schema: &Value) -> bool {
    schema["x-kubernetes-int-or-string"] == true
}
