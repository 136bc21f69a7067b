//! Everything that happens to some objects, in the order in which it happened: what was so for a moment only is not
//! missed.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Deserializer, Value};

use crate::etcd::Etcd;
use crate::{Namespace, eventually, lab_kubectl};

/// A `kubectl get --watch`, until this is dropped.
pub struct Watch {
    kubectl: Child,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Watch {
    /// What is there already is seen first.
    pub fn start(namespace: &Namespace, what: &str) -> Self {
        let mut kubectl = lab_kubectl()
            .args(["--namespace", &namespace.name, "get", "--watch", "--output-watch-events", "-o", "json"])
            .args(what.split_whitespace())
            .stdout(Stdio::piped())
            .spawn()
            .expect("kubectl runs");
        let (output, seen) = (kubectl.stdout.take().expect("a pipe"), Arc::new(Mutex::new(Vec::new())));
        let noted = seen.clone();
        std::thread::spawn(move || {
            // It ends in the middle of whatever it prints when it is killed.
            for change in Deserializer::from_reader(output).into_iter::<Value>().map_while(Result::ok) {
                noted.lock().unwrap_or_else(PoisonError::into_inner).push(change);
            }
        });
        Watch { kubectl, seen }
    }

    /// All changes so far: each has a `type`, which is ADDED, MODIFIED or DELETED, and the `object` as it is since then.
    pub fn seen(&self) -> Vec<Value> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.kubectl.kill();
        let _ = self.kubectl.wait();
    }
}

/// The pods of a cluster's members, watched since all of them were ready.
pub struct Pods {
    watch: Watch,
    members: Vec<String>,
    /// How many changes there were before.
    before: usize,
}

impl Pods {
    pub fn watch(etcd: &Etcd, members: u32) -> Self {
        let selector = format!("pods -l etcd.improbable.io/cluster-name={}", etcd.name);
        let (watch, members) = (Watch::start(etcd.namespace, &selector), etcd.names(members));
        let before = eventually("all members are ready", Duration::from_secs(30), || {
            let seen = watch.seen();
            let away = History::of(&seen).away(&members);
            if away.is_empty() { Ok(seen.len()) } else { Err(format!("not these: {away:?}")) }
        });
        Pods { watch, members, before }
    }

    /// The members whose pods were recreated since, in this order.
    pub fn made(&self) -> Vec<String> {
        let seen = self.watch.seen();
        let mut known = History::of(&seen[..self.before]).uids();
        let mut made = Vec::new();
        for object in seen[self.before..].iter().map(|change| &change["object"]) {
            if known.insert(text(&object["metadata"]["uid"])) {
                made.push(text(&object["metadata"]["name"]));
            }
        }
        made
    }

    /// The members that were away when the most of them were. Away is who has no pod, one that is about to stop, or one
    /// that is not ready.
    pub fn most_away(&self) -> BTreeSet<String> {
        let seen = self.watch.seen();
        let mut history = History::of(&seen[..self.before]);
        let away = seen[self.before..].iter().map(|change| {
            history.add(change);
            history.away(&self.members)
        });
        away.max_by_key(BTreeSet::len).unwrap_or_default()
    }
}

/// Objects as they are after some changes: name → object.
#[derive(Default)]
struct History(BTreeMap<String, Value>);

impl History {
    fn of(changes: &[Value]) -> Self {
        let mut history = History::default();
        changes.iter().for_each(|change| history.add(change));
        history
    }

    fn add(&mut self, change: &Value) {
        let name = text(&change["object"]["metadata"]["name"]);
        if change["type"] == "DELETED" {
            self.0.remove(&name);
        } else {
            self.0.insert(name, change["object"].clone());
        }
    }

    fn uids(&self) -> BTreeSet<String> {
        self.0.values().map(|object| text(&object["metadata"]["uid"])).collect()
    }

    fn away(&self, members: &[String]) -> BTreeSet<String> {
        let serves = |name: &String| self.0.get(name).is_some_and(is_ready);
        members.iter().filter(|name| !serves(name)).cloned().collect()
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    ready && pod["metadata"]["deletionTimestamp"].is_null()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(kind: &str, name: &str, ready: bool) -> Value {
        let conditions = json!([{"type": "Ready", "status": if ready { "True" } else { "False" }}]);
        json!({"type": kind, "object": {"metadata": {"name": name}, "status": {"conditions": conditions}}})
    }

    #[test]
    fn member_with_missing_unready_or_terminating_pod_is_away() {
        let members = ["c-0", "c-1", "c-2"].map(str::to_owned);
        let mut history = History::of(&members.clone().map(|name| change("ADDED", &name, true)));
        assert_eq!(history.away(&members).len(), 0);
        history.add(&change("MODIFIED", "c-1", false));
        assert_eq!(history.away(&members), BTreeSet::from(["c-1".to_owned()]));
        history.add(&change("DELETED", "c-0", true));
        let mut stopping = change("MODIFIED", "c-2", true);
        stopping["object"]["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        history.add(&stopping);
        assert_eq!(history.away(&members).len(), 3);
        history.add(&change("ADDED", "c-0", true));
        assert_eq!(history.away(&members).len(), 2);
    }
}
