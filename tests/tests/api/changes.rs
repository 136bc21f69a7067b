//! Which changes of an object that exists the API server takes, and which it refuses.

use e2e::{MUST_BE_REFUSED, Namespace, kubectl_with_input, try_kubectl};
use serde_json::{Value, json};

use crate::{cluster, refuses, takes, with, without};

const SHRINKS: &str = "spec.storage.volumeClaimTemplate.resources.requests.storage can grow but not shrink";
const FOLLOWS_NOT: &str = "spec.storage.volumeClaimTemplate cannot be changed apart from its size";
const OTHER_KIND: &str = "spec.storage cannot be changed from volumeClaimTemplate to ephemeral or back";
const TOO_FEW: &str = "spec.storage.migrate needs at least 3 members";

fn sized(size: Value) -> Value {
    with("spec/storage/volumeClaimTemplate/resources/requests/storage", size)
}

fn migrating(mut manifest: Value) -> Value {
    manifest["spec"]["storage"]["migrate"] = json!(true);
    manifest
}

/// A cluster that says all about its volumes that can be said.
fn particular_cluster() -> Value {
    with(
        "spec/storage/volumeClaimTemplate",
        json!({
            "storageClassName": "nobody-has-this",
            "volumeAttributesClassName": "fast",
            "volumeMode": "Filesystem",
            "accessModes": ["ReadWriteOnce"],
            "selector": {"matchLabels": {"disk": "fast"}},
            "dataSource": {"kind": "PersistentVolumeClaim", "name": "seed"},
            "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "seed"},
            "resources": {"requests": {"storage": "50Mi", "example.com/speed": "5"}, "limits": {"storage": "1Gi"}},
        }),
    )
}

#[test]
fn volumes_grow_but_do_not_shrink() {
    let namespace = Namespace::create("api-sizes");
    namespace.apply(&cluster().to_string()).unwrap();
    let smaller = || [json!("49Mi"), json!("50M"), json!("51199Ki"), json!(52428799), json!("1")].map(sized);
    refuses(&namespace, smaller().map(|manifest| (manifest, SHRINKS)));
    let way_out = "set spec.storage.migrate to true as well, which replaces the members one by one";
    refuses(&namespace, smaller().map(|manifest| (manifest, way_out)));
    takes(&namespace, smaller().map(migrating));
    let same_or_larger =
        || [json!("50Mi"), json!("51200Ki"), json!(52428800), json!("0.05Gi"), json!("100Mi"), json!("1Ti")].map(sized);
    takes(&namespace, same_or_larger());
    takes(&namespace, same_or_larger().map(migrating));

    namespace.apply(&sized(json!("100Mi")).to_string()).unwrap();
    refuses(&namespace, [(cluster(), SHRINKS)]);
    namespace.apply(&migrating(cluster()).to_string()).unwrap();
    // Once that has been taken, nothing of it depends on the permission.
    namespace.apply(&cluster().to_string()).unwrap();
    refuses(&namespace, [(sized(json!("49Mi")), SHRINKS)]);
}

