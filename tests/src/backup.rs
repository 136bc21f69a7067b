//! EtcdBackups and EtcdRestores under test: how they are asked for and how they end, and what a cluster holds before and
//! after.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::etcd::Etcd;
use crate::health::HEALING;
use crate::{Namespace, SAFETY, checkout, eventually};

/// etcd takes 128 changes at once.
const AT_ONCE: usize = 100;

pub fn backup_manifest(name: &str, cluster: &str, destination: Value) -> Value {
    json!({
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdBackup",
        "metadata": {"name": name},
        "spec": {"clusterName": cluster, "destination": destination},
    })
}

/// A backup whose pod is so slow that there is a middle of it, and that is proven in the end.
pub fn slow_backup_manifest(name: &str, cluster: &str, destination: Value) -> Value {
    let mut manifest = backup_manifest(name, cluster, destination);
    let resources = json!({"requests": {"cpu": "20m"}, "limits": {"cpu": "50m", "memory": "64Mi"}});
    manifest["spec"]["podTemplate"] = json!({"resources": resources});
    manifest["spec"]["verify"] = json!("Restore");
    manifest
}

/// The version of the cluster is that of the backup.
pub fn restore_manifest(name: &str, source: Value, cluster: &str, replicas: u32) -> Value {
    let storage = json!({"volumeClaimTemplate": {"resources": {"requests": {"storage": "100Mi"}}}});
    json!({
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdRestore",
        "metadata": {"name": name},
        "spec": {
            "source": source,
            "clusterTemplate": {"clusterName": cluster, "spec": {"replicas": replicas, "storage": storage}},
        },
    })
}

/// An EtcdBackup or an EtcdRestore.
pub struct Order<'a> {
    pub namespace: &'a Namespace,
    kind: String,
    pub name: String,
}

impl<'a> Order<'a> {
    pub fn place(namespace: &'a Namespace, manifest: &Value) -> Self {
        namespace.apply(&manifest.to_string()).unwrap_or_else(|complaint| panic!("{manifest}: {complaint}"));
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        Order { namespace, kind: text(&manifest["kind"]), name: text(&manifest["metadata"]["name"]) }
    }

    /// One that somebody else has placed.
    pub fn found(namespace: &'a Namespace, kind: &str, name: &str) -> Self {
        Order { namespace, kind: kind.to_owned(), name: name.to_owned() }
    }

    pub fn object(&self) -> Value {
        self.namespace.get(&format!("{} {}", self.kind, self.name))
    }

    pub fn status(&self) -> Value {
        self.object()["status"].clone()
    }

    /// Waits for its good end, and returns the status.
    pub fn complete(&self) -> Value {
        self.end("Completed")
    }

    /// Waits until it has failed for this reason, with a message that mentions all of these, and returns the status.
    pub fn fail(&self, reason: &str, mentions: &[&str]) -> Value {
        let status = self.end("Failed");
        let message = status["message"].as_str().unwrap_or_default();
        println!("{} {}: {reason}: {message}", self.kind, self.name);
        assert_eq!(status["reason"], reason, "{} {}: {status}", self.kind, self.name);
        for mention in mentions {
            assert!(message.contains(mention), "{mention:?} is not in {message:?}");
        }
        let complete = condition(&status, "Complete");
        assert_eq!((&complete["status"], &complete["reason"]), (&json!("False"), &json!(reason)), "{status}");
        status
    }

    fn end(&self, phase: &str) -> Value {
        eventually(&format!("{} {} is {phase}", self.kind, self.name), HEALING, || {
            let status = self.status();
            let reached = status["phase"].as_str().unwrap_or_default();
            assert!((phase, reached) != ("Failed", "Completed"), "{SAFETY}{} had to fail: {status}", self.name);
            assert!(reached == phase || !["Completed", "Failed"].contains(&reached), "{}: {status}", self.name);
            if reached == phase { Ok(status) } else { Err(status.to_string()) }
        })
    }

    /// The pod that takes or proves a backup just now.
    pub fn pod(&self) -> Result<String, String> {
        let pods = self.namespace.get(&format!("pods -l etcd.improbable.io/backup-name={}", self.name));
        let pods = pods["items"].as_array().cloned().unwrap_or_default();
        let running = pods.iter().find(|pod| pod["status"]["phase"] == "Running");
        let name = running.and_then(|pod| pod["metadata"]["name"].as_str()).map(str::to_owned);
        name.ok_or_else(|| format!("none of {} pods runs: {}", pods.len(), self.status()))
    }
}

pub fn condition(status: &Value, kind: &str) -> Value {
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
}

impl Etcd<'_> {
    /// Writes so many small keys: `filled/<number>`.
    pub fn fill(&self, count: u32) {
        let (endpoints, numbers) = (self.endpoints(), (0..count).collect::<Vec<u32>>());
        let text = "value-".repeat(12);
        for some in numbers.chunks(AT_ONCE) {
            change_at_once(&endpoints, some.iter().map(|number| format!("put {} {text}{number}", filled(*number))));
        }
    }

    /// Writes the first of those keys again, and deletes the last of them.
    pub fn rewrite(&self, filled_keys: u32, rewritten: u32, deleted: u32) {
        let endpoints = self.endpoints();
        change_at_once(&endpoints, (0..rewritten).map(|number| format!("put {} again", filled(number))));
        let last = filled_keys - deleted..filled_keys;
        change_at_once(&endpoints, last.map(|number| format!("del {}", filled(number))));
    }

    /// Makes the database so large.
    pub fn enlarge(&self, mebibytes: u32) {
        let (endpoints, value) = (self.endpoints(), "x".repeat(1 << 20));
        for number in 0..mebibytes {
            etcdctl_with_input(&endpoints, &["put", &format!("large/{number:03}")], &value);
        }
    }

    /// Everything that is in it: keys with their values, their versions and the revisions in which they were written.
    pub fn contents(&self) -> Vec<Value> {
        let answer = self.etcdctl(&["get", "", "--prefix", "-w", "json"]).expect("etcd lists its keys");
        let answer: Value = serde_json::from_str(&answer).expect("etcdctl prints JSON");
        let keys = answer["kvs"].as_array().cloned().unwrap_or_default();
        assert_eq!(answer["count"].as_u64().unwrap_or_default(), keys.len() as u64, "etcd counts its keys");
        keys
    }
}

fn change_at_once(endpoints: &str, changes: impl Iterator<Item = String>) {
    // What is compared, what is done if it is so, what else: each ends with an empty line.
    let transaction = format!("\n{}\n\n\n", changes.collect::<Vec<_>>().join("\n"));
    let answer = etcdctl_with_input(endpoints, &["txn"], &transaction);
    assert!(answer.starts_with("SUCCESS"), "{answer}");
}

/// Runs an `etcdctl` that must succeed, with something to read on its standard input.
fn etcdctl_with_input(endpoints: &str, args: &[&str], input: &str) -> String {
    let mut etcdctl = Command::new(checkout().join(".lab/bin/etcdctl"))
        .args(["--endpoints", endpoints])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("etcdctl runs");
    etcdctl.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("etcdctl reads its input");
    let output = etcdctl.wait_with_output().expect("etcdctl ends");
    assert!(output.status.success(), "etcdctl {args:?} ended with {}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn filled(number: u32) -> String {
    format!("filled/{number:06}")
}
