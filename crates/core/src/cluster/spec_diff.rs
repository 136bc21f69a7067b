//! How the current spec differs from what a member was created from, and how the member is updated.

use std::collections::{BTreeMap, BTreeSet};

use etcd_operator_api::labels::RESTART;
use etcd_operator_api::quantity::same_amount;
use etcd_operator_api::{EtcdClusterSpec, EtcdPeerSpec, PodTemplate};
use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::cluster::cpu::gomaxprocs;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecDiff {
    /// The fields that differ, as the user knows them: `spec.podTemplate.resources`.
    pub fields: Vec<String>,
    pub method: UpdateMethod,
}

/// How a member is updated, from the least to the most disruptive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UpdateMethod {
    /// Labels and annotations are changed in place.
    Relabel,
    /// Kubernetes resizes the running container.
    Resize,
    /// The member is restarted.
    Restart,
}

/// What a member was created from.
pub struct Current<'a> {
    pub spec: &'a EtcdPeerSpec,
    /// The value of the annotation that requests a restart at that time.
    pub restart: Option<&'a str>,
    /// The image that its pod was created with, if known: another client may have changed the one that runs.
    pub image: Option<&'a str>,
    /// Whether Kubernetes refused to give its pod the desired resources.
    pub refuses_resize: bool,
    /// Whether its node can't provide the resources that its pod was promised.
    pub is_short: bool,
}

/// The desired state.
pub struct Desired<'a> {
    pub spec: &'a EtcdClusterSpec,
    pub restart: Option<&'a str>,
    /// The image, also if the user leaves it to the operator.
    pub image: &'a str,
}

pub fn spec_diff(made: &Current, wanted: &Desired) -> Option<SpecDiff> {
    let differences = differences(made, wanted);
    let method = differences.iter().map(|(_, method)| *method).max()?;
    Some(SpecDiff { fields: differences.into_iter().map(|(field, _)| field).collect(), method })
}

fn differences(made: &Current, wanted: &Desired) -> Vec<(String, UpdateMethod)> {
    let (old, new) = (made.spec, wanted.spec);
    let mut found = Vec::new();
    let mut differs = |yes: bool, field: &str, method: UpdateMethod| {
        if yes {
            found.push((field.to_owned(), method));
        }
    };
    let version = format!("spec.version {} → {}", old.version, new.version);
    differs(old.version != new.version, &version, UpdateMethod::Restart);
    differs(old.image != new.image, "spec.image", UpdateMethod::Restart);
    // The user left the image to the operator, which was configured with another repository.
    let is_elsewhere = made.image.is_some_and(|image| image != wanted.image);
    let by_operator = old.version == new.version && old.image == new.image && is_elsewhere;
    differs(by_operator, "the operator's repository of etcd images", UpdateMethod::Restart);
    differs(old.etcd != new.etcd && old.etcd_flags() != new.etcd_flags(), "spec.etcd", UpdateMethod::Restart);
    let restart = wanted.restart.is_some() && wanted.restart != made.restart;
    differs(restart, &format!("the annotation {RESTART}"), UpdateMethod::Restart);
    let (old, new) = (old.pod_template(), new.pod_template().unwrap_or_default());
    // What its node lacks does not matter if other resources are desired.
    let is_short = made.is_short && method_to_resize(old.resources.as_ref(), new.resources.as_ref()).is_none();
    differs(is_short, "spec.podTemplate.resources (its node does not have them)", UpdateMethod::Restart);
    found.extend(differences_in_pod(&old, &new, made.refuses_resize));
    found
}

fn differences_in_pod(old: &PodTemplate, new: &PodTemplate, refuses_resize: bool) -> Vec<(String, UpdateMethod)> {
    let is_relabelled = old.labels() != new.labels() || old.annotations() != new.annotations();
    let resized = method_to_resize(old.resources.as_ref(), new.resources.as_ref());
    let restarts = |differs: bool| differs.then_some(UpdateMethod::Restart);
    let all = [
        ("metadata", is_relabelled.then_some(UpdateMethod::Relabel)),
        ("resources", if refuses_resize { restarts(resized.is_some()) } else { resized }),
        ("affinity", restarts(old.affinity != new.affinity)),
        ("tolerations", restarts(old.tolerations != new.tolerations)),
        ("nodeSelector", restarts(old.node_selector != new.node_selector)),
        ("topologySpreadConstraints", restarts(old.topology_spread_constraints != new.topology_spread_constraints)),
        ("priorityClassName", restarts(old.priority_class_name != new.priority_class_name)),
        ("imagePullSecrets", restarts(old.image_pull_secrets != new.image_pull_secrets)),
    ];
    all.into_iter().filter_map(|(field, method)| Some((format!("spec.podTemplate.{field}"), method?))).collect()
}

