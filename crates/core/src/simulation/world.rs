//! The world of one cluster: what the API server stores, the machines and disks, the processes that actually run, and
//! etcd with its members.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use etcd_operator_api::EtcdClusterStatus;
use jiff::{SignedDuration, Timestamp};
use semver::Version;

use super::coverage::Coverage;
use super::etcd::Etcd;
use super::random::Random;
use super::shared::Shared;
use crate::cluster::observed::{
    Bootstrap, Claim, ClusterId, Identity, MemberId, Node, Observed, Peer, Problem, SharedObjects,
};
use crate::cluster::plan::Start;
use crate::cluster::tests::support::{NOW, seconds, version};
use crate::ordinal::Ordinal;

pub const REPLACE_AFTER: SignedDuration = seconds(300);
const START: Timestamp = NOW;

/// The description of a broken rule.
pub type Broken = String;

/// Where the members keep their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Disks that are bound to the node on which they were first used.
    Local,
    /// Disks that can be attached to any node.
    Network,
    /// In the pods themselves.
    Ephemeral,
}

pub struct World {
    pub random: Random,
    pub now: Timestamp,
    pub storage: Storage,
    pub api: Api,
    pub machines: Vec<Machine>,
    pub disks: Vec<Disk>,
    pub processes: Vec<Process>,
    pub etcd: Option<Etcd>,
    /// The machines whose members only the operator can't reach: because of a network policy, say.
    pub hidden: BTreeSet<usize>,
    /// The machines at whose addresses another etcd cluster answers the operator.
    pub misrouted: BTreeSet<usize>,
    /// The UID of a claim that is in the way of an EtcdCluster that was created again.
    pub strange_claim: Option<u64>,
    /// Since when each member was unhealthy in every observation in which the others had a quorum, by ID.
    pub away_since: BTreeMap<MemberId, Timestamp>,
    /// How often the data of the first member will still become corrupt.
    pub wear: u32,
    /// How many objects were ever created: the source of UIDs.
    pub made: u64,
    pub coverage: Rc<Coverage>,
    /// The events so far, if they are traced.
    pub trace: Option<Vec<String>>,
}

/// What the API server stores. The operator's caches are stale copies of parts of it, which share what has not changed.
#[derive(Clone)]
pub struct Api {
    pub cluster: Shared<Cluster>,
    pub peers: Shared<BTreeMap<Ordinal, Peer>>,
    /// The template that each EtcdPeer was created from, besides its version.
    pub templates: Shared<BTreeMap<Ordinal, u32>>,
    pub pods: Shared<BTreeMap<Ordinal, PodObject>>,
    pub claims: Shared<BTreeMap<Ordinal, ClaimObject>>,
    /// The Services and the PodDisruptionBudget.
    pub shared: Shared<SharedObjects>,
    pub nodes: Shared<Vec<Node>>,
}

/// The EtcdCluster.
#[derive(Clone)]
pub struct Cluster {
    /// How often it was deleted and recreated.
    pub lives: u32,
    /// Incremented with every change, also of the status.
    pub version: u64,
    pub replicas: u32,
    /// Whether it is bootstrapped from a backup. A recreated one continues with existing data.
    pub restores: bool,
    /// The desired version of etcd, and the one that was found possible.
    pub wanted: Version,
    pub accepted: Option<Version>,
    pub oldest_log: Option<Version>,
    /// Stands for everything else that members are created from.
    pub template: u32,
    /// The desired size of the volumes.
    pub size: u32,
    pub paused: bool,
    pub bootstrap: Option<Bootstrap>,
    pub cluster_id: Option<ClusterId>,
    pub unhealthy_since: BTreeMap<MemberId, Timestamp>,
    pub status: Shared<EtcdClusterStatus>,
}

#[derive(Clone)]
pub struct PodObject {
    pub uid: u64,
    pub created: Timestamp,
    pub start: Start,
    /// The version and the template of the EtcdPeer that it was created from.
    pub version: Version,
    pub template: u32,
    pub leaving_since: Option<Timestamp>,
    pub deleting: bool,
    pub deleting_since: Option<Timestamp>,
    pub began: bool,
    pub ready: bool,
    pub node: Option<usize>,
    pub problem: Option<Problem>,
    /// The template whose resources Kubernetes refused to give it.
    pub resize_refused: Option<u32>,
    /// The disk in the pod itself, if the data is there.
    pub own_disk: Option<usize>,
}

#[derive(Clone)]
pub struct ClaimObject {
    pub uid: u64,
    pub claim: Claim,
    pub disk: Option<usize>,
    /// The node that was selected when the disk was provisioned.
    pub chosen: Option<usize>,
    pub size: u32,
}

#[derive(Clone)]
pub struct Machine {
    pub on: bool,
    /// Whether its network is connected.
    pub connected: bool,
    /// Whether its kubelet reports it as not ready, although pods run there.
    pub unready: bool,
}

impl Machine {
    pub const SOUND: Machine = Machine { on: true, connected: true, unready: false };