#[test]
fn volumes_that_cannot_follow_a_change_need_a_migration() {
    let namespace = Namespace::create("api-volumes");
    namespace.apply(&cluster().to_string()).unwrap();
    let template = particular_cluster()["spec"]["storage"]["volumeClaimTemplate"].clone();
    let needs_migration = |manifest: Value| {
        refuses(&namespace, [(manifest.clone(), FOLLOWS_NOT), (manifest.clone(), "set spec.storage.migrate to true")]);
        takes(&namespace, [migrating(manifest)]);
    };
    // Added to a cluster that says little.
    for (field, value) in template.as_object().unwrap() {
        if field != "storageClassName" {
            needs_migration(with(&format!("spec/storage/volumeClaimTemplate/{field}"), value.clone()));
        }
    }
    needs_migration(with("spec/storage/volumeClaimTemplate/storageClassName", json!("another")));
    needs_migration(without("spec/storage/volumeClaimTemplate/storageClassName"));

    // Changed in, and taken from, a cluster that says it all.
    let mut particular = particular_cluster();
    particular["metadata"]["name"] = json!("d");
    namespace.apply(&particular.to_string()).unwrap();
    let changed = |path: &str, value: Value| {
        let mut manifest = particular.clone();
        *manifest["spec"]["storage"]["volumeClaimTemplate"].pointer_mut(path).unwrap() = value;
        manifest
    };
    for (path, value) in [
        ("/storageClassName", json!("another")),
        ("/volumeAttributesClassName", json!("slow")),
        ("/accessModes", json!(["ReadWriteOncePod"])),
        ("/accessModes", json!(["ReadWriteOnce", "ReadOnlyMany"])),
        ("/selector/matchLabels/disk", json!("slow")),
        ("/dataSource/name", json!("another")),
        ("/dataSourceRef/name", json!("another")),
        ("/resources/limits/storage", json!("2Gi")),
        ("/resources/requests/example.com~1speed", json!("6")),
    ] {
        needs_migration(changed(path, value));
    }
    for path in [
        "/storageClassName",
        "/volumeAttributesClassName",
        "/volumeMode",
        "/accessModes",
        "/selector",
        "/dataSource",
        "/dataSourceRef",
        "/resources/limits",
        "/resources/requests/example.com~1speed",
    ] {
        // To `kubectl` and the API server, null is as good as absent.
        needs_migration(changed(path, Value::Null));
    }
    takes(&namespace, ["50Mi", "51200Ki", "1Gi"].map(|size| changed("/resources/requests/storage", json!(size))));
    refuses(&namespace, [(changed("/resources/requests/storage", json!("1Mi")), SHRINKS)]);

    namespace.apply(&migrating(changed("/storageClassName", json!("another"))).to_string()).unwrap();
    refuses(&namespace, [(particular.clone(), FOLLOWS_NOT)]);
    takes(&namespace, [changed("/storageClassName", json!("another"))]);
}

#[test]
fn storage_kind_is_immutable() {
    let namespace = Namespace::create("api-immutable");
    namespace.apply(&cluster().to_string()).unwrap();
    let mut lost = cluster();
    lost["spec"]["storage"] = json!({"ephemeral": {}, "volumeClaimTemplate": null});
    refuses(&namespace, [(lost.clone(), OTHER_KIND), (migrating(lost), OTHER_KIND)]);
    namespace.apply(&with("spec/deletionPolicy", json!("DeleteVolumes")).to_string()).unwrap();
    namespace.apply(&cluster().to_string()).unwrap();
    assert_eq!(namespace.get("etcdcluster c")["spec"]["deletionPolicy"], "KeepVolumes", "the default is back");

    let ephemeral = |fields: Value| {
        let mut manifest = with("spec/storage", json!({"ephemeral": fields}));
        manifest["metadata"]["name"] = json!("d");
        manifest
    };
    namespace.apply(&ephemeral(json!({"sizeLimit": "1Gi"})).to_string()).unwrap();
    let stays = "spec.storage.ephemeral cannot be changed";
    for fields in [json!({}), json!({"sizeLimit": "2Gi"}), json!({"sizeLimit": "1Gi", "medium": "Memory"})] {
        refuses(&namespace, [(ephemeral(fields.clone()), stays), (migrating(ephemeral(fields)), stays)]);
    }
    let mut kept = cluster();
    kept["metadata"]["name"] = json!("d");
    refuses(&namespace, [(kept.clone(), OTHER_KIND), (migrating(kept), OTHER_KIND)]);
    takes(
        &namespace,
        [ephemeral(json!({"sizeLimit": "1Gi"})), ephemeral(json!({"sizeLimit": "1Gi", "medium": "Disk"}))],
    );
}

#[test]
fn volume_migration_needs_three_members() {
    let namespace = Namespace::create("api-migration");
    let members = |replicas: u32| migrating(with("spec/replicas", json!(replicas)));
    refuses(&namespace, [1, 2].map(|replicas| (members(replicas), TOO_FEW)));
    takes(&namespace, [3, 4, 5].map(members));
    takes(&namespace, [migrating(without("spec/replicas"))]);
    let mut unwilling = members(1);
    unwilling["spec"]["storage"]["migrate"] = json!(false);
    takes(&namespace, [unwilling]);
    refuses(&namespace, [(with("spec/storage/migrate", json!("yes")), "spec.storage.migrate")]);

    namespace.apply(&members(3).to_string()).unwrap();
    let complaint =
        try_kubectl("--namespace api-migration scale etcdcluster c --replicas=2").expect_err(MUST_BE_REFUSED);
    assert!(complaint.contains(TOO_FEW), "{complaint}");
    takes(&namespace, [with("spec/replicas", json!(2))]);
}

