//! The patches of a cluster's objects, each a type of its own: what it can change is what it has fields for.

use std::collections::BTreeMap;

use etcd_operator_api::Replacement;
use k8s_openapi::api::core::v1::{Container, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::api::PatchParams;
use serde::Serialize;
use serde_json::Value;

/// How merge patches are written. The API server refuses a field that it does not know instead of dropping it.
pub fn strictly() -> PatchParams {
    PatchParams::default().validation_strict()
}

/// A merge patch of an object's metadata.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetadataPatch {
    /// `None` removes a label.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Option<String>>,
    /// `None` removes an annotation.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, Option<String>>,
    /// All owners: a merge patch replaces lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_references: Option<Vec<OwnerReference>>,
    /// If it is set, an object that has changed since is not patched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
}

/// Labels or annotations that are set, whatever they were.
pub fn set(all: BTreeMap<String, String>) -> BTreeMap<String, Option<String>> {
    all.into_iter().map(|(name, value)| (name, Some(value))).collect()
}

/// The way from some labels or annotations to others: what does not exist any more is removed.
pub fn change(old: &BTreeMap<String, String>, new: BTreeMap<String, String>) -> BTreeMap<String, Option<String>> {
    let gone = old.keys().filter(|name| !new.contains_key(*name)).map(|name| (name.clone(), None));
    let mut all: BTreeMap<_, _> = gone.collect();
    all.extend(set(new).into_iter().filter(|(name, value)| old.get(name) != value.as_ref()));
    all
}

/// A patch of an object.
#[derive(Debug, Serialize)]
pub struct ObjectPatch<S = ()> {
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<MetadataPatch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<S>,
}

impl ObjectPatch {
    pub fn of(metadata: MetadataPatch) -> Self {
        ObjectPatch { metadata: Some(metadata), spec: None }
    }

    pub fn of_labels(labels: BTreeMap<String, String>) -> Self {
        ObjectPatch::of(MetadataPatch { labels: set(labels), ..MetadataPatch::default() })
    }

    pub fn of_annotations(annotations: BTreeMap<String, String>) -> Self {
        ObjectPatch::of(MetadataPatch { annotations: set(annotations), ..MetadataPatch::default() })
    }
}

impl<S> ObjectPatch<S> {
    pub fn of_spec(spec: S) -> Self {
        ObjectPatch { metadata: None, spec: Some(spec) }
    }

    /// Only of the object as it was read.
    pub fn of_spec_at(resource_version: Option<String>, spec: S) -> Self {
        let metadata = MetadataPatch { resource_version, ..MetadataPatch::default() };
        ObjectPatch { metadata: Some(metadata), spec: Some(spec) }
    }
}

/// The container of etcd in a pod, as a strategic merge patch names it.
#[derive(Debug, Serialize)]
pub struct Containers {
    containers: [Container; 1],
}

impl Containers {
    pub fn etcd_with(resources: ResourceRequirements) -> Self {
        let etcd = Container { name: "etcd".to_owned(), resources: Some(resources), ..Container::default() };
        Containers { containers: [etcd] }
    }
}

/// The part of an EtcdPeer's spec that is changed in place.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodTemplateChange {
    pub pod_template: Difference,
}

/// The merge patch from one value to another of its type: what does not exist any more is removed.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Difference(Value);

impl Difference {
    pub fn between<T: Serialize>(old: &T, new: &T) -> serde_json::Result<Self> {
        Ok(Difference(merge_patch(&serde_json::to_value(old)?, &serde_json::to_value(new)?)))
    }
}

fn merge_patch(old: &Value, new: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return new.clone() };
    let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = new.iter().filter(|(key, value)| old.get(*key) != Some(value));
    let changed = changed.map(|(key, value)| (key.clone(), merge_patch(old.get(key).unwrap_or(&Value::Null), value)));
    gone.chain(changed).collect()
}

/// A merge patch of a status.
#[derive(Debug, Serialize)]
pub struct StatusPatch<S> {
    pub status: S,
}

/// What is recorded in the status of an EtcdPeer, one thing at a time.
#[derive(Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum PeerRecord {
    Member {
        #[serde(rename = "memberID")]
        member_id: String,
        #[serde(rename = "clusterID")]
        cluster_id: String,
        started: bool,
    },
    Replacement {
        replacement: Replacement,
    },
    Defragmentation {
        last_defragmentation: LastDefragmentation,
    },
    ServerVersion {
        server_version: String,
    },
}

/// Unlike in the status itself, a revision that was not looked at is written: as a null, which removes an earlier one.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastDefragmentation {
    pub time: Time,
    pub compacted_revision: Option<i64>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn some(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn difference_of_values_removes_what_is_gone_and_keeps_the_rest() {
        let old = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": 4});
        let new = json!({"a": 1, "b": {"c": 5}, "f": {"g": 6}});
        let between = |old: &Value, new: &Value| json!(Difference::between(old, new).unwrap());
        assert_eq!(between(&old, &new), json!({"b": {"c": 5, "d": null}, "e": null, "f": {"g": 6}}));
        assert_eq!(between(&Value::Null, &new), new);
        assert_eq!(between(&old, &old), json!({}));
    }

    #[test]
    fn change_of_labels_removes_what_is_gone_and_leaves_out_what_stays() {
        let patch = ObjectPatch::of(MetadataPatch {
            labels: change(&some(&[("a", "1"), ("b", "2"), ("c", "3")]), some(&[("b", "2"), ("c", "4"), ("d", "5")])),
            ..MetadataPatch::default()
        });
        assert_eq!(json!(patch), json!({"metadata": {"labels": {"a": null, "c": "4", "d": "5"}}}));
    }

    #[test]
    fn patch_of_a_spec_leaves_the_metadata_alone() {
        let patch = ObjectPatch::of_spec(Containers::etcd_with(ResourceRequirements::default()));
        assert_eq!(json!(patch), json!({"spec": {"containers": [{"name": "etcd", "resources": {}}]}}));
        let patch = ObjectPatch::of_spec_at(Some("7".into()), json!({"a": 1}));
        assert_eq!(json!(patch), json!({"metadata": {"resourceVersion": "7"}, "spec": {"a": 1}}));
    }

    #[test]
    fn records_of_a_peer_contain_nothing_but_what_they_record() {
        let member = PeerRecord::Member { member_id: "a".into(), cluster_id: "b".into(), started: true };
        assert_eq!(json!(member), json!({"memberID": "a", "clusterID": "b", "started": true}));
        let last = LastDefragmentation { time: Time(jiff::Timestamp::UNIX_EPOCH), compacted_revision: None };
        let defragmentation = PeerRecord::Defragmentation { last_defragmentation: last };
        let expected = json!({"lastDefragmentation": {"time": "1970-01-01T00:00:00Z", "compactedRevision": null}});
        assert_eq!(json!(defragmentation), expected, "the null removes the revision of an earlier one");
        let version = PeerRecord::ServerVersion { server_version: "3.6.16".into() };
        assert_eq!(json!(StatusPatch { status: version }), json!({"status": {"serverVersion": "3.6.16"}}));
    }
}
