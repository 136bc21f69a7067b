//! The lab's network, from inside a pod: names and services work, and nothing leaves the machine.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use e2e::{Namespace, eventually, is, kubectl_with_input, try_kubectl};

/// A web server on each node behind one service, and a pod to ask from.
fn servers() -> String {
    let pod = |node: u8| {
        format!(
            r#"
apiVersion: v1
kind: Pod
metadata: {{name: web{node}, labels: {{app: web}}}}
spec:
  nodeName: node{node}
  hostname: web{node}
  subdomain: web
  terminationGracePeriodSeconds: 0
  containers:
  - name: httpd
    image: busybox:lab
    command: [sh, -c, "mkdir /www && hostname > /www/index.html && exec httpd -f -h /www -p 8080"]
---
"#
        )
    };
    let service = |name: &str, ip: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{{ip}selector: {{app: web}}, ports: [{{port: 8080}}]}}\n---\n"
        )
    };
    pod(1) + &pod(2) + &pod(3) + &service("web", "clusterIP: None, ") + &service("web-client", "")
}

#[test]
fn pods_find_each_other_by_name_and_through_services_on_every_node() {
    let namespace = Namespace::create("network");
    namespace.apply(&servers()).unwrap();
    for node in 1..=3 {
        namespace.wait_for_pod(&format!("web{node}"));
    }
    let fetch = |from: u8, host: &str| {
        let ask = format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 {host} 8080");
        let words = ["--namespace", "network", "exec", &format!("web{from}"), "--", "sh", "-c", &ask];
        eventually(&format!("web{from} reaches {host}"), Duration::from_secs(20), || {
            let answer = kubectl_with_input(&words, "")?;
            let last = answer.lines().last().map(str::to_owned);
            last.filter(|line| line.starts_with("web")).ok_or(format!("the answer was {answer:?}"))
        })
    };
    for (from, to) in [(1, 2), (2, 3), (3, 1), (1, 1)] {
        assert_eq!(fetch(from, &format!("web{to}.web.network.svc.cluster.local")), format!("web{to}"));
    }
    // Through the service's own address, often enough that every server is met, the asking pod itself included.
    let mut met = std::collections::BTreeSet::new();
    eventually("every server is met through the service", Duration::from_secs(30), || {
        met.insert(fetch(1, "web-client"));
        is(met.len(), 3)
    });
}

/// The machine listens on all its addresses. A pod reaches the one that belongs to the lab, and none of the others:
/// what is outside of the lab is out of reach.
#[test]
fn pods_cannot_leave_the_lab() {
    let namespace = Namespace::create("network-outside");
    namespace.kubectl("run sleeper --image=busybox:lab --restart=Never -- sleep 3600");
    namespace.wait_for_pod("sleeper");
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = |address: &str| {
        try_kubectl(&format!("--namespace network-outside exec sleeper -- nc -w 2 {address} {port} -e true"))
    };
    connect("10.199.0.1").expect("a pod reaches the machine through the lab's own network");
    for address in other_addresses() {
        connect(&address).expect_err(&format!("a pod reached {address}, which is outside of the lab"));
    }
}

/// The machine's IPv4 addresses apart from loopback and the lab's.
fn other_addresses() -> Vec<String> {
    let output = Command::new("ip").args(["-json", "-4", "address", "show", "scope", "global"]).output().unwrap();
    let links: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let addresses = links.as_array().unwrap().iter().flat_map(|link| link["addr_info"].as_array().unwrap().iter());
    let addresses = addresses.filter_map(|address| address["local"].as_str());
    addresses.filter(|address| !address.starts_with("10.199.")).map(str::to_owned).collect()
}