#[test]
fn refused_change_gives_one_message() {
    let namespace = Namespace::create("api-one-change");
    namespace.apply(&cluster().to_string()).unwrap();
    let template = |field: &str, value: Value| with(&format!("spec/storage/volumeClaimTemplate/{field}"), value);
    let mut lost = cluster();
    lost["spec"]["storage"] = json!({"ephemeral": {}, "volumeClaimTemplate": null});
    for (manifest, sentence) in [
        (sized(json!("1Mi")), SHRINKS),
        (sized(json!("big")), "resources.requests.storage must be a size"),
        (sized(json!("-1")), "resources.requests.storage must be a size"),
        (template("storageClassName", json!("another")), FOLLOWS_NOT),
        (template("resources", Value::Null), "resources.requests.storage is missing"),
        (template("resources", json!({"requests": {"storage": null}})), "resources.requests.storage is missing"),
        (template("volumeMode", json!("Block")), "volumeMode must be Filesystem"),
        (template("volumeName", json!("v")), "volumeName cannot be set"),
        (with("spec/storage/ephemeral", json!({})), "cannot both be set"),
        (lost, OTHER_KIND),
        (migrating(with("spec/replicas", json!(0))), "spec.replicas must be at least 1"),
        (migrating(with("spec/replicas", json!(1))), TOO_FEW),
    ] {
        let complaint = namespace.try_apply(&manifest.to_string()).expect_err(MUST_BE_REFUSED);
        assert!(complaint.contains(sentence), "wanted: {sentence}\ngot: {complaint}");
        assert!(!complaint.contains("\n* "), "kubectl lists several complaints: {complaint}");
    }
}

#[test]
fn backup_before_upgrade_is_validated() {
    let namespace = Namespace::create("api-upgrade");
    let backup_first = |value: Value| with("spec/upgrade/backupFirst", value);
    takes(&namespace, [true, false].map(|value| backup_first(json!(value))));
    takes(&namespace, [with("spec/upgrade", json!({}))]);
    refuses(&namespace, [json!("true"), json!(1)].map(|value| (backup_first(value), "spec.upgrade.backupFirst")));
    refuses(&namespace, [(with("spec/upgrade/backupLast", json!(true)), "unknown field")]);
    namespace.apply(&backup_first(json!(true)).to_string()).unwrap();
    namespace.apply(&backup_first(json!(false)).to_string()).unwrap();
    assert_eq!(namespace.get("etcdcluster c")["spec"]["upgrade"]["backupFirst"], false);
}

/// A peer of a cluster that is not there, so that the operator leaves it alone.
fn peer() -> Value {
    let mut peer = cluster();
    peer["kind"] = json!("EtcdPeer");
    peer["metadata"]["name"] = json!("c-0");
    peer["spec"].as_object_mut().unwrap().remove("replicas");
    peer["spec"]["clusterName"] = json!("c");
    peer["spec"]["bootstrap"] = json!({
        "static": {"initialCluster": [{"name": "c-0", "host": "c-0.c"}]},
        "initialClusterState": "New",
    });
    peer
}

#[test]
fn peers_are_immutable() {
    let namespace = Namespace::create("api-peers");
    let mut peer = peer();
    namespace.apply(&peer.to_string()).unwrap();
    let ids = r#"{"status":{"memberID":"8e9e05c52164694d","clusterID":"cdf818194e3a8c32","started":true}}"#;
    namespace.kubectl(&format!("patch etcdpeer c-0 --subresource=status --type=merge --patch {ids}"));
    let table = namespace.kubectl("get etcdpeers");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "CLUSTER", "MEMBER", "VERSION", "SERVER-VERSION", "AGE"]);
    assert_eq!(rows[1][..4], ["c-0", "c", "8e9e05c52164694d", "3.6.16"]);
    peer["spec"]["version"] = json!("3.7.3");
    let complaint = namespace.apply(&peer.to_string()).expect_err(MUST_BE_REFUSED);
    assert!(complaint.contains("spec of an EtcdPeer cannot be changed"), "{complaint}");
    peer["spec"]["bootstrap"]["initialClusterState"] = json!("Perhaps");
    let complaint = kubectl_with_input(&["--namespace", &namespace.name, "apply", "-f", "-"], &peer.to_string())
        .expect_err(MUST_BE_REFUSED);
    assert!(complaint.contains("\"New\", \"Existing\""), "{complaint}");
}

