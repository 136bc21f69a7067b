//! An etcd cluster under test: made with `kubectl`, judged with `etcdctl`, and written to by a client that remembers what
//! was acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{Namespace, checkout, eventually, try_kubectl};

/// How long a cluster may take for what it was asked to do. Generous: these machines are noisy.
const PATIENCE: Duration = Duration::from_secs(120);

/// The manifest of a small cluster.
pub fn manifest(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdCluster",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "version": "3.6.16",
            "storage": {"volumeClaimTemplate": {"resources": {"requests": {"storage": "50Mi"}}}},
        },
    })
}

pub struct Etcd<'a> {
    pub namespace: &'a Namespace,
    pub name: String,
}

impl<'a> Etcd<'a> {
    /// Creates a cluster and waits until it is as asked for.
    pub fn create(namespace: &'a Namespace, manifest: &Value) -> Self {
        let name = manifest["metadata"]["name"].as_str().expect("a name").to_owned();
        namespace.apply(&manifest.to_string()).expect("the manifest is accepted");
        let etcd = Etcd { namespace, name };
        etcd.wait_for(manifest["spec"]["replicas"].as_u64().expect("replicas"));
        etcd
    }

    pub fn object(&self) -> Value {
        self.namespace.get(&format!("etcdcluster {}", self.name))
    }

    pub fn status(&self) -> Value {
        self.object()["status"].clone()
    }

    pub fn condition(&self, kind: &str) -> Value {
        let status = self.status();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
    }

    pub fn scale(&self, replicas: u32) {
        self.namespace.kubectl(&format!("scale etcdcluster {} --replicas={replicas}", self.name));
    }

    /// Waits until the operator says that the cluster is as asked for, with this many members.
    pub fn wait_for(&self, replicas: u64) {
        eventually(&format!("{} has {replicas} members and is at rest", self.name), PATIENCE, || {
            let object = self.object();
            let status = &object["status"];
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            let at_rest =
                conditions.iter().any(|condition| condition["type"] == "Progressing" && condition["status"] == "False");
            let current = status["observedGeneration"] == object["metadata"]["generation"];
            let counts = [&status["readyReplicas"], &status["replicas"]].map(Value::as_u64);
            if at_rest && current && counts == [Some(replicas); 2] { Ok(()) } else { Err(status.to_string()) }
        });
    }

    /// The client URLs of all members, by the addresses of their pods.
    pub fn endpoints(&self) -> String {
        let selector = format!("-l etcd.improbable.io/cluster-name={}", self.name);
        let pods = try_kubectl(&format!("--namespace {} get pods {selector} -o json", self.namespace.name));
        let pods: Value = pods.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let addresses =
            pods["items"].as_array().into_iter().flatten().filter_map(|pod| pod["status"]["podIP"].as_str());
        addresses.map(|address| format!("http://{address}:2379")).collect::<Vec<_>>().join(",")
    }

    pub fn etcdctl(&self, args: &[&str]) -> Result<String, String> {
        etcdctl(&self.endpoints(), args)
    }

    pub fn put(&self, key: &str, value: &str) {
        assert_eq!(self.etcdctl(&["put", key, value]).as_deref(), Ok("OK"));
    }

    pub fn value(&self, key: &str) -> Option<String> {
        self.etcdctl(&["get", key, "--print-value-only"]).ok().filter(|value| !value.is_empty())
    }

    /// The members as etcd lists them: name → (ID, learner).
    pub fn members(&self) -> BTreeMap<String, (u64, bool)> {
        let list = self.etcdctl(&["member", "list", "-w", "json"]).expect("etcd lists its members");
        let list: Value = serde_json::from_str(&list).expect("JSON");
        let members = list["members"].as_array().cloned().unwrap_or_default();
        let entry = |member: &Value| {
            let learner = member["isLearner"].as_bool().unwrap_or_default();
            (
                member["name"].as_str().unwrap_or_default().to_owned(),
                (member["ID"].as_u64().unwrap_or_default(), learner),
            )
        };
        members.iter().map(entry).collect()
    }

    /// Exactly these ordinals, all of them voters.
    pub fn assert_voters(&self, count: u32) {
        let members = self.members();
        let expected: Vec<String> = (0..count).map(|ordinal| format!("{}-{ordinal}", self.name)).collect();
        let mut names: Vec<&String> = members.keys().collect();
        names.sort();
        assert_eq!(names, expected.iter().collect::<Vec<_>>(), "the members of {}", self.name);
        assert!(members.values().all(|(_, learner)| !learner), "no learner is left: {members:?}");
    }

    pub fn names_of(&self, kind: &str) -> Vec<String> {
        let selector = format!("-l etcd.improbable.io/cluster-name={}", self.name);
        let list = self.namespace.get(&format!("{kind} {selector}"));
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items.iter().filter_map(|item| item["metadata"]["name"].as_str()).map(str::to_owned).collect()
    }
}

pub fn etcdctl(endpoints: &str, args: &[&str]) -> Result<String, String> {
    let mut command = Command::new(checkout().join(".lab/bin/etcdctl"));
    command.args(["--endpoints", endpoints, "--command-timeout=3s", "--dial-timeout=2s"]).args(args);
    let output = command.output().expect("etcdctl runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// A client that writes one key after another and remembers which were acknowledged.
pub struct Writer {
    stop: Arc<AtomicBool>,
    work: JoinHandle<Written>,
}

/// What a writer did.
pub struct Written {
    pub acknowledged: u64,
    pub longest_pause: Duration,
}

impl Writer {
    pub fn start(namespace: &Namespace, cluster: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, namespace, name) = (stop.clone(), Namespace::borrowed(&namespace.name), cluster.to_owned());
        let work = std::thread::spawn(move || {
            let etcd = Etcd { namespace: &namespace, name };
            write_until(&stopped, &etcd)
        });
        Writer { stop, work }
    }

    pub fn finish(self) -> Written {
        self.stop.store(true, Ordering::SeqCst);
        self.work.join().expect("the writer ends")
    }
}

/// Keys are `written/<number>`, counted up only when a write was acknowledged: each number below the count must be there.
fn write_until(stop: &AtomicBool, etcd: &Etcd) -> Written {
    let mut written = Written { acknowledged: 0, longest_pause: Duration::ZERO };
    let (mut endpoints, mut last) = (etcd.endpoints(), Instant::now());
    while !stop.load(Ordering::SeqCst) {
        let number = written.acknowledged;
        match etcdctl(&endpoints, &["put", &key(number), &number.to_string()]) {
            Ok(_) => {
                written.acknowledged += 1;
                written.longest_pause = written.longest_pause.max(last.elapsed());
                last = Instant::now();
            }
            // Not acknowledged, so nothing is known of it; the same key is written again.
            Err(_) => endpoints = etcd.endpoints(),
        }
        if number.is_multiple_of(20) {
            endpoints = etcd.endpoints();
        }
    }
    written
}

fn key(number: u64) -> String {
    format!("written/{number:06}")
}

impl Written {
    /// Every write that was acknowledged can be read.
    pub fn assert_kept(&self, etcd: &Etcd) {
        let keys = etcd.etcdctl(&["get", "written/", "--prefix", "--keys-only"]).expect("etcd lists the keys");
        let keys: BTreeSet<&str> = keys.lines().collect();
        assert!(self.acknowledged > 0, "nothing was written at all");
        let lost: Vec<u64> = (0..self.acknowledged).filter(|number| !keys.contains(key(*number).as_str())).collect();
        assert!(lost.is_empty(), "of {} acknowledged writes these are lost: {lost:?}", self.acknowledged);
    }
}
