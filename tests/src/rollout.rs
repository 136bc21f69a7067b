//! Changes that roll through the members of a cluster: how they are asked for, and when they are done.

use std::time::Duration;

use serde_json::{Value, json};

use crate::etcd::Etcd;
use crate::health::HEALING;
use crate::{eventually, is};

impl Etcd<'_> {
    pub fn set_version(&self, version: &str) {
        self.patch(&json!({"spec": {"version": version}}));
    }

    /// Asks for a restart of all members, with a word that was not used before.
    pub fn ask_for_a_restart(&self, word: &str) {
        let annotation = format!("etcd.improbable.io/restart={word}");
        self.namespace.kubectl(&format!("annotate etcdcluster {} --overwrite {annotation}", self.name));
    }

    /// What the operator told about the cluster with this reason: whom it was about, and the message.
    pub fn events(&self, reason: &str) -> Vec<(String, String)> {
        let of_the_cluster = format!("involvedObject.kind=EtcdCluster,involvedObject.name={}", self.name);
        let events = self.namespace.get(&format!("events --field-selector reason={reason},{of_the_cluster}"));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let told = |event: &Value| (text(&event["related"]["name"]), text(&event["message"]));
        events["items"].as_array().into_iter().flatten().map(told).collect()
    }

    /// Waits until the operator has told something of a member with this reason.
    pub fn wait_until_told(&self, reason: &str, member: &str) {
        eventually(&format!("{reason} is told of {member}"), HEALING, || {
            let told = self.events(reason);
            let progressing = || format!("{told:?}, {}", self.condition("Progressing"));
            if told.iter().any(|(about, _)| about == member) { Ok(()) } else { Err(progressing()) }
        });
    }

    pub fn move_leader(&self, to: &str) {
        let id = format!("{:x}", self.id_of(to).expect("etcd lists its members"));
        eventually(&format!("{to} leads"), Duration::from_secs(20), || {
            // It is asked again, because the one that was asked may have lost an election meanwhile.
            let moved = self.etcdctl(&["move-leader", &id]);
            is(self.leader().as_deref(), Some(to)).map_err(|seen| format!("{seen}: {moved:?}"))
        });
    }

    /// Everything is as asked for, and every member runs this version, as etcd and the operator say.
    pub fn runs(&self, replicas: u32, version: &str) -> Result<(), String> {
        self.says("Progressing", "False", "UpToDate", &[])?;
        self.is_whole(replicas)?;
        let answers = self.etcdctl(&["endpoint", "status", "-w", "json"])?;
        let answers: Value = serde_json::from_str(&answers).map_err(|error| format!("{error}: {answers}"))?;
        let running = answers.as_array().into_iter().flatten().map(|answer| answer["Status"]["version"].clone());
        is(running.collect(), vec![json!(version); replicas as usize])?;
        let peers = self.namespace.get(&format!("etcdpeers -l etcd.improbable.io/cluster-name={}", self.name));
        let peers = peers["items"].as_array().cloned().unwrap_or_default();
        is(peers.iter().map(|peer| &peer["status"]["serverVersion"]).collect(), vec![&json!(version); peers.len()])?;
        let (status, minor) = (self.status(), version.rsplit_once('.').expect("a version").0);
        is(status["clusterVersion"].as_str(), Some(format!("{minor}.0").as_str()))?;
        is(status["targetVersion"].as_str(), Some(version))?;
        is(status["updatedReplicas"].as_u64(), Some(replicas.into()))
    }

    pub fn wait_until_runs(&self, replicas: u32, version: &str) {
        eventually(&format!("all members run {version}"), HEALING, || self.runs(replicas, version));
    }

    /// Waits until each of these members has another pod than it had, and everything is as asked for.
    pub fn wait_until_restarted_all(&self, pods: &std::collections::BTreeMap<String, String>) {
        eventually("every member was restarted", HEALING, || {
            let now = self.uids_of("pods");
            let same: Vec<&String> =
                pods.iter().filter(|(name, uid)| now.get(*name) == Some(uid)).map(|it| it.0).collect();
            if same.is_empty() { self.is_whole(pods.len() as u32) } else { Err(format!("not these: {same:?}")) }
        });
    }
}
