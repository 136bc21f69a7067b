//! Whether a cluster and its members are well: as a client of etcd finds it, and as the operator says.

use std::time::Duration;

use serde_json::Value;

use crate::etcd::{Etcd, etcdctl};
use crate::{eventually, is};

/// How long healing may take. Generous: these machines are noisy, and much of it is waiting for Kubernetes.
pub const HEALING: Duration = Duration::from_secs(180);

impl Etcd<'_> {
    pub fn id_of(&self, member: &str) -> Result<u64, String> {
        let members = self.try_members()?;
        members.get(member).map(|(id, _)| *id).ok_or_else(|| format!("{member} is not in {members:?}"))
    }

    /// Which run of etcd a member is in: it is another after its container or its pod was started again.
    pub fn run_of(&self, member: &str) -> Option<String> {
        let pod = self.namespace.find(&format!("pod {member}"))?;
        let containers = pod["status"]["containerStatuses"].as_array()?;
        let etcd = containers.iter().find(|container| container["name"] == "etcd")?;
        etcd["containerID"].as_str().map(str::to_owned)
    }

    /// Whether a member answers a read that needs a quorum, asked at its own address. A learner does not.
    pub fn answers(&self, member: &str) -> Result<(), String> {
        let urls = self.urls();
        let url = urls.get(member).ok_or_else(|| format!("{member} has no address"))?;
        etcdctl(url, &["endpoint", "health"]).map(drop)
    }

    /// The member that leads, if one that can be asked does.
    pub fn leader(&self) -> Option<String> {
        let leads = |url: &String| {
            let answer = etcdctl(url, &["endpoint", "status", "-w", "json"]).ok()?;
            let answer: Value = serde_json::from_str(&answer).ok()?;
            let status = &answer[0]["Status"];
            Some(status["leader"] == status["header"]["member_id"])
        };
        self.urls().into_iter().find(|(_, url)| leads(url) == Some(true)).map(|(name, _)| name)
    }

    /// Waits until a member is in another run than this one, and well.
    pub fn wait_until_restarted(&self, member: &str, before: &Option<String>) {
        eventually(&format!("{member} has started again and answers"), HEALING, || {
            let run = self.run_of(member);
            if run.is_none() || run == *before {
                return Err(format!("its container is {run:?}"));
            }
            self.answers(member)
        });
    }

    /// Waits until another member has taken the place of one, and votes.
    pub fn wait_until_replaced(&self, member: &str, before: u64) {
        eventually(&format!("{member} is another member and answers"), HEALING, || {
            let id = self.id_of(member)?;
            if id == before { Err(format!("it is still {id:x}: {}", self.status())) } else { self.answers(member) }
        });
    }

    /// Everything is as asked for: every member votes and answers, and the operator has seen that and wants nothing more.
    pub fn is_whole(&self, replicas: u32) -> Result<(), String> {
        // This is asked first, because it costs the least.
        let object = self.object();
        let status = &object["status"];
        let counts = [&status["readyReplicas"], &status["replicas"]].map(Value::as_u64);
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let is_condition = |kind: &str, expected: &str| {
            conditions.iter().any(|condition| condition["type"] == kind && condition["status"] == expected)
        };
        let as_asked_for = status["observedGeneration"] == object["metadata"]["generation"]
            && counts == [Some(replicas.into()); 2]
            && is_condition("Available", "True")
            && is_condition("Progressing", "False")
            && is_condition("Degraded", "False");
        if !as_asked_for {
            return Err(status.to_string());
        }
        let members = self.try_members()?;
        is(members.keys().cloned().collect(), self.names(replicas))?;
        if members.values().any(|(_, learner)| *learner) {
            return Err(format!("there is a learner in {members:?}"));
        }
        let urls = self.urls();
        is(urls.keys().cloned().collect(), self.names(replicas))?;
        etcdctl(&urls.into_values().collect::<Vec<_>>().join(","), &["endpoint", "health"]).map(drop)
    }

    pub fn wait_until_whole(&self, replicas: u32) {
        let what = format!("{} has {replicas} healthy members and is at rest", self.name);
        eventually(&what, HEALING, || self.is_whole(replicas));
    }
}
