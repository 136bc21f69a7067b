//! The faults that the lab injects do what they say, and can be undone. Two of them hit whole nodes, each its own, and
//! the others nothing but a pod on the third, so they run side by side.

use std::time::Duration;

use e2e::etcd::etcdctl;
use e2e::outage::wait_for_node;
use e2e::{Namespace, eventually, finish, inject, is, try_kubectl};
use lab::node::Node;
use lab::{api, faults};

/// An etcd of one member on a given node, with its data on a claim. Everything it needs to live through a power cut.
fn etcd_on(node: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: data}}
spec:
  accessModes: [ReadWriteOnce]
  resources: {{requests: {{storage: 50Mi}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: etcd}}
spec:
  nodeSelector: {{kubernetes.io/hostname: {node}}}
  terminationGracePeriodSeconds: 0
  securityContext: {{runAsUser: 1000, fsGroup: 1000, runAsNonRoot: true}}
  containers:
  - name: etcd
    image: quay.io/coreos/etcd:v3.6.16
    command: [/usr/local/bin/etcd, --data-dir=/data/data, "--listen-client-urls=http://0.0.0.0:2379", "--advertise-client-urls=http://127.0.0.1:2379"]
    readinessProbe: {{exec: {{command: [etcdctl, endpoint, health]}}, periodSeconds: 1, timeoutSeconds: 5}}
    volumeMounts: [{{name: data, mountPath: /data}}]
  volumes: [{{name: data, persistentVolumeClaim: {{claimName: data}}}}]
"#
    )
}

fn start_etcd(name: &str, node: &str) -> Namespace {
    let namespace = Namespace::create(name);
    namespace.apply(&etcd_on(node)).unwrap();
    namespace.wait_for_pod("etcd");
    assert_eq!(namespace.kubectl("exec etcd -- etcdctl put greeting hello"), "OK");
    namespace
}

/// The value that etcd has, empty if it has none, or why it can't be asked.
fn greeting(namespace: &Namespace) -> Result<String, String> {
    let etcdctl = "exec etcd -- etcdctl --command-timeout=2s get greeting --print-value-only";
    try_kubectl(&format!("--namespace {} {etcdctl}", namespace.name))
}

/// Asks etcd from outside of Kubernetes, by the pod's address.
fn answers(address: &str) -> bool {
    etcdctl(&format!("http://{address}:2379"), &["get", "greeting"]).is_ok()
}

#[test]
fn node_loses_power_and_comes_back() {
    let node = Node::named("node1").unwrap();
    let namespace = start_etcd("fault-power", "node1");
    let address = namespace.kubectl("get pod etcd -o jsonpath={.status.podIP}");
    assert!(answers(&address));

    node.stop().unwrap();
    assert!(!node.is_on());
    assert!(!answers(&address), "a pod on a node without power must not answer");
    wait_for_node(node, false);

    finish(node.start()).unwrap();
    wait_for_node(node, true);
    let value = eventually("etcd is back", Duration::from_secs(60), || greeting(&namespace));
    assert_eq!(value, "hello");
    // The kubelet reports it a moment later.
    eventually("the restart is counted", Duration::from_secs(30), || {
        is(namespace.get("pod etcd")["status"]["containerStatuses"][0]["restartCount"].as_i64(), Some(1))
    });
}

#[test]
fn node_is_cut_from_the_network_and_reconnected() {
    let node = Node::named("node2").unwrap();
    let namespace = start_etcd("fault-cut", "node2");
    let address = namespace.kubectl("get pod etcd -o jsonpath={.status.podIP}");

    node.cut().unwrap();
    assert!(!answers(&address), "a pod on a node without network must not answer");
    wait_for_node(node, false);

    node.heal().unwrap();
    wait_for_node(node, true);
    eventually("etcd answers again", Duration::from_secs(30), || is(answers(&address), true));
    assert_eq!(namespace.get("pod etcd")["status"]["containerStatuses"][0]["restartCount"], 0, "it ran all the time");
}

#[test]
fn volume_is_wiped_or_destroyed() {
    let namespace = start_etcd("fault-volume", "node3");
    let client = || async { api::client().await.unwrap() };

    finish(async { faults::wipe_volume(&client().await, &namespace.name, "data").await }).unwrap();
    namespace.kubectl("delete pod etcd");
    namespace.apply(&etcd_on("node3")).unwrap();
    namespace.wait_for_pod("etcd");
    assert_eq!(greeting(&namespace).as_deref(), Ok(""), "an emptied volume has no data");

    finish(async { faults::destroy_volume(&client().await, &namespace.name, "data").await }).unwrap();
    namespace.kubectl("delete pod etcd");
    namespace.apply(&etcd_on("node3")).unwrap();
    eventually("the pod can't mount what is gone", Duration::from_secs(60), || {
        let events = namespace.kubectl("get events --field-selector reason=FailedMount");
        if events.contains("FailedMount") { Ok(()) } else { Err("no such event".to_owned()) }
    });
}

#[test]
fn value_is_corrupted_under_a_running_etcd_and_stays_so() {
    let namespace = start_etcd("fault-corrupt", "node3");
    assert_eq!(namespace.kubectl("exec etcd -- etcdctl put greeting unmistakable"), "OK");
    let complaint = inject::corrupt_volume(&namespace.name, "data", "never written").unwrap_err();
    assert!(complaint.contains("is nowhere in"), "{complaint}");

    inject::corrupt_volume_for_good((&namespace.name, "data", "unmistakable"), || {
        namespace.kubectl("exec etcd -- etcdctl put something else");
        is(greeting(&namespace), Ok("tnmistakable".to_owned()))
    });
    assert_eq!(namespace.kubectl("exec etcd -- etcdctl put another value"), "OK");
    assert_eq!(greeting(&namespace).as_deref(), Ok("tnmistakable"), "a neighbour that is written does not repair it");
    inject::kill_container(&namespace.name, "etcd", "etcd").unwrap();
    let value = eventually("etcd is back", Duration::from_secs(60), || greeting(&namespace));
    assert_eq!(value, "tnmistakable", "nor does a new start");
}

#[test]
fn container_is_paused_and_resumed() {
    let namespace = start_etcd("fault-pause", "node3");
    let address = namespace.kubectl("get pod etcd -o jsonpath={.status.podIP}");
    let client = || async { api::client().await.unwrap() };

    finish(async { faults::pause_container(&client().await, &namespace.name, "etcd", "etcd").await }).unwrap();
    assert!(!answers(&address), "a paused process must not answer");

    finish(async { faults::resume_container(&client().await, &namespace.name, "etcd", "etcd").await }).unwrap();
    eventually("etcd answers again", Duration::from_secs(30), || is(answers(&address), true));
    assert_eq!(namespace.get("pod etcd")["status"]["containerStatuses"][0]["restartCount"], 0);
}
