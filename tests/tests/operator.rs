//! The deployed operator: two pods, one leader, a quick change of leaders, and the endpoints that others watch.

use std::time::{Duration, Instant};

use e2e::operator::{IN_ITS_NAMESPACE, leader, name, running_pods};
use e2e::{Namespace, SAFETY, eventually, finish, get, is, kubectl, kubectl_with_input, try_kubectl};
use lab::{api, faults};
use serde_json::{Value, json};

const SAMPLE: &str = "config/samples/etcd_v1alpha1_etcdcluster.yaml";

fn another_leader(old: &str) -> Result<String, String> {
    leader().and_then(|pod| if pod == old { Err("still the old one".to_owned()) } else { Ok(pod) })
}

/// What a pod's own endpoint answers, through the API server.
fn fetch(pod: &str, path: &str) -> Result<String, String> {
    try_kubectl(&format!("get --raw /api/v1/namespaces/etcd-operator/pods/{pod}:8080/proxy{path}"))
}

fn restarts_of(pod: &str) -> i64 {
    let pod = get(&format!("{IN_ITS_NAMESPACE} pod {pod}"));
    pod["status"]["containerStatuses"][0]["restartCount"].as_i64().expect("a number of restarts")
}

/// Changes of leaders would disturb each other, so they are one test.
#[test]
fn standby_operator_leads_when_the_leader_hangs_or_is_deleted() {
    eventually("two operator pods run", Duration::from_secs(60), || is(running_pods().len(), 2));
    let first = eventually("one leads", Duration::from_secs(30), leader);
    // Other tests take power from nodes, and pods were restarted with them.
    let before = restarts_of(&first);

    // It hangs without a word: the lease must run out before the other may lead.
    let client = || async { api::client().await.unwrap() };
    let hung = Instant::now();
    finish(async { faults::pause_container(&client().await, "etcd-operator", &first, "etcd-operator").await }).unwrap();
    let second = eventually("the other leads within 20 s", Duration::from_secs(20), || another_leader(&first));
    println!("after the leader hung, another leads after {:?}", hung.elapsed());

    // It wakes up and believes that it still leads: its own deadline is over, so it must end itself.
    finish(async { faults::resume_container(&client().await, "etcd-operator", &first, "etcd-operator").await })
        .unwrap();
    eventually("the old leader has ended itself", Duration::from_secs(20), || is(restarts_of(&first), before + 1));
    // By its own exit code: a kubelet that had killed it would have said 137.
    let end = &get(&format!("{IN_ITS_NAMESPACE} pod {first}"))["status"]["containerStatuses"][0]["lastState"];
    assert_eq!(end["terminated"]["exitCode"], 1, "{end}");
    assert_eq!(leader().as_ref(), Ok(&second));
    eventually("two operator pods run again", Duration::from_secs(60), || is(running_pods().len(), 2));

    // Killed, as a user would: the other leads within 20 s, and a new pod takes the place of the old.
    let killed = Instant::now();
    kubectl(&format!("{IN_ITS_NAMESPACE} delete pod {second} --now"));
    let third = eventually("the other leads within 20 s", Duration::from_secs(20), || another_leader(&second));
    println!("after the leader was killed, another leads after {:?}", killed.elapsed());

    eventually("two operator pods run again", Duration::from_secs(60), || is(running_pods().len(), 2));
    for pod in running_pods().iter().map(name) {
        assert_eq!(fetch(&pod, "/healthz").as_deref(), Ok("ok"));
        assert_eq!(fetch(&pod, "/readyz").as_deref(), Ok("ok"));
        let metrics = fetch(&pod, "/metrics").unwrap();
        let leads = if pod == third { "etcd_operator_leader 1" } else { "etcd_operator_leader 0" };
        assert!(metrics.contains(leads), "{pod}: no `{leads}` in\n{metrics}");
        assert!(metrics.contains("etcd_operator_build_info{version=\""), "{metrics}");
    }
    let log = kubectl(&format!("{IN_ITS_NAMESPACE} logs {third}"));
    assert!(log.to_lowercase().contains("lead"), "the log says who leads:\n{log}");
}

#[test]
fn operator_pods_have_no_rights_on_their_node() {
    for pod in running_pods() {
        let container = &pod["spec"]["containers"][0];
        let security = &container["securityContext"];
        assert_eq!(security["allowPrivilegeEscalation"], false);
        assert_eq!(security["readOnlyRootFilesystem"], true);
        assert_eq!(security["capabilities"]["drop"][0], "ALL");
        assert_eq!(pod["spec"]["securityContext"]["runAsNonRoot"], true);
    }
    let namespace = get("namespace etcd-operator");
    assert_eq!(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
}

/// The operator may do what it does and nothing else: these are what an attacker would try.
#[test]
fn operator_has_no_unneeded_rights() {
    let account = "system:serviceaccount:etcd-operator:etcd-operator";
    let can = |what: &str| try_kubectl(&format!("auth can-i {what} --as={account} -A")).is_ok();
    assert!(can("watch etcdclusters.etcd.improbable.io"));
    for forbidden in [
        "get secrets",
        "create pods --subresource=exec",
        "delete namespaces",
        "create clusterrolebindings",
        "delete etcdclusters.etcd.improbable.io",
        "patch etcdclusters.etcd.improbable.io",
        "delete services",
    ] {
        assert!(!can(forbidden), "{SAFETY}the operator may {forbidden}");
    }
}

/// An operator beside the deployed one that was given a list of namespaces: it sees the clusters there and no others.
#[test]
fn operator_with_a_list_of_namespaces_watches_only_these() {
    let namespaces = ["scope-a", "scope-b", "scope-c"].map(Namespace::create);
    // Clusters that never start, because two operators will look after them.
    let sample = std::fs::read_to_string(e2e::checkout().join(SAMPLE)).unwrap();
    let sample = sample.replace("storageClassName: standard", "storageClassName: nobody-has-this");
    for namespace in &namespaces {
        namespace.apply(&sample).unwrap();
    }
    let mut pod = running_pods().remove(0);
    let mut container = pod["spec"]["containers"][0].take();
    container["args"] =
        json!(["run", "--namespaces=scope-a,scope-b", "--enable-leader-election=false", "--log-format=json"]);
    container["volumeMounts"] = json!([]);
    let manifest = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "scoped"},
        "spec": {
            "serviceAccountName": "etcd-operator",
            "securityContext": pod["spec"]["securityContext"],
            "containers": [container],
        },
    });
    kubectl(&format!("{IN_ITS_NAMESPACE} delete pod scoped --ignore-not-found --now"));
    kubectl_with_input(&["--namespace", "etcd-operator", "apply", "-f", "-"], &manifest.to_string()).unwrap();
    eventually("it knows the two clusters", Duration::from_secs(30), || {
        let metrics = fetch("scoped", "/metrics")?;
        let line = metrics.lines().find(|line| line.starts_with("etcd_operator_clusters ")).map(str::to_owned);
        is(line.as_deref(), Some("etcd_operator_clusters 2"))
    });
    let log = kubectl(&format!("{IN_ITS_NAMESPACE} logs scoped"));
    for line in log.lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("not JSON ({error}): {line}"));
    }
    kubectl(&format!("{IN_ITS_NAMESPACE} delete pod scoped --now"));
}