    pub fn is_reachable(&self) -> bool {
        self.on && self.connected
    }
}

#[derive(Default)]
pub struct Disk {
    pub bound_to: Option<usize>,
    pub data: Option<DataDir>,
}

#[derive(Clone, Copy, Debug)]
pub struct DataDir {
    pub identity: Identity,
    /// How much of etcd's log it has.
    pub index: u64,
    pub corrupt: bool,
    /// The lowest minor version of etcd that can read it.
    pub minor: u64,
    /// The lowest minor version that wrote the remaining log.
    pub oldest_log: u64,
}

/// A running etcd, whatever the API server says about its pod.
pub struct Process {
    pub pod: u64,
    pub ordinal: Ordinal,
    pub machine: usize,
    pub disk: usize,
    pub identity: Identity,
    pub version: Version,
    pub template: u32,
    /// How much of the log it has in memory, also if its disk was emptied underneath.
    pub index: u64,
    pub hung: bool,
    /// Whether only a power cut ends it: it is blocked on a disk that does not respond.
    pub unkillable: bool,
}

impl World {
    pub fn new(mut random: Random, coverage: Rc<Coverage>) -> Self {
        let storage = random.one_of(&[Storage::Local, Storage::Local, Storage::Network, Storage::Ephemeral]);
        let machines = 3 + random.below(3);
        let cluster = Cluster {
            lives: 0,
            version: 0,
            replicas: random.one_of(&[1, 2, 3, 3, 3, 4, 5, 5]),
            restores: random.one_of(&[true, false, false, false]),
            wanted: version(random.one_of(&["3.5.20", "3.5.35", "3.6.10", "3.6.16", "3.6.16", "3.7.3"])),
            accepted: None,
            oldest_log: None,
            template: random.one_of(&[0, 0, 4]),
            size: 1,
            paused: false,
            bootstrap: None,
            cluster_id: None,
            unhealthy_since: BTreeMap::new(),
            status: Shared::default(),
        };
        World {
            random,
            now: START,
            storage,
            api: Api {
                cluster: Shared::new(cluster),
                peers: Shared::default(),
                templates: Shared::default(),
                pods: Shared::default(),
                claims: Shared::default(),
                shared: Shared::default(),
                nodes: Shared::new(vec![Node::default(); machines]),
            },
            machines: vec![Machine::SOUND; machines],
            disks: Vec::new(),
            processes: Vec::new(),
            etcd: None,
            hidden: BTreeSet::new(),
            misrouted: BTreeSet::new(),
            strange_claim: None,
            away_since: BTreeMap::new(),
            wear: 0,
            made: 0,
            coverage,
            trace: None,
        }
    }

    pub fn note(&mut self, what: impl FnOnce() -> String) {
        let now = self.now.duration_since(START).as_secs();
        if let Some(trace) = &mut self.trace {
            let what = what();
            // Waiting is traced only once.
            if !trace.iter().rev().take(4).any(|line| line.ends_with(&what)) {
                trace.push(format!("{now:>6}s {what}"));
            }
        }
    }

    pub fn next_uid(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    pub fn process_of(&self, ordinal: Ordinal) -> Option<&Process> {
        let pod = self.api.pods.get(&ordinal)?;
        self.processes.iter().find(|process| process.pod == pod.uid)
    }

    /// Whether a process is reachable.
    pub fn answers(&self, process: &Process) -> bool {
        !process.hung && self.machines[process.machine].is_reachable()
    }

    /// Another client or a controller deletes a pod: it is to terminate. Whether it was not yet.
    pub fn delete_pod(&mut self, ordinal: Ordinal) -> bool {
        let now = self.now;
        let pod = self.api.pods.get_mut(&ordinal).filter(|pod| !pod.deleting);
        pod.map(|pod| (pod.deleting, pod.deleting_since) = (true, Some(now))).is_some()
    }

    /// Records which members are unhealthy in an observation that may lead to a replacement.
    pub fn note_who_is_away(&mut self, observed: &Observed) {
        let quorum = observed.etcd.membership.as_ref().filter(|_| observed.wanted.paused.is_none());
        let members = quorum.iter().flat_map(|membership| &membership.members);
        let away: Vec<MemberId> =
            members.filter(|member| !observed.is_healthy(member)).map(|member| member.id).collect();
        let now = self.now;
        self.away_since.retain(|id, _| away.contains(id));
        for id in away {
            self.away_since.entry(id).or_insert(now);
        }
    }

    /// The disk that a member of this name would use.
    pub fn disk_of(&self, ordinal: Ordinal) -> Option<usize> {
        let claim = self.api.claims.get(&ordinal).and_then(|claim| claim.disk);
        claim.or_else(|| self.api.pods.get(&ordinal)?.own_disk)
    }
}

/// The minor version of a version.
pub fn minor_of(version: &str) -> u64 {
    version.split('.').nth(1).and_then(|minor| minor.parse().ok()).expect("a version")
}
