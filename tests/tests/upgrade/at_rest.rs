//! Clusters that nobody asks anything of: nothing may happen to them.

use std::collections::BTreeMap;
use std::time::Duration;

use e2e::etcd::Etcd;
use e2e::{SAFETY, eventually, is};
use serde_json::{Value, json};

/// A cluster as it was before the operator was upgraded.
pub struct AtRest<'a> {
    etcd: &'a Etcd<'a>,
    runs: BTreeMap<String, Value>,
    objects: Vec<BTreeMap<String, String>>,
    status: Value,
}

impl<'a> AtRest<'a> {
    pub fn note(etcd: &'a Etcd<'a>) -> Self {
        AtRest { etcd, runs: runs(etcd), objects: objects(etcd), status: essence(&etcd.status()) }
    }

    /// Has the operator look at the cluster, which it has done when it has put something right.
    pub fn have_it_looked_at(&self) {
        let name = &self.etcd.name;
        self.etcd.namespace.kubectl(&format!("delete service {name}-client"));
        eventually(&format!("{name} has its Service again"), Duration::from_secs(60), || {
            is(self.etcd.names_of("services"), vec![name.clone(), format!("{name}-client")])
        });
    }

    /// No etcd was restarted, no object was recreated, and the status says what it said, since the same moments.
    pub fn assert_goes_on(&self) {
        let name = &self.etcd.name;
        assert_eq!(runs(self.etcd), self.runs, "{SAFETY}no etcd of {name} is restarted");
        assert_eq!(objects(self.etcd), self.objects, "{SAFETY}{name} has the same objects");
        eventually(&format!("the status of {name} is as before"), Duration::from_secs(30), || {
            is(essence(&self.etcd.status()), self.status.clone())
        });
    }
}

impl AtRest<'_> {
    /// An edit that changes nothing restarts nothing.
    pub fn assert_no_restart_after(&self, edit: &Value) {
        let generation = self.status["counts"]["observedGeneration"].as_i64().expect("a generation");
        self.etcd.patch(edit);
        eventually(&format!("the edit of {} is noticed", self.etcd.name), Duration::from_secs(30), || {
            is(self.etcd.status()["observedGeneration"].as_i64(), Some(generation + 1))
        });
        assert_eq!(runs(self.etcd), self.runs, "{SAFETY}no etcd of {} is restarted", self.etcd.name);
        assert_eq!(self.etcd.condition("Progressing")["reason"], "UpToDate");
    }
}

/// Every run of every container of the members: pod → its UID, and how its containers are.
fn runs(etcd: &Etcd) -> BTreeMap<String, Value> {
    let pods = etcd.namespace.get(&format!("pods -l etcd.improbable.io/cluster-name={}", etcd.name));
    let run = |container: &Value| {
        json!([container["name"], container["containerID"], container["restartCount"], container["state"]])
    };
    let runs = |pod: &Value| {
        let containers = ["initContainerStatuses", "containerStatuses"].map(|kind| pod["status"][kind].clone());
        let containers = containers.iter().filter_map(Value::as_array).flatten();
        let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
        (name, json!([pod["metadata"]["uid"], containers.map(run).collect::<Vec<_>>()]))
    };
    pods["items"].as_array().expect("a list").iter().map(runs).collect()
}

fn objects(etcd: &Etcd) -> Vec<BTreeMap<String, String>> {
    ["etcdpeers", "pods", "pvc"].map(|kind| etcd.uids_of(kind)).into()
}

/// What a status says about a cluster at rest. The members may elect another leader at any time, and databases grow.
fn essence(status: &Value) -> Value {
    let only = |object: &Value, fields: &[&str]| -> Value {
        fields.iter().map(|field| ((*field).to_owned(), object[*field].clone())).collect()
    };
    let each = |list: &Value, fields: &[&str]| -> Value {
        list.as_array().into_iter().flatten().map(|item| only(item, fields)).collect()
    };
    // Its earlier name was birth.
    let bootstrap = status.get("bootstrap").or_else(|| status.get("birth"));
    let counts = ["replicas", "readyReplicas", "updatedReplicas", "observedGeneration"];
    json!({
        "cluster": only(status, &["clusterID", "clusterVersion", "targetVersion"]),
        "bootstrap": bootstrap,
        "counts": only(status, &counts),
        "members": each(&status["members"], &["name", "id", "version", "healthy"]),
        "conditions": each(&status["conditions"], &["type", "status", "lastTransitionTime"]),
    })
}