#[test]
fn peers_accept_only_changes_that_kubernetes_makes_in_place() {
    let namespace = Namespace::create("api-peer-changes");
    let stays = "spec of an EtcdPeer cannot be changed, apart from podTemplate.metadata and podTemplate.resources";
    let changed = |field: &str, value: Value| {
        let mut manifest = peer();
        manifest["spec"][field] = value;
        manifest
    };
    let template = |fields: Value| changed("podTemplate", fields);
    let in_place = || {
        [
            json!({"metadata": {"labels": {"team": "storage"}}}),
            json!({"metadata": {"annotations": {"a": "b"}}}),
            json!({"resources": {"requests": {"cpu": "100m"}}}),
            json!({"metadata": {"labels": {"team": "other"}}, "resources": {"limits": {"memory": "1Gi"}}}),
            json!({}),
        ]
    };
    // Fields that need another pod, or another member, with two values each.
    let lasting = [
        ("affinity", json!({"podAntiAffinity": {}}), json!({"podAffinity": {}})),
        ("tolerations", json!([{"operator": "Exists"}]), json!([])),
        ("nodeSelector", json!({"disk": "fast"}), json!({"disk": "slow"})),
        (
            "topologySpreadConstraints",
            json!([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]),
            json!([{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]),
        ),
        ("priorityClassName", json!("high"), json!("low")),
        ("imagePullSecrets", json!([{"name": "a"}]), json!([{"name": "b"}])),
    ];

    // A peer without a podTemplate gets one.
    namespace.apply(&peer().to_string()).unwrap();
    takes(&namespace, in_place().map(template));
    for (field, value, _) in &lasting {
        let mut with_labels = json!({"metadata": {"labels": {"team": "storage"}}});
        with_labels[*field] = value.clone();
        refuses(&namespace, [(template(json!({*field: value})), stays), (template(with_labels), stays)]);
    }
    for (field, value) in [
        ("clusterName", json!("d")),
        ("version", json!("3.6.15")),
        ("storage", json!({"volumeClaimTemplate": {"resources": {"requests": {"storage": "1Gi"}}}})),
        ("image", json!({"pullPolicy": "Always"})),
        ("etcd", json!({"snapshotCount": 50})),
        ("bootstrap", Value::Null),
        ("bootstrap", json!({"initialClusterState": "Existing"})),
    ] {
        refuses(&namespace, [(changed(field, value), stays)]);
    }

    // A peer with nothing but what can be changed in its podTemplate loses it.
    namespace.apply(&template(in_place()[3].clone()).to_string()).unwrap();
    takes(&namespace, in_place().map(template));
    takes(&namespace, [peer()]);

    // A peer with all of it keeps the rest.
    let full: serde_json::Map<String, Value> =
        lasting.iter().map(|(field, value, _)| (field.to_string(), value.clone())).collect();
    let full_peer = |more: Value| {
        let mut fields = full.clone();
        fields.extend(more.as_object().unwrap().clone());
        let mut manifest = template(fields.into());
        manifest["metadata"]["name"] = json!("c-1");
        manifest
    };
    namespace.apply(&full_peer(in_place()[0].clone()).to_string()).unwrap();
    takes(&namespace, in_place().map(full_peer));
    for (field, _, other) in &lasting {
        refuses(&namespace, [(full_peer(json!({*field: other})), stays), (full_peer(json!({*field: null})), stays)]);
    }
    let mut bare = peer();
    bare["metadata"]["name"] = json!("c-1");
    refuses(&namespace, [(bare, stays)]);
}
