//! A cluster comes into being as it was described.

use e2e::Namespace;
use e2e::etcd::{Etcd, manifest};
use serde_json::{Value, json};

#[test]
fn new_cluster_serves_and_its_status_is_accurate() {
    let namespace = Namespace::create("create-sample");
    let mut three = manifest("c", 3);
    three["spec"]["podTemplate"] = json!({
        "metadata": {"labels": {"team": "storage"}, "annotations": {"prometheus.io/scrape": "true"}},
        "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"cpu": "1900m", "memory": "300Mi"}},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "reserved", "operator": "Exists"}],
        "priorityClassName": "system-cluster-critical",
    });
    three["spec"]["etcd"] = json!({
        "quotaBackendBytes": "1Gi",
        "snapshotCount": 5000,
        "autoCompaction": {"mode": "Periodic", "retention": "1h"},
        "extraArgs": {"log-level": "warn"},
    });
    let etcd = Etcd::create(&namespace, &three);
    etcd.assert_voters(3);
    etcd.put("greeting", "hello");
    etcd.assert_has("greeting", "hello");

    let status = etcd.status();
    for (name, (id, _)) in etcd.members() {
        let reported = status["members"].as_array().unwrap().iter().find(|member| member["name"] == name.as_str());
        let reported = reported.unwrap_or_else(|| panic!("{name} is not in {status}"));
        assert_eq!(reported["id"], format!("{id:x}"), "{name} has the ID that etcd gave it");
        assert_eq!(reported["healthy"], true);
        assert_eq!(reported["version"], "3.6.16");
        let peer = namespace.get(&format!("etcdpeer {name}"));
        assert_eq!(peer["status"]["serverVersion"], "3.6.16");
    }
    // etcd takes some seconds until it has heard of all members which version they are.
    e2e::eventually("the members agree on a version", std::time::Duration::from_secs(20), || {
        e2e::is(etcd.status()["clusterVersion"].as_str(), Some("3.6.0"))
    });
    assert!(status["clusterID"].as_str().is_some_and(|id| !id.is_empty()));
    assert_eq!(etcd.condition("Available")["status"], "True");
    assert_eq!(etcd.condition("Degraded")["status"], "False");
    assert_eq!(etcd.condition("Progressing")["reason"], "UpToDate");
    let leaders: Vec<&Value> =
        status["members"].as_array().unwrap().iter().filter(|member| member["role"] == "Leader").collect();
    assert_eq!(leaders.len(), 1, "{status}");
    assert_eq!(leaders[0]["name"], status["leader"]);

    let pod = namespace.get("pod c-0");
    assert_eq!(pod["metadata"]["labels"]["team"], "storage");
    assert_eq!(pod["metadata"]["annotations"]["prometheus.io/scrape"], "true");
    assert_eq!(pod["spec"]["priorityClassName"], "system-cluster-critical");
    assert_eq!(pod["spec"]["automountServiceAccountToken"], false);
    let container = &pod["spec"]["containers"][0];
    let environment = container["env"].as_array().unwrap();
    assert!(environment.contains(&json!({"name": "GOMAXPROCS", "value": "1"})), "{environment:?}");
    assert_eq!(container["resources"]["limits"]["cpu"], "1900m");
    assert_eq!(container["livenessProbe"], Value::Null);
    let args = container["args"].to_string();
    for flag in ["--quota-backend-bytes=1073741824", "--snapshot-count=5000", "--log-level=warn"] {
        assert!(args.contains(flag), "no {flag} in {args}");
    }
    assert_eq!(namespace.get("pdb c")["spec"]["minAvailable"], 2);
    let nodes: std::collections::BTreeSet<String> = (0..3)
        .map(|ordinal| namespace.kubectl(&format!("get pod c-{ordinal} -o jsonpath={{.spec.nodeName}}")))
        .collect();
    assert_eq!(nodes.len(), 3, "members prefer different nodes");
}

/// The strictest Pod Security level admits the pods, and clients reach the cluster by the name of its Service.
#[test]
fn members_run_in_a_restricted_namespace_and_serve_through_the_client_service() {
    let namespace = Namespace::create("create-restricted");
    namespace.kubectl("label namespace create-restricted pod-security.kubernetes.io/enforce=restricted");
    let mut one = manifest("c", 1);
    one["spec"]["storage"] = json!({"ephemeral": {"medium": "Memory"}});
    one["spec"]["version"] = json!("3.7.3");
    let etcd = Etcd::create(&namespace, &one);
    assert!(etcd.names_of("pvc").is_empty(), "an ephemeral cluster has no claims");
    let through_service = "exec c-0 -c etcd -- etcdctl --endpoints=http://c-client:2379 put greeting hello";
    assert_eq!(namespace.kubectl(through_service), "OK");
    let by_srv = "exec c-0 -c etcd -- etcdctl --discovery-srv=c.create-restricted.svc.cluster.local get greeting --print-value-only";
    assert_eq!(namespace.kubectl(by_srv), "hello", "members are found by SRV records");
}

#[test]
fn version_without_an_image_is_reported() {
    let namespace = Namespace::create("create-no-image");
    let mut cluster = manifest("c", 1);
    cluster["spec"]["version"] = json!("3.6.99");
    namespace.apply(&cluster.to_string()).unwrap();
    let etcd = Etcd { namespace: &namespace, name: "c".to_owned() };
    let pod = e2e::eventually("the pod can't get its image", std::time::Duration::from_secs(60), || {
        let pod = namespace.get("pods")["items"][0].clone();
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"];
        if waiting.as_str().is_some_and(|reason| reason.contains("Image")) {
            Ok(pod)
        } else {
            Err(pod["status"].to_string())
        }
    });
    assert_eq!(pod["metadata"]["name"], "c-0");
    assert_eq!(etcd.condition("Available")["status"], "False");
    assert_eq!(etcd.condition("Progressing")["reason"], "Bootstrapping");
}

/// An initial member whose node comes late is still an initial member: it starts with no data, and is let in.
#[test]
fn initial_member_that_starts_late_joins() {
    let namespace = Namespace::create("create-late");
    for node in ["node1", "node2"] {
        namespace.kubectl(&format!("label node {node} --overwrite create-late=yes"));
    }
    namespace.kubectl("label node node3 create-late-");
    let mut cluster = manifest("c", 3);
    let term = json!({
        "labelSelector": {"matchLabels": {"etcd.improbable.io/cluster-name": "c"}},
        "topologyKey": "kubernetes.io/hostname",
    });
    cluster["spec"]["podTemplate"] = json!({
        "nodeSelector": {"create-late": "yes"},
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    });
    namespace.apply(&cluster.to_string()).unwrap();
    let etcd = Etcd { namespace: &namespace, name: "c".to_owned() };
    e2e::eventually("two initial members serve, and the third is missed", std::time::Duration::from_secs(60), || {
        let (available, degraded) = (etcd.condition("Available"), etcd.condition("Degraded"));
        let message = degraded["message"].as_str().unwrap_or_default();
        let told = available["status"] == "True" && message.contains("pod not scheduled");
        if told { Ok(()) } else { Err(format!("{available} {degraded}")) }
    });
    etcd.put("greeting", "hello");
    namespace.kubectl("label node node3 create-late=yes");
    etcd.wait_for(3);
    etcd.assert_voters(3);
    for node in ["node1", "node2", "node3"] {
        namespace.kubectl(&format!("label node {node} create-late-"));
    }
}