type Amounts = BTreeMap<String, Quantity>;

/// How resources are changed, if they are. CPU and memory of a running container can be resized; but etcd decides at
/// its start how many threads it uses.
fn method_to_resize(old: Option<&ResourceRequirements>, new: Option<&ResourceRequirements>) -> Option<UpdateMethod> {
    let (old, new) = (old.cloned().unwrap_or_default(), new.cloned().unwrap_or_default());
    let of = |amounts: &Option<Amounts>| amounts.clone().unwrap_or_default();
    let (old_limits, new_limits) = (of(&old.limits), of(&new.limits));
    let mut changed = changed_amounts(&old_limits, &new_limits);
    changed.extend(changed_amounts(&of(&old.requests), &of(&new.requests)));
    let threads = |limits: &Amounts| limits.get("cpu").and_then(gomaxprocs);
    // A request or limit can't be removed from a running container.
    let keeps = |old: &Amounts, new: &Amounts| old.keys().all(|name| new.contains_key(name));
    let in_place = changed.iter().all(|name| name == "cpu" || name == "memory")
        && keeps(&old_limits, &new_limits)
        && keeps(&of(&old.requests), &of(&new.requests))
        && threads(&old_limits) == threads(&new_limits)
        && old.claims == new.claims;
    match (changed.is_empty() && old.claims == new.claims, in_place) {
        (true, _) => None,
        (false, true) => Some(UpdateMethod::Resize),
        (false, false) => Some(UpdateMethod::Restart),
    }
}

