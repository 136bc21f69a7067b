//! Tests of the CustomResourceDefinitions as they are installed.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{property, schema_of};
use crate::all_crds;

/// The names of the fields at a path, each with the path before it, apart from some.
fn fields(schema: &Value, path: &[&str], apart_from: &[&str]) -> BTreeSet<String> {
    let names = property(schema, &[&["spec"], path].concat())["properties"].as_object().unwrap().keys();
    let counting = names.filter(|name| !apart_from.contains(&name.as_str()));
    counting.map(|name| [path, &[name.as_str()]].concat().join(".")).collect()
}

#[test]
fn every_immutable_field_is_listed() {
    let listed = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<BTreeSet<_>>();

    let peer = schema_of("EtcdPeer");
    let mut peer_stays = fields(&peer, &[], &["podTemplate"]);
    peer_stays.extend(fields(&peer, &["podTemplate"], &["metadata", "resources"]));
    assert_eq!(peer_stays, listed(&crate::v1alpha1::validation::PEER_STAYS));

    let cluster = schema_of("EtcdCluster");
    let template = ["storage", "volumeClaimTemplate"];
    let mut volumes_stay = fields(&cluster, &template, &["resources", "volumeName"]);
    volumes_stay.extend(fields(&cluster, &[template.as_slice(), &["resources"]].concat(), &["requests"]));
    let in_storage: BTreeSet<String> =
        crate::v1alpha1::validation::VOLUMES_STAY.iter().map(|path| format!("storage.{path}")).collect();
    assert_eq!(volumes_stay, in_storage);
}

#[test]
fn schema_allows_numbers_as_quantities() {
    for kind in ["EtcdCluster", "EtcdPeer"] {
        let schema = schema_of(kind);
        for resources in [
            property(&schema, &["spec", "podTemplate", "resources"]),
            property(&schema, &["spec", "storage", "volumeClaimTemplate", "resources"]),
        ] {
            for amounts in ["limits", "requests"] {
                let amount = &property(resources, &[amounts])["additionalProperties"];
                assert_eq!(amount["x-kubernetes-int-or-string"], true, "{kind} {amounts}");
                assert!(amount["type"].is_null(), "{kind} {amounts}");
            }
        }
    }
}

#[test]
fn missing_field_is_refused_by_a_rule_and_not_by_the_schema() {
    for (kind, path) in [
        ("EtcdCluster", vec!["spec"]),
        ("EtcdCluster", vec!["spec", "storage"]),
        ("EtcdCluster", vec!["spec", "version"]),
        ("EtcdBackup", vec!["spec"]),
        ("EtcdBackup", vec!["spec", "destination"]),
        ("EtcdBackupSchedule", vec!["spec"]),
        ("EtcdBackupSchedule", vec!["spec", "backupTemplate"]),
        ("EtcdRestore", vec!["spec"]),
        ("EtcdRestore", vec!["spec", "clusterTemplate"]),
        ("EtcdRestore", vec!["spec", "clusterTemplate", "spec", "version"]),
    ] {
        let schema = schema_of(kind);
        let holder = property(&schema, &path);
        assert!(holder["required"].is_null(), "{kind} {path:?}");
        assert!(holder["default"].is_null(), "{kind} {path:?}");
    }
}

#[test]
fn schema_allows_null_nowhere() {
    for crd in all_crds() {
        let text = serde_json::to_string(&crd).unwrap();
        assert!(!text.contains("nullable"), "{:?}", crd.metadata.name);
    }
}

/// Every part of a schema that has a name, with the name.
fn each_property(schema: &Value, visit: &mut impl FnMut(&str, &Value)) {
    for (name, part) in schema["properties"].as_object().into_iter().flatten() {
        visit(name, part);
        each_property(part, visit);
    }
    if schema["items"].is_object() {
        each_property(&schema["items"], visit);
    }
}

#[test]
fn every_rule_has_a_message_that_names_its_field() {
    let mut rules = 0;
    for crd in all_crds() {
        let mut check = |name: &str, part: &Value| {
            for rule in part["x-kubernetes-validations"].as_array().into_iter().flatten() {
                let message = rule["message"].as_str().unwrap_or_default();
                let named = message.split([' ', '.']).next().unwrap_or_default();
                // What is in several places is called as it is in all of them.
                let is_here = named == name || part["properties"].get(named).is_some();
                assert!(is_here || named == "spec" || named == "metadata", "{name}: {rule}");
                rules += 1;
            }
        };
        let schema = schema_of(&crd.spec.names.kind);
        check("", &schema);
        each_property(&schema, &mut check);
    }
    assert!(rules > 100, "{rules} rules");
}

/// Types of Kubernetes itself, described by itself.
const NOT_OURS: [&str; 9] = [
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "imagePullSecrets",
    "resources",
    "volumeClaimTemplate",
    "conditions",
    "secretKeyRef",
    "identitySecretKeyRef",
];

#[test]
fn every_field_of_ours_is_described() {
    fn check(path: &str, schema: &Value) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            let description = field["description"].as_str().unwrap_or_default();
            let is_root = path.matches('.').count() == 1;
            assert!(is_root || description.ends_with('.'), "{path}: {description:?}");
            assert!(!description.contains('\n'), "{path} is described on several lines: {description:?}");
            if !NOT_OURS.contains(&name.as_str()) {
                check(&path, field);
                check(&path, &field["items"]);
            }
        }
    }
    for crd in all_crds() {
        let mut schema = schema_of(&crd.spec.names.kind);
        // Kubernetes describes it.
        schema["properties"].as_object_mut().unwrap().remove("metadata");
        check(&crd.spec.names.kind, &schema);
    }
}

#[test]
fn conditions_are_merged_by_type() {
    for kind in ["EtcdCluster", "EtcdBackup", "EtcdBackupSchedule", "EtcdRestore"] {
        let schema = schema_of(kind);
        let conditions = property(&schema, &["status", "conditions"]);
        assert_eq!(conditions["x-kubernetes-list-type"], "map", "{kind}");
        assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]), "{kind}");
    }
}

#[test]
fn crds_are_deterministic() {
    assert_eq!(all_crds(), all_crds());
    let names: Vec<Option<String>> = all_crds().into_iter().map(|crd| crd.metadata.name).collect();
    let expected = ["etcdbackups", "etcdbackupschedules", "etcdclusters", "etcdpeers", "etcdrestores"];
    assert_eq!(names, expected.map(|plural| Some(format!("{plural}.etcd.improbable.io"))));
}

#[test]
fn every_kind_has_a_short_name_and_the_category() {
    let short_names: Vec<(String, Vec<String>)> = all_crds()
        .into_iter()
        .map(|crd| {
            assert_eq!(crd.spec.names.categories, Some(vec!["etcd".to_owned()]));
            (crd.spec.names.kind, crd.spec.names.short_names.unwrap())
        })
        .collect();
    let expected = [
        ("EtcdBackup", "eb"),
        ("EtcdBackupSchedule", "ebs"),
        ("EtcdCluster", "ec"),
        ("EtcdPeer", "ecp"),
        ("EtcdRestore", "er"),
    ];
    assert_eq!(short_names, expected.map(|(kind, short)| (kind.to_owned(), vec![short.to_owned()])));
}

#[test]
fn schema_uses_only_formats_of_the_api_server() {
    for crd in all_crds() {
        let text = serde_json::to_string(&crd).unwrap();
        assert!(!text.contains("\"uint"), "{:?}", crd.metadata.name);
    }
}
