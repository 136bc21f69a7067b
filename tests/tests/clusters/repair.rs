//! What somebody deletes or changes by hand is put right, and one cluster's trouble is not another's.

use std::time::{Duration, Instant};

use e2e::etcd::{Etcd, manifest};
use e2e::{Namespace, SAFETY, eventually, finish, is, try_kubectl};
use lab::{api, faults};

#[test]
fn deleted_or_edited_objects_are_repaired() {
    let namespace = Namespace::create("repair");
    let etcd = Etcd::create(&namespace, &manifest("c", 3));
    let members = etcd.members();
    let soon = Duration::from_secs(30);
    namespace.kubectl("delete service c c-client");
    namespace.kubectl("delete pdb c");
    eventually("Services and budget are back", soon, || {
        is((etcd.names_of("services"), etcd.names_of("pdb")), (vec!["c".into(), "c-client".into()], vec!["c".into()]))
    });

    namespace.kubectl(
        "patch service c-client --type=merge -p {\"spec\":{\"selector\":{\"app.kubernetes.io/name\":\"other\"}}}",
    );
    eventually("the selector is as it was", soon, || {
        is(
            namespace.get("service c-client")["spec"]["selector"]["app.kubernetes.io/name"].as_str().map(str::to_owned),
            Some("etcd".to_owned()),
        )
    });

    namespace.kubectl("label pod c-0 etcd.improbable.io/cluster-name-");
    namespace.kubectl("label pvc c-1 etcd.improbable.io/peer-name-");
    namespace.kubectl("label pvc c-2 app.kubernetes.io/name- etcd.improbable.io/cluster-name-");
    eventually("the labels are back", soon, || {
        let label =
            |object: &str, name: &str| namespace.get(object)["metadata"]["labels"][name].as_str().map(str::to_owned);
        let labels = [
            label("pod c-0", "etcd.improbable.io/cluster-name"),
            label("pvc c-1", "etcd.improbable.io/peer-name"),
            label("pvc c-2", "etcd.improbable.io/cluster-name"),
        ];
        is(labels, ["c", "c-1", "c"].map(|value| Some(value.to_owned())))
    });

    namespace.kubectl("delete etcdpeer c-2");
    namespace.kubectl("delete pod c-1 --now");
    etcd.wait_for(3);
    eventually("the same members run", Duration::from_secs(60), || is(etcd.members(), members.clone()));
    etcd.wait_for(3);
}

/// A cluster whose etcd hangs costs the others nothing: a new one beside it comes up as usual.
#[test]
fn hanging_cluster_does_not_slow_the_others() {
    let namespace = Namespace::create("repair-hang");
    let hanging: Vec<Etcd> = ["a", "b"].map(|name| Etcd::create(&namespace, &manifest(name, 1))).into_iter().collect();
    let client = || async { api::client().await.unwrap() };
    for etcd in &hanging {
        let pod = format!("{}-0", etcd.name);
        finish(async { faults::pause_container(&client().await, "repair-hang", &pod, "etcd").await }).unwrap();
    }
    let started = Instant::now();
    Etcd::create(&namespace, &manifest("quick", 3));
    println!("beside two hanging clusters a third came up after {:?}", started.elapsed());
    for etcd in &hanging {
        eventually("the hanging cluster says so", Duration::from_secs(60), || {
            let available = etcd.condition("Available");
            if available["status"] == "False" { Ok(()) } else { Err(available.to_string()) }
        });
        let pod = format!("{}-0", etcd.name);
        finish(async { faults::resume_container(&client().await, "repair-hang", &pod, "etcd").await }).unwrap();
        etcd.wait_for(1);
    }
}

/// A pod that somebody else made under a member's name stops that one cluster, with a sentence, and nothing is deleted.
#[test]
fn pod_not_owned_by_the_cluster_is_left_alone() {
    let namespace = Namespace::create("repair-foreign");
    namespace.kubectl("run c-0 --image=busybox:lab --restart=Never -- sleep 3600");
    namespace.wait_for_pod("c-0");
    namespace.apply(&manifest("c", 1).to_string()).unwrap();
    eventually("the operator says what is in the way", Duration::from_secs(60), || {
        let events = namespace.kubectl("get events --field-selector reason=ReconcileFailed");
        if events.contains("is not owned by this cluster") { Ok(()) } else { Err(events) }
    });
    assert!(try_kubectl("--namespace repair-foreign exec c-0 -- true").is_ok(), "the other pod still runs");
}

/// A claim that somebody else made under a member's name may hold anything: no cluster is bootstrapped on it.
#[test]
fn claim_not_owned_by_the_cluster_is_left_alone() {
    let namespace = Namespace::create("repair-claim");
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c-0}\n\
                 spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 50Mi}}}\n";
    namespace.apply(claim).unwrap();
    namespace.apply(&manifest("c", 1).to_string()).unwrap();
    eventually("the operator says what is in the way", Duration::from_secs(60), || {
        let events = namespace.kubectl("get events --field-selector reason=ReconcileFailed");
        if events.contains("that the operator did not make (c-0)") { Ok(()) } else { Err(events) }
    });
    assert_eq!(namespace.get("pods")["items"].as_array().map(Vec::len), Some(0), "{SAFETY}nothing was started");
}

/// A Service that somebody else made under the cluster's name is not taken over, and the members run nevertheless.
#[test]
fn service_not_owned_by_the_cluster_is_left_alone() {
    let namespace = Namespace::create("repair-service");
    namespace.kubectl("create service clusterip c-client --tcp=80:80");
    Etcd::create(&namespace, &manifest("c", 1));
    eventually("the operator says what is in the way", Duration::from_secs(60), || {
        let events = namespace.kubectl("get events --field-selector reason=ReconcileFailed");
        if events.contains("Service c-client already that is not owned by this cluster") { Ok(()) } else { Err(events) }
    });
    assert_eq!(namespace.get("service c-client")["spec"]["ports"][0]["port"], 80, "{SAFETY}it is as it was");
}
