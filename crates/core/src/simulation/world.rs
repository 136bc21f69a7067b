//! The world of one cluster: what the API server stores, the machines and disks, the processes that actually run, and
//! etcd with its members. The operator sees it through `observe`, from what its caches hold.

use std::collections::{BTreeMap, BTreeSet};

use etcd_operator_api::EtcdClusterStatus;

use super::etcd::Etcd;
use super::random::Random;
use crate::cluster::observed::{
    Answer, Bootstrap, Claim, Identity, Membership, Node, Observed, Peer, Pod, Problem, Versions,
};
use crate::cluster::plan::Start;
use crate::cluster::quorum::quorum;
use crate::cluster::spec_diff::{SpecDiff, UpdateMethod};
use crate::cluster::tests::support::names;

pub const REPLACE_AFTER: i64 = 300;
const START: i64 = 1_800_000_000;

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
    pub now: i64,
    pub storage: Storage,
    pub api: Api,
    pub machines: Vec<Machine>,
    pub disks: Vec<Disk>,
    pub processes: Vec<Process>,
    pub etcd: Option<Etcd>,
    /// The machines whose members only the operator can't reach: because of a network policy, say.
    pub hidden: BTreeSet<usize>,
    /// Since when each member was unhealthy in every observation in which the others had a quorum, by ID.
    pub away_since: BTreeMap<u64, i64>,
    /// How many objects were ever created: the source of UIDs.
    pub made: u64,
    /// The events so far, if they are traced.
    pub trace: Option<Vec<String>>,
}

/// What the API server stores. The operator's caches are stale copies of parts of it.
#[derive(Clone)]
pub struct Api {
    pub cluster: Cluster,
    pub peers: BTreeMap<u32, Peer>,
    /// The template that each EtcdPeer was created from, besides its version.
    pub templates: BTreeMap<u32, u32>,
    pub pods: BTreeMap<u32, PodObject>,
    pub claims: BTreeMap<u32, ClaimObject>,
    pub nodes: Vec<Node>,
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
    pub wanted: &'static str,
    pub accepted: Option<String>,
    pub oldest_log: Option<String>,
    /// Stands for everything else that members are created from.
    pub template: u32,
    pub paused: bool,
    pub bootstrap: Option<Bootstrap>,
    pub cluster_id: Option<u64>,
    pub unhealthy_since: BTreeMap<u64, i64>,
    pub status: EtcdClusterStatus,
}

#[derive(Clone)]
pub struct PodObject {
    pub uid: u64,
    pub created: i64,
    pub start: Start,
    /// The version and the template of the EtcdPeer that it was created from.
    pub version: String,
    pub template: u32,
    pub leaving_since: Option<i64>,
    pub deleting: bool,
    pub deleting_since: Option<i64>,
    pub began: bool,
    pub ready: bool,
    pub node: Option<usize>,
    pub problem: Option<Problem>,
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
}

pub struct Machine {
    pub on: bool,
    /// Whether its network is connected.
    pub connected: bool,
}

impl Machine {
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
    pub ordinal: u32,
    pub machine: usize,
    pub disk: usize,
    pub identity: Identity,
    pub version: String,
    pub template: u32,
    /// How much of the log it has in memory, also if its disk was emptied underneath.
    pub index: u64,
    pub hung: bool,
    /// Whether only a power cut ends it: it is blocked on a disk that does not respond.
    pub unkillable: bool,
}

impl World {
    pub fn new(mut random: Random) -> Self {
        let storage = random.one_of(&[Storage::Local, Storage::Local, Storage::Network, Storage::Ephemeral]);
        let machines = 3 + random.below(3);
        let cluster = Cluster {
            lives: 0,
            version: 0,
            replicas: random.one_of(&[1, 2, 3, 3, 3, 4, 5, 5]),
            restores: random.one_of(&[true, false, false, false]),
            wanted: random.one_of(&["3.5.20", "3.5.35", "3.6.10", "3.6.16", "3.6.16", "3.7.3"]),
            accepted: None,
            oldest_log: None,
            template: 0,
            paused: false,
            bootstrap: None,
            cluster_id: None,
            unhealthy_since: BTreeMap::new(),
            status: EtcdClusterStatus::default(),
        };
        World {
            random,
            now: START,
            storage,
            api: Api {
                cluster,
                peers: BTreeMap::new(),
                templates: BTreeMap::new(),
                pods: BTreeMap::new(),
                claims: BTreeMap::new(),
                nodes: vec![Node::default(); machines],
            },
            machines: (0..machines).map(|_| Machine { on: true, connected: true }).collect(),
            disks: Vec::new(),
            processes: Vec::new(),
            etcd: None,
            hidden: BTreeSet::new(),
            away_since: BTreeMap::new(),
            made: 0,
            trace: None,
        }
    }

