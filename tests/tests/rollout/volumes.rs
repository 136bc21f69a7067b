//! Volumes grow while they are used. What they can't become is had by new members on new volumes, if the user wants that.

use std::collections::BTreeSet;
use std::time::Duration;

use e2e::etcd::{Etcd, manifest};
use e2e::health::HEALING;
use e2e::writer::Writer;
use e2e::{Namespace, SAFETY, eventually, is, stays};
use serde_json::{Value, json};

/// What a claim asks for, what it has, and what the status of the cluster says of it.
fn sizes_of(etcd: &Etcd, member: &str) -> [Value; 3] {
    // While a member is replaced, there may be none.
    let claim = etcd.namespace.find(&format!("pvc {member}")).unwrap_or_default();
    let reported = etcd.status()["members"].as_array().cloned().unwrap_or_default();
    let reported = reported.into_iter().find(|it| it["name"] == member).unwrap_or_default();
    [
        claim["spec"]["resources"]["requests"]["storage"].clone(),
        claim["status"]["capacity"]["storage"].clone(),
        reported["volumeSize"].clone(),
    ]
}

fn wait_for_size(etcd: &Etcd, size: &str) {
    for name in etcd.names(3) {
        eventually(&format!("the volume of {name} has {size}"), HEALING, || {
            is(sizes_of(etcd, &name), [size; 3].map(|size| json!(size)))
        });
    }
}

fn resized(size: &str) -> Value {
    json!({"resources": {"requests": {"storage": size}}})
}

#[test]
fn claims_are_expanded_without_restarts() {
    let namespace = Namespace::create("roll-claims");
    let etcd = Etcd::create(&namespace, &manifest("c", 3));
    wait_for_size(&etcd, "50Mi");
    let (pods, claims) = (etcd.uids_of("pods"), etcd.uids_of("pvc"));
    etcd.patch(&json!({"spec": {"storage": {"volumeClaimTemplate": resized("100Mi")}}}));
    wait_for_size(&etcd, "100Mi");
    etcd.wait_until_whole(3);
    etcd.says("Progressing", "False", "UpToDate", &[]).expect("it is as asked for");
    assert_eq!(etcd.uids_of("pods"), pods, "{SAFETY}nobody was restarted");
    assert_eq!(etcd.uids_of("pvc"), claims, "{SAFETY}they have the same claims");
    let told: BTreeSet<String> = etcd.events("VolumeExpanded").into_iter().map(|(about, _)| about).collect();
    assert_eq!(told, etcd.names(3).into_iter().collect(), "of whom it is told");
}

#[test]
fn unexpandable_volumes_are_reported_and_migrated_on_request_under_load() {
    let namespace = Namespace::create("roll-migrate");
    let mut cluster = manifest("c", 3);
    cluster["spec"]["storage"]["volumeClaimTemplate"]["storageClassName"] = json!("fixed");
    let etcd = Etcd::create(&namespace, &cluster);
    let (members, id) = (etcd.members(), etcd.status()["clusterID"].clone());
    let (pods, claims) = (etcd.uids_of("pods"), etcd.uids_of("pvc"));
    let writer = Writer::start(&namespace, "c");

    let says_the_way = || {
        etcd.says("Progressing", "False", "VolumeExpansionUnsupported", &["can't become", "set spec.storage.migrate"])?;
        is((etcd.uids_of("pods"), etcd.uids_of("pvc")), (pods.clone(), claims.clone()))
    };
    etcd.patch(&json!({"spec": {"storage": {"volumeClaimTemplate": resized("100Mi")}}}));
    eventually("the status says what to do", Duration::from_secs(30), says_the_way);
    println!("{}", etcd.condition("Progressing")["message"]);
    stays("nothing moves", Duration::from_secs(5), says_the_way);

    // Now that members are replaced anyway, their volumes may as well be of another class.
    let template = json!({"storageClassName": "network"});
    etcd.patch(&json!({"spec": {"storage": {"migrate": true, "volumeClaimTemplate": template}}}));
    wait_for_size(&etcd, "100Mi");
    etcd.wait_until_whole(3);
    let written = writer.finish();
    written.assert_kept(&etcd);
    etcd.assert_voters(3);
    etcd.assert_objects(3);
    etcd.assert_same_data(3);
    assert_eq!(etcd.status()["clusterID"], id, "{SAFETY}it is the same cluster");
    let after = etcd.members();
    for name in etcd.names(3) {
        assert_eq!(namespace.get(&format!("pvc {name}"))["spec"]["storageClassName"], "network");
        assert_ne!(after[&name].0, members[&name].0, "{name} is another member");
    }
}