/// The names of the resources whose amounts differ.
fn changed_amounts(old: &Amounts, new: &Amounts) -> BTreeSet<String> {
    let is_same = |name: &String| match (old.get(name), new.get(name)) {
        (Some(old), Some(new)) => same_amount(old, new),
        _ => false,
    };
    old.keys().chain(new.keys()).filter(|name| !is_same(name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use etcd_operator_api::EtcdCluster;

    use super::*;

    fn cluster(edit: &[(&str, &str)]) -> EtcdClusterSpec {
        let mut spec = serde_json::json!({
            "version": "3.6.16",
            "storage": {"ephemeral": {}},
            "podTemplate": {"resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1", "memory": "1Gi"}}},
        });
        for (path, value) in edit {
            let value: serde_json::Value = serde_json::from_str(value).unwrap();
            let parts: Vec<&str> = path.split('.').collect();
            let (last, parents) = parts.split_last().unwrap();
            let parent = parents.iter().fold(&mut spec, |at, part| {
                let at = at.as_object_mut().unwrap();
                at.entry(*part).or_insert_with(|| serde_json::json!({}))
            });
            parent[*last] = value;
        }
        serde_json::from_value(spec).unwrap()
    }

    fn peer() -> EtcdPeerSpec {
        let mut spec = serde_json::to_value(cluster(&[])).unwrap();
        spec["clusterName"] = "c".into();
        serde_json::from_value(spec).unwrap()
    }

    fn change(edit: &[(&str, &str)], restart: Option<&str>) -> Option<SpecDiff> {
        let image = "etcd:v3.6.16";
        let made = Current {
            spec: &peer(),
            restart: Some("once"),
            image: Some(image),
            refuses_resize: false,
            is_short: false,
        };
        spec_diff(&made, &Desired { spec: &cluster(edit), restart, image })
    }

    fn method(edit: &[(&str, &str)]) -> Option<UpdateMethod> {
        change(edit, None).map(|change| change.method)
    }

    #[test]
    fn spec_diff_of_equal_specs_is_none() {
        assert_eq!(method(&[]), None);
        assert_eq!(method(&[("podTemplate.resources.limits.memory", r#""1024Mi""#)]), None, "the same in other words");
        assert_eq!(method(&[("replicas", "5")]), None);
        assert_eq!(method(&[("etcd", "{}")]), None, "nothing that etcd would notice");
        let of_flags = |etcd: &str| serde_json::from_str::<etcd_operator_api::EtcdOptions>(etcd).unwrap().flags();
        assert_eq!(of_flags(r#"{"heartbeatInterval": 200}"#), of_flags(r#"{"heartbeatInterval": "200ms"}"#));
    }

    #[test]
    fn labels_and_resources_change_as_it_runs() {
        assert_eq!(method(&[("podTemplate.metadata", r#"{"labels": {"a": "b"}}"#)]), Some(UpdateMethod::Relabel));
        assert_eq!(method(&[("podTemplate.resources.requests.cpu", r#""200m""#)]), Some(UpdateMethod::Resize));
        assert_eq!(method(&[("podTemplate.resources.limits.memory", r#""2Gi""#)]), Some(UpdateMethod::Resize));
        assert_eq!(
            method(&[("podTemplate.resources.limits.cpu", r#""1500m""#)]),
            Some(UpdateMethod::Resize),
            "still one thread"
        );
    }

    #[test]
    fn field_that_etcd_reads_at_start_needs_a_restart() {
        assert_eq!(
            method(&[("podTemplate.resources.limits.cpu", r#""2""#)]),
            Some(UpdateMethod::Restart),
            "GOMAXPROCS follows"
        );
        assert_eq!(
            method(&[("podTemplate.resources.limits", r#"{"cpu": "1"}"#)]),
            Some(UpdateMethod::Restart),
            "no limit any more"
        );
        assert_eq!(method(&[("podTemplate.resources.limits.hugepages-2Mi", r#""2Mi""#)]), Some(UpdateMethod::Restart));
        assert_eq!(method(&[("podTemplate.nodeSelector", r#"{"disk": "fast"}"#)]), Some(UpdateMethod::Restart));
        assert_eq!(method(&[("etcd.heartbeatInterval", "200")]), Some(UpdateMethod::Restart));
        assert_eq!(method(&[("image.repository", r#""mirror/etcd""#)]), Some(UpdateMethod::Restart));
    }

    #[test]
    fn spec_diff_names_the_fields_that_changed() {
        let found = change(&[("version", r#""3.7.3""#), ("podTemplate.metadata", r#"{"labels": {"a": "b"}}"#)], None);
        let found = found.unwrap();
        assert_eq!(found.fields, ["spec.version 3.6.16 → 3.7.3", "spec.podTemplate.metadata"]);
        assert_eq!(found.method, UpdateMethod::Restart, "the most that is needed");
    }

    #[test]
    fn the_annotation_restarts_when_it_is_given_a_new_value() {
        assert_eq!(change(&[], Some("once")), None);
        assert_eq!(change(&[], None), None, "taking it away is no wish");
        assert_eq!(change(&[], Some("twice")).unwrap().fields, ["the annotation etcd.improbable.io/restart"]);
    }

    #[test]
    fn the_operators_own_repository_counts() {
        let (made, wanted) = (peer(), cluster(&[]));
        let made = Current {
            spec: &made,
            restart: None,
            image: Some("old/etcd:v3.6.16"),
            refuses_resize: true,
            is_short: false,
        };
        let change = spec_diff(&made, &Desired { spec: &wanted, restart: None, image: "new/etcd:v3.6.16" }).unwrap();
        assert_eq!(change.fields, ["the operator's repository of etcd images"]);
    }

    #[test]
    fn a_refused_resize_becomes_a_restart() {
        let (made, wanted) = (peer(), cluster(&[("podTemplate.resources.limits.memory", r#""2Gi""#)]));
        let made = Current { spec: &made, restart: None, image: None, refuses_resize: true, is_short: false };
        let change = spec_diff(&made, &Desired { spec: &wanted, restart: None, image: "" }).unwrap();
        assert_eq!(change.method, UpdateMethod::Restart);
    }

    #[test]
    fn resources_that_a_node_does_not_have_are_taken_back_in_place() {
        let short = |edit: &[(&str, &str)]| {
            let made = Current { spec: &peer(), restart: None, image: None, refuses_resize: false, is_short: true };
            spec_diff(&made, &Desired { spec: &cluster(edit), restart: None, image: "" }).map(|change| change.method)
        };
        assert_eq!(short(&[]), Some(UpdateMethod::Restart), "it may find a node that has them");
        assert_eq!(short(&[("podTemplate.resources.requests.cpu", r#""50m""#)]), Some(UpdateMethod::Resize));
    }

    /// The spec arrives here as the API server stores it.
    #[test]
    fn a_cluster_and_its_peer_agree_on_their_defaults() {
        let spec = cluster(&[]);
        let object = EtcdCluster::new("c", spec);
        assert_eq!(object.spec.pod_template().unwrap(), peer().pod_template());
    }
}
