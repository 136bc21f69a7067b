//! A member that has lost its data is given up, and a new one takes its place and its name.

use std::time::{Duration, Instant};

use e2e::etcd::{Etcd, Members, manifest, manifest_with_quick_replacement};
use e2e::writer::write;
use e2e::{Namespace, SAFETY, inject};
use serde_json::{Value, json};

/// Strikes c-1 so that its data is lost, and waits until all is well again. How long c-1 was away.
fn replaced_after(etcd: &Etcd, fault: impl FnOnce()) -> Duration {
    let before = etcd.members();
    let injected_at = Instant::now();
    fault();
    etcd.wait_until_replaced("c-1", before["c-1"].0);
    let away = injected_at.elapsed();
    etcd.wait_until_whole(3);

    let others = |members: &Members| {
        members.iter().filter(|(name, _)| *name != "c-1").map(|(name, it)| (name.clone(), *it)).collect::<Vec<_>>()
    };
    assert_eq!(others(&etcd.members()), others(&before), "{SAFETY}nobody else was touched");
    etcd.assert_voters(3);
    etcd.assert_same_data(3);
    away
}

fn is_replaced(namespace: &str, manifest: &Value, fault: impl FnOnce(&Namespace)) {
    let namespace = Namespace::create(namespace);
    let etcd = Etcd::create(&namespace, manifest);
    let written = write(50, &etcd);
    replaced_after(&etcd, || fault(&namespace));
    written.assert_kept(&etcd);
}

#[test]
fn member_with_deleted_claim_and_pod_is_replaced() {
    let namespace = Namespace::create("heal-claim");
    let etcd = Etcd::create(&namespace, &manifest("c", 3));
    let written = write(50, &etcd);

    let (run, injected_at) = (etcd.run_of("c-1"), Instant::now());
    namespace.kubectl("delete pod c-1 --now");
    etcd.wait_until_restarted("c-1", &run);
    let restart = injected_at.elapsed();
    etcd.wait_until_whole(3);

    let replacement = replaced_after(&etcd, || {
        // The claim goes when nobody uses it any more, so it can't be waited for before the pod is deleted.
        namespace.kubectl("delete pvc c-1 --wait=false");
        namespace.kubectl("delete pod c-1 --now");
    });
    let ratio = replacement.as_secs_f64() / restart.as_secs_f64();
    println!(
        "a restarted pod was back after {restart:.1?}, a new member after {replacement:.1?}: {ratio:.1} times that"
    );
    written.assert_kept(&etcd);
    etcd.assert_objects(3);
}

#[test]
fn member_with_wiped_volume_is_replaced_when_its_pod_is_deleted() {
    is_replaced("heal-wiped-pod", &manifest("c", 3), |namespace| {
        inject::wipe_volume(&namespace.name, "c-1");
        namespace.kubectl("delete pod c-1 --now");
    });
}

/// The pod stays, so nothing looks at the data before etcd does: it must not pass for the member that it was.
#[test]
fn member_with_wiped_volume_is_replaced_when_its_container_is_killed() {
    is_replaced("heal-wiped-kill", &manifest_with_quick_replacement("c", 3), |namespace| {
        inject::wipe_volume(&namespace.name, "c-1");
        inject::kill_container(&namespace.name, "c-1", "etcd").unwrap();
    });
}

#[test]
fn ephemeral_member_with_deleted_pod_is_replaced() {
    let mut cluster = manifest("c", 3);
    cluster["spec"]["storage"] = json!({"ephemeral": {}});
    is_replaced("heal-ephemeral", &cluster, |namespace| {
        namespace.kubectl("delete pod c-1 --now");
    });
}
