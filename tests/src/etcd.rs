//! An etcd cluster under test: made with `kubectl`, judged with `etcdctl`.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Namespace, SAFETY, checkout, eventually, try_kubectl};

/// How long a cluster may take for what it was asked to do. Generous: these machines are noisy.
const PATIENCE: Duration = Duration::from_secs(120);

/// The members as etcd lists them: name → (ID, learner). One that has never started has no name yet.
pub type Members = BTreeMap<String, (u64, bool)>;

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

/// One whose members are replaced soon when they are out of reach.
pub fn manifest_with_quick_replacement(name: &str, replicas: u32) -> Value {
    let mut manifest = manifest(name, replicas);
    manifest["spec"]["recovery"] = json!({"memberReplacement": {"after": "30s"}});
    manifest
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

    /// For `eventually`: a condition has this status and reason, and its message mentions all of these.
    pub fn says(&self, kind: &str, status: &str, reason: &str, mentions: &[&str]) -> Result<(), String> {
        let condition = self.condition(kind);
        let message = condition["message"].as_str().unwrap_or_default();
        let as_expected = condition["status"] == status && condition["reason"] == reason;
        let complete = mentions.iter().all(|mention| message.contains(mention));
        if as_expected && complete { Ok(()) } else { Err(condition.to_string()) }
    }

    pub fn patch(&self, patch: &Value) {
        self.namespace.kubectl(&format!("patch etcdcluster {} --type=merge -p {patch}", self.name));
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

    /// The pods of the members. None if the API server can't be asked just now.
    pub fn pods(&self) -> Vec<Value> {
        let selector = format!("-l etcd.improbable.io/cluster-name={}", self.name);
        let pods = try_kubectl(&format!("--namespace {} get pods {selector} -o json", self.namespace.name));
        let pods: Value = pods.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        pods["items"].as_array().cloned().unwrap_or_default()
    }

    /// The client URLs of all members, by the addresses of their pods: name → URL.
    pub fn urls(&self) -> BTreeMap<String, String> {
        let url = |pod: &Value| {
            let (name, address) = (pod["metadata"]["name"].as_str()?, pod["status"]["podIP"].as_str()?);
            Some((name.to_owned(), format!("http://{address}:2379")))
        };
        self.pods().iter().filter_map(url).collect()
    }

    /// Where the members run: name → node.
    pub fn nodes(&self) -> BTreeMap<String, String> {
        let node = |pod: &Value| {
            Some((pod["metadata"]["name"].as_str()?.to_owned(), pod["spec"]["nodeName"].as_str()?.to_owned()))
        };
        self.pods().iter().filter_map(node).collect()
    }

    pub fn endpoints(&self) -> String {
        self.urls().into_values().collect::<Vec<_>>().join(",")
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

    /// A write that was acknowledged can be read.
    pub fn assert_has(&self, key: &str, value: &str) {
        let read = || self.etcdctl(&["get", key, "--print-value-only"]);
        let found = eventually(&format!("{} is asked for {key}", self.name), Duration::from_secs(20), read);
        assert_eq!(found, value, "{SAFETY}{key} in {}", self.name);
    }

    /// The value that one member has by itself, whatever the others say.
    pub fn value_on(&self, member: &str, key: &str) -> Result<String, String> {
        let urls = self.urls();
        let url = urls.get(member).ok_or_else(|| format!("{member} has no address"))?;
        etcdctl(url, &["get", key, "--consistency=s", "--print-value-only"])
    }

    pub fn members(&self) -> Members {
        self.try_members().expect("etcd lists its members")
    }

    pub fn try_members(&self) -> Result<Members, String> {
        let list = self.etcdctl(&["member", "list", "-w", "json"])?;
        let list: Value = serde_json::from_str(&list).map_err(|error| format!("{error}: {list}"))?;
        let members = list["members"].as_array().cloned().unwrap_or_default();
        let entry = |member: &Value| {
            let learner = member["isLearner"].as_bool().unwrap_or_default();
            (
                member["name"].as_str().unwrap_or_default().to_owned(),
                (member["ID"].as_u64().unwrap_or_default(), learner),
            )
        };
        Ok(members.iter().map(entry).collect())
    }

    /// The names that its members and their objects have.
    pub fn names(&self, count: u32) -> Vec<String> {
        (0..count).map(|ordinal| format!("{}-{ordinal}", self.name)).collect()
    }

    /// Exactly these ordinals, all of them voters.
    pub fn assert_voters(&self, count: u32) {
        let members = self.members();
        let names: Vec<&String> = members.keys().collect();
        assert_eq!(names, self.names(count).iter().collect::<Vec<_>>(), "the members of {}", self.name);
        assert!(members.values().all(|(_, learner)| !learner), "no learner is left: {members:?}");
    }

    /// The members have what they need, and nothing is left over.
    pub fn assert_objects(&self, count: u32) {
        for kind in ["etcdpeers", "pods", "pvc"] {
            assert_eq!(self.names_of(kind), self.names(count), "{kind}");
        }
    }

    pub fn names_of(&self, kind: &str) -> Vec<String> {
        self.uids_of(kind).into_keys().collect()
    }

    /// The objects of a kind that belong to the cluster: name → UID. An object that was recreated has another one.
    pub fn uids_of(&self, kind: &str) -> BTreeMap<String, String> {
        let selector = format!("-l etcd.improbable.io/cluster-name={}", self.name);
        let list = self.namespace.get(&format!("{kind} {selector}"));
        let entry = |item: &Value| {
            let metadata = &item["metadata"];
            Some((metadata["name"].as_str()?.to_owned(), metadata["uid"].as_str()?.to_owned()))
        };
        list["items"].as_array().into_iter().flatten().filter_map(entry).collect()
    }
}

pub fn etcdctl(endpoints: &str, args: &[&str]) -> Result<String, String> {
    let mut command = Command::new(checkout().join(".lab/bin/etcdctl"));
    command.args(["--endpoints", endpoints, "--command-timeout=3s", "--dial-timeout=2s"]).args(args);
    let output = command.output().expect("etcdctl runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
