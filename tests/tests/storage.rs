//! The lab's three storage classes, as a pod without root's rights sees them.

use std::time::Duration;

use e2e::{Namespace, eventually, is, try_kubectl};

/// A claim and a pod that writes a file on it, as somebody who is not root.
fn pod_with_claim(class: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {class}}}
spec:
  storageClassName: {class}
  accessModes: [ReadWriteOnce]
  resources: {{requests: {{storage: 50Mi}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: {class}}}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {{runAsUser: 1000, runAsGroup: 1000, fsGroup: 2000, runAsNonRoot: true}}
  containers:
  - name: writer
    image: busybox:lab
    command: [sh, -c, "id -u > /data/who && sync && sleep 3600"]
    readinessProbe: {{exec: {{command: [cat, /data/who]}}, periodSeconds: 1}}
    volumeMounts: [{{name: data, mountPath: /data}}]
  volumes: [{{name: data, persistentVolumeClaim: {{claimName: {class}}}}}]
"#
    )
}

fn capacity(namespace: &Namespace, claim: &str) -> String {
    namespace.kubectl(&format!("get pvc {claim} -o jsonpath={{.status.capacity.storage}}"))
}

const BIGGER: &str = r#"{"spec":{"resources":{"requests":{"storage":"100Mi"}}}}"#;

fn writes_grows_and_goes(class: &str) {
    let namespace = Namespace::create(&format!("storage-{class}"));
    namespace.apply(&pod_with_claim(class)).unwrap();
    namespace.wait_for_pod(class);
    assert_eq!(namespace.kubectl(&format!("exec {class} -- cat /data/who")), "1000");
    assert_eq!(namespace.kubectl(&format!("exec {class} -- stat -c %g /data/who")), "2000", "fsGroup is honoured");
    assert_eq!(capacity(&namespace, class), "50Mi");

    namespace.kubectl(&format!("patch pvc {class} --type=merge -p {BIGGER}"));
    eventually("the claim has grown", Duration::from_secs(20), || is(capacity(&namespace, class).as_str(), "100Mi"));

    let claim = namespace.get(&format!("pvc {class}"));
    assert!(claim["status"]["conditions"].is_null(), "no resize is under way: {}", claim["status"]);

    let volume = namespace.kubectl(&format!("get pvc {class} -o jsonpath={{.spec.volumeName}}"));
    assert_eq!(namespace.get(&format!("pv {volume}"))["spec"]["capacity"]["storage"], "100Mi");
    let folder = namespace.kubectl(&format!("get pv {volume} -o jsonpath={{.spec.local.path}}"));
    assert!(std::path::Path::new(&folder).join("who").exists(), "the file is in {folder}");
    namespace.kubectl(&format!("delete pod,pvc {class}"));
    eventually("the released volume is deleted", Duration::from_secs(30), || {
        match try_kubectl(&format!("get pv {volume}")) {
            Err(complaint) if complaint.contains("NotFound") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    assert!(!std::path::Path::new(&folder).exists(), "{folder} should be gone with its volume");
}

#[test]
fn standard_volume_is_written_expanded_and_deleted() {
    writes_grows_and_goes("standard");
}

#[test]
fn network_volume_is_written_expanded_and_deleted() {
    writes_grows_and_goes("network");
}

#[test]
fn storage_class_fixed_refuses_to_expand_volumes() {
    let namespace = Namespace::create("storage-fixed");
    namespace.apply(&pod_with_claim("fixed")).unwrap();
    namespace.wait_for_pod("fixed");
    let refusal = try_kubectl(&format!("--namespace {} patch pvc fixed --type=merge -p {BIGGER}", namespace.name));
    let complaint = refusal.unwrap_err();
    assert!(complaint.contains("must support resize"), "{complaint}");
    assert_eq!(capacity(&namespace, "fixed"), "50Mi");
}

#[test]
fn storage_class_standard_is_the_default_and_stays_on_its_node() {
    let namespace = Namespace::create("storage-bound");
    namespace.apply(&pod_with_claim("standard").replace("storageClassName: standard", "")).unwrap();
    namespace.wait_for_pod("standard");
    let claim = namespace.get("pvc standard");
    assert_eq!(claim["spec"]["storageClassName"], "standard");
    let volume = claim["spec"]["volumeName"].as_str().unwrap().to_owned();
    let node = namespace.kubectl("get pod standard -o jsonpath={.spec.nodeName}");
    let bound = namespace.get(&format!("pv {volume}"))["spec"]["nodeAffinity"].to_string();
    assert!(bound.contains(&node), "the volume of a pod on {node} is bound to {bound}");
}

#[test]
fn network_volume_follows_its_pod_to_another_node() {
    let namespace = Namespace::create("storage-moves");
    let manifest = pod_with_claim("network");
    let on = |node: &str| {
        manifest.replace(
            "  terminationGracePeriodSeconds: 0",
            &format!("  terminationGracePeriodSeconds: 0\n  nodeName: {node}"),
        )
    };
    namespace.apply(&on("node1")).unwrap();
    namespace.wait_for_pod("network");
    namespace.kubectl("exec network -- sh -c echo${IFS}hello>/data/greeting");
    namespace.kubectl("delete pod network");
    namespace.apply(&on("node2")).unwrap();
    namespace.wait_for_pod("network");
    assert_eq!(namespace.kubectl("get pod network -o jsonpath={.spec.nodeName}"), "node2");
    assert_eq!(namespace.kubectl("exec network -- cat /data/greeting"), "hello");
}
