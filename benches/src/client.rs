//! A client that writes and reads all the time, in a pod of its own, through the Service: what crates/lab/parts/client does.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use e2e::Namespace;
use e2e::etcd::Etcd;
use lab::images;
use lab::node::Node;
use serde::Deserialize;

/// What happened to one kind of request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Requests {
    pub acknowledged: u64,
    pub errors: u64,
    pub longest_ms: f64,
}

/// What the client prints in the end.
#[derive(Deserialize)]
pub struct Report {
    pub writes: Requests,
    pub reads: Requests,
}

impl Report {
    pub fn longest(&self) -> Duration {
        Duration::from_secs_f64(self.writes.longest_ms.max(self.reads.longest_ms) / 1000.0)
    }
}

/// Gives its image to every node.
pub fn load() {
    let archive = images::client_archive().unwrap();
    Node::all().filter(Node::is_on).for_each(|node| node.load_image(&archive).unwrap());
}

/// A client that runs for as long as its standard input is open.
pub struct Client<'a> {
    etcd: &'a Etcd<'a>,
    name: String,
    kubectl: Child,
}

impl<'a> Client<'a> {
    pub fn start(etcd: &'a Etcd, name: &str) -> Self {
        let namespace = &etcd.namespace.name;
        let service = format!("http://{}-client.{namespace}.svc:2379", etcd.name);
        let lab = e2e::checkout().join(".lab");
        let kubectl = Command::new(lab.join("bin/kubectl"))
            .arg("--kubeconfig")
            .arg(lab.join("kubeconfig"))
            .args(["--namespace", namespace, "run", name, "--image", images::CLIENT, "--restart=Never"])
            .args(["--quiet", "--stdin", "--", &service, &keys(name)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // It tells about each request that failed, and the report counts them.
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let client = Client { etcd, name: name.to_owned(), kubectl };
        e2e::eventually(&format!("{name} runs"), Duration::from_secs(60), || {
            is_running(etcd.namespace, name).then_some(()).ok_or_else(|| "it does not".to_owned())
        });
        client
    }

    /// Lets the client end, and asks the cluster whether it has every write that the client was told it has.
    pub fn finish(mut self) -> Report {
        drop(self.kubectl.stdin.take());
        let output = self.kubectl.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        let report: Report = serde_json::from_str(printed.trim()).unwrap_or_else(|error| {
            let log = e2e::try_kubectl(&format!("--namespace {} logs {}", self.etcd.namespace.name, self.name));
            panic!("{} printed {printed:?}: {error}. Its log: {log:?}", self.name)
        });
        // Keys are counted up, and only when a write was acknowledged.
        let (first, end) = (keys(&self.name), format!("{}{:08}", keys(&self.name), report.writes.acknowledged));
        let kept = self.etcd.etcdctl(&["get", &first, &end, "--count-only", "-w", "fields"]).unwrap();
        let all = format!("\"Count\" : {}", report.writes.acknowledged);
        assert!(kept.lines().any(|line| line == all), "{} was told of writes that are lost: {kept}", self.name);
        report
    }
}

fn is_running(namespace: &Namespace, pod: &str) -> bool {
    namespace.find(&format!("pod {pod}")).is_some_and(|pod| pod["status"]["phase"] == "Running")
}

/// What the keys of a client begin with.
fn keys(client: &str) -> String {
    format!("{client}/")
}