    pub fn note(&mut self, what: impl FnOnce() -> String) {
        let now = self.now - START;
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

    pub fn process_of(&self, ordinal: u32) -> Option<&Process> {
        let pod = self.api.pods.get(&ordinal)?;
        self.processes.iter().find(|process| process.pod == pod.uid)
    }

    /// Whether a process is reachable.
    pub fn answers(&self, process: &Process) -> bool {
        !process.hung && self.machines[process.machine].is_reachable()
    }

    /// Another client or a controller deletes a pod: it is to terminate.
    pub fn delete_pod(&mut self, ordinal: u32) {
        let now = self.now;
        if let Some(pod) = self.api.pods.get_mut(&ordinal).filter(|pod| !pod.deleting) {
            (pod.deleting, pod.deleting_since) = (true, Some(now));
        }
    }

    /// Records which members are unhealthy in an observation that may lead to a replacement.
    pub fn note_who_is_away(&mut self, observed: &Observed) {
        let quorum = observed.membership.as_ref().filter(|_| observed.paused.is_none());
        let members = quorum.iter().flat_map(|membership| &membership.members);
        let away: Vec<u64> = members.filter(|member| !observed.is_healthy(member)).map(|member| member.id).collect();
        let now = self.now;
        self.away_since.retain(|id, _| away.contains(id));
        for id in away {
            self.away_since.entry(id).or_insert(now);
        }
    }

    /// The disk that a member of this name would use.
    pub fn disk_of(&self, ordinal: u32) -> Option<usize> {
        let claim = self.api.claims.get(&ordinal).and_then(|claim| claim.disk);
        claim.or_else(|| self.api.pods.get(&ordinal)?.own_disk)
    }

    /// The operator's observation: Kubernetes from these objects, and etcd itself, which is always queried live.
    pub fn observe(&self, seen: &Api) -> Observed {
        let cluster = &seen.cluster;
        Observed {
            names: names(),
            uid: format!("life-{}", cluster.lives),
            replicas: cluster.replicas,
            durable: self.storage != Storage::Ephemeral,
            restores: cluster.restores,
            deleting: false,
            paused: cluster.paused.then(|| "spec.paused is true".to_owned()),
            now: self.now,
            replace_after: Some(REPLACE_AFTER),
            defragments: true,
            quota: 1 << 30,
            bootstrap: cluster.bootstrap.clone(),
            cluster_id: cluster.cluster_id,
            versions: Versions {
                wanted: cluster.wanted.to_owned(),
                accepted: cluster.accepted.clone(),
                oldest_log: cluster.oldest_log.clone(),
                noted: seen.claims.values().filter_map(|claim| claim.claim.version.clone()).max(),
                cluster: self.cluster_version().or_else(|| cluster.status.cluster_version.clone()).or_else(|| {
                    let noted = seen.claims.values().filter_map(|claim| claim.claim.version.as_deref());
                    noted.map(minor_of).max().map(|minor| format!("3.{minor}.0"))
                }),
                downgrade: self.quorum().and_then(|etcd| etcd.downgrade).map(|minor| format!("3.{minor}.0")),
                flags: Vec::new(),
            },
            backup_first: Default::default(),
            outdated: see_outdated(seen),
            has_rollout_slot: true,
            migrates: false,
            peers: seen.peers.clone(),
            pods: seen.pods.iter().map(|(ordinal, pod)| (*ordinal, see_pod(pod, seen))).collect(),
            claims: seen.claims.iter().map(|(ordinal, claim)| (*ordinal, see_claim(claim, seen))).collect(),
            answers: self.ask(seen),
            membership: self.quorum().map(Etcd::membership),
            local_membership: self.local_membership(seen),
            unhealthy_since: cluster.unhealthy_since.clone(),
            observed_unhealthy_since: BTreeMap::new(),
            alarms: BTreeSet::new(),
            compacted: None,
            differing: BTreeSet::new(),
        }
    }

    /// etcd, if the operator reaches a member that has a quorum.
    fn quorum(&self) -> Option<&Etcd> {
        let etcd = self.etcd.as_ref().filter(|etcd| etcd.has_quorum(self))?;
        let speaks = |process: &&Process| etcd.connects(self, process) && self.is_reached(process);
        self.processes.iter().find(speaks).map(|_| etcd)
    }

    /// Whether the operator can reach a process.
    fn is_reached(&self, process: &Process) -> bool {
        self.answers(process) && !self.hidden.contains(&process.machine)
    }

    /// The cluster version that etcd reports, if a quorum can be queried.
    fn cluster_version(&self) -> Option<String> {
        Some(format!("3.{}.0", self.quorum()?.minor?))
    }

    /// Queries every known pod at its known address: a pod that is gone does not answer.
    fn ask(&self, seen: &Api) -> BTreeMap<u32, Result<Answer, String>> {
        let mut answers = BTreeMap::new();
        for (ordinal, pod) in &seen.pods {
            let Some(process) = self.processes.iter().find(|process| process.pod == pod.uid) else { continue };
            let answer =
                if self.is_reached(process) { Ok(self.answer_of(process)) } else { Err("timed out".to_owned()) };
            answers.insert(*ordinal, answer);
        }
        answers
    }

    /// The membership according to a member that answers without a quorum.
    fn local_membership(&self, seen: &Api) -> Option<Membership> {
        let etcd = self.etcd.as_ref().filter(|etcd| !etcd.has_quorum(self))?;
        let known = |process: &&Process| seen.pods.values().any(|pod| pod.uid == process.pod);
        let answers = |process: &&Process| etcd.connects(self, process) && self.is_reached(process);
        let mut reached = self.processes.iter().filter(known).filter(answers);
        reached.next().map(|_| etcd.membership())
    }

    fn answer_of(&self, process: &Process) -> Answer {
        let etcd = self.etcd.as_ref().filter(|etcd| etcd.cluster_id == process.identity.cluster_id);
        let member = etcd.and_then(|etcd| etcd.member(process.identity.member_id));
        let learner = member.is_some_and(|member| member.learner);
        let quorum = etcd.filter(|etcd| etcd.has_quorum(self));
        Answer {
            identity: process.identity,
            leader: quorum.and_then(|etcd| etcd.leader),
            learner,
            version: process.version.clone(),
            // A process whose disk was emptied underneath does not know it.
            storage_version: self.disks[process.disk]
                .data
                .map(|data| data.minor)
                .or_else(|| etcd?.minor)
                .map(|minor| format!("3.{minor}.0")),
            db_size: 0,
            db_in_use: 0,
            reads: member.is_some() && !learner && quorum.is_some(),
        }
    }

    /// The members whose data differs from that of a majority, according to a comparison of all voters; or that were
    /// known to differ before, while all the others agree. `None` if they can't be compared, or the comparison is
    /// inconclusive.
    pub fn differing(&self, known: &BTreeSet<u64>) -> Option<BTreeSet<u64>> {
        let etcd = self.quorum()?;
        let is_heard = |id: u64| self.processes.iter().any(|it| it.identity.member_id == id && self.is_reached(it));
        if !etcd.voters().all(|voter| etcd.is_up(self, voter) && is_heard(voter.id)) {
            return None;
        }
        let is_corrupt = |process: &&Process| self.disks[process.disk].data.is_some_and(|data| data.corrupt);
        let running = self.processes.iter().filter(|process| etcd.connects(self, process));
        let corrupt: BTreeSet<u64> = running.filter(is_corrupt).map(|process| process.identity.member_id).collect();
        let right = etcd.voters().filter(|it| !corrupt.contains(&it.id)).count();
        let is_known = right > 0 && corrupt.iter().all(|id| known.contains(id));
        (right >= quorum(etcd.voters().count()) || is_known).then_some(corrupt)
    }
}

fn see_outdated(seen: &Api) -> BTreeMap<u32, SpecDiff> {
    let is_outdated = |(ordinal, peer): (&u32, &Peer)| {
        peer.version != seen.cluster.wanted || seen.templates.get(ordinal) != Some(&seen.cluster.template)
    };
    // Resources could be changed in place, if the pod ran.
    let method = |ordinal: &u32, peer: &Peer| {
        let is_too_large = seen.templates.get(ordinal).is_some_and(|template| fits_no_node(*template));
        if is_too_large && peer.version == seen.cluster.wanted { UpdateMethod::Resize } else { UpdateMethod::Restart }
    };
    let change = |ordinal: &u32, peer: &Peer| SpecDiff {
        fields: vec![format!("{} or its template", peer.version)],
        method: method(ordinal, peer),
    };
    let outdated = seen.peers.iter().filter(|(ordinal, peer)| is_outdated((ordinal, peer)));
    outdated.map(|(ordinal, peer)| (*ordinal, change(ordinal, peer))).collect()
}

/// Whether Kubernetes rejects pods that are created from a template: because of an unknown class, a policy or a quota.
pub fn is_refused(template: u32) -> bool {
    template % 6 == 2
}

/// Whether a template requests more than any node has.
pub fn fits_no_node(template: u32) -> bool {
    template % 6 == 4
}

/// The minor version of a version.
pub fn minor_of(version: &str) -> u64 {
    version.split('.').nth(1).and_then(|minor| minor.parse().ok()).expect("a version")
}

fn see_pod(pod: &PodObject, seen: &Api) -> Pod {
    Pod {
        deleting: pod.deleting,
        finished: false,
        expected: Some(pod.start.expected),
        serves_clients: pod.start.serves_clients,
        leaving_since: pod.leaving_since,
        created: pod.created,
        deleting_since: pod.deleting_since,
        began: pod.began,
        restoring: false,
        ready: pod.ready,
        node: pod.node.map(|node| seen.nodes[node]),
        problem: pod.problem.clone(),
    }
}

fn see_claim(claim: &ClaimObject, seen: &Api) -> Claim {
    Claim { node: claim.chosen.map(|node| seen.nodes[node]), ..claim.claim.clone() }
}
