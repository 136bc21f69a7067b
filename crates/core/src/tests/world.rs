//! A small world that plans are carried out in: the objects of one cluster, the data on its volumes, and etcd as it
//! counts votes. It has no time. Every rule that never breaks is checked where something could break it.

use std::collections::{BTreeMap, BTreeSet};

use super::support::place;
use crate::founders::{cluster_id, identity_of};
use crate::gate::{Found, Verdict, verdict};
use crate::observed::{Answer, Birth, Claim, Identity, Member, Membership, Observed, Peer, Pod, Told};
use crate::plan::{Plan, Start, Step, plan};
use crate::quorum::quorum;

#[derive(Default)]
pub struct World {
    pub replicas: u32,
    /// How often the EtcdCluster was created again.
    pub lives: u32,
    birth: Option<Birth>,
    cluster_id: Option<u64>,
    pub peers: BTreeMap<u32, Peer>,
    pub pods: BTreeMap<u32, Process>,
    pub claims: BTreeMap<u32, Volume>,
    /// Nodes that are down: what runs there stands still.
    pub down: BTreeSet<u32>,
    etcd: Option<Etcd>,
    added: u64,
}

/// A pod and what runs in it.
pub struct Process {
    start: Start,
    deleting: bool,
    /// Who etcd in it runs as.
    runs: Option<Identity>,
    /// What the gate said when it refused.
    problem: Option<String>,
}

/// A claim and the data on it.
#[derive(Default)]
pub struct Volume {
    claim: Claim,
    data: Option<Identity>,
}

struct Etcd {
    token: String,
    cluster_id: u64,
    members: Vec<Member>,
    leader: u64,
}

impl World {
    pub fn new(replicas: u32) -> Self {
        World { replicas, ..World::default() }
    }

    pub fn plan(&self) -> Plan {
        plan(&self.observe())
    }

    pub fn voters(&self) -> BTreeSet<u32> {
        self.etcd.iter().flat_map(|etcd| &etcd.members).filter(|it| !it.learner).filter_map(|it| it.ordinal).collect()
    }

    pub fn learners(&self) -> usize {
        self.etcd.iter().flat_map(|etcd| &etcd.members).filter(|member| member.learner).count()
    }

    fn observe(&self) -> Observed {
        let answers = self.pods.keys().filter_map(|ordinal| {
            let identity = self.pods[ordinal].runs?;
            Some((*ordinal, if self.down.contains(ordinal) { Err("silent".into()) } else { Ok(self.ask(identity)) }))
        });
        let membership = self.etcd.as_ref().filter(|_| self.has_quorum());
        Observed {
            place: place(),
            uid: format!("life-{}", self.lives),
            replicas: self.replicas,
            durable: true,
            deleting: false,
            birth: self.birth.clone(),
            cluster_id: self.cluster_id,
            outdated: Default::default(),
            peers: self.peers.clone(),
            pods: self.pods.iter().map(|(ordinal, process)| (*ordinal, process.see())).collect(),
            claims: self.claims.iter().map(|(ordinal, volume)| (*ordinal, volume.claim.clone())).collect(),
            answers: answers.collect(),
            membership: membership
                .map(|etcd| Membership { cluster_id: etcd.cluster_id, members: etcd.members.clone() }),
        }
    }

    fn ask(&self, identity: Identity) -> Answer {
        let etcd = self.etcd.as_ref();
        let learner = etcd.is_some_and(|it| it.members.iter().any(|it| it.id == identity.member_id && it.learner));
        Answer {
            identity,
            leader: etcd.filter(|_| self.has_quorum()).map(|etcd| etcd.leader),
            learner,
            version: "3.6.16".into(),
            db_size: 0,
            reads: !learner && self.has_quorum(),
        }
    }

    /// Whether a member runs and answers.
    fn is_up(&self, member: &Member) -> bool {
        let process = member.ordinal.filter(|it| !self.down.contains(it)).and_then(|it| self.pods.get(&it));
        process.and_then(|process| process.runs).is_some_and(|runs| runs.member_id == member.id)
    }

    fn has_quorum(&self) -> bool {
        let Some(etcd) = &self.etcd else { return false };
        let voters = etcd.members.iter().filter(|member| !member.learner);
        let up = voters.clone().filter(|voter| self.is_up(voter)).count();
        up >= quorum(voters.count())
    }

    fn member(&self, ordinal: u32) -> Option<&Member> {
        self.etcd.as_ref()?.members.iter().find(|member| member.ordinal == Some(ordinal))
    }

    /// Lets everything happen that happens by itself: pods stop and start, etcd forms and elects.
    pub fn settle(&mut self) {
        self.pods.retain(|_, process| !process.deleting);
        let used: BTreeSet<u32> = self.pods.keys().copied().collect();
        self.claims.retain(|ordinal, volume| !volume.claim.deleting || used.contains(ordinal));
        for ordinal in used {
            if !self.down.contains(&ordinal) {
                self.start(ordinal);
            }
        }
        self.form();
        let up: Vec<u64> = match &self.etcd {
            Some(etcd) => etcd.members.iter().filter(|it| self.is_up(it)).map(|it| it.id).collect(),
            None => return,
        };
        if !self.has_quorum() {
            return;
        }
        let etcd = self.etcd.as_mut().unwrap();
        etcd.members.iter_mut().filter(|it| up.contains(&it.id)).for_each(|it| it.started = true);
        let mut voters = etcd.members.iter().filter(|it| !it.learner && up.contains(&it.id)).map(|it| it.id);
        if !voters.clone().any(|id| id == etcd.leader) {
            etcd.leader = voters.next().unwrap();
        }
    }

    /// Makes a voter the leader, as elections may.
    pub fn elect(&mut self, ordinal: u32) {
        let id = self.member(ordinal).filter(|member| !member.learner && self.is_up(member)).map(|member| member.id);
        if let (Some(etcd), Some(id)) = (&mut self.etcd, id) {
            etcd.leader = id;
        }
    }

    /// The gate looks at the data, and then etcd starts as itself etcd would.
    fn start(&mut self, ordinal: u32) {
        let member = self.member(ordinal).cloned();
        let formed = self.etcd.as_ref().map(|etcd| (etcd.token.clone(), etcd.cluster_id, etcd.members.clone()));
        let process = self.pods.get_mut(&ordinal).unwrap();
        let Some(volume) = self.claims.get_mut(&ordinal).filter(|volume| !volume.claim.deleting) else { return };
        if process.runs.is_none() {
            let found = volume.data.map_or(Found::Nothing, Found::Member);
            match verdict(process.start.told, &found) {
                Verdict::Start => {}
                Verdict::Archive(_) => volume.data = None,
                Verdict::Refuse(why) => {
                    process.problem = Some(why);
                    return;
                }
            }
            process.problem = None;
        }
        let identity = match (volume.data, &process.start.founding, member.as_ref().zip(formed.as_ref())) {
            (Some(identity), _, _) => identity,
            (None, Some(token), _) => {
                assert!(
                    formed.as_ref().is_none_or(|(known, ..)| known == token),
                    "another cluster was founded over this one"
                );
                {
                    let size = process.start.initial_cluster.len() as u32;
                    identity_of(&place(), &Birth { token: token.clone(), size }, ordinal)
                }
            }
            (None, None, Some((member, (_, cluster_id, members)))) => {
                let live: Vec<_> = members.iter().map(|it| it.peer_url.as_str()).collect();
                let told: Vec<_> = process.start.initial_cluster.iter().map(|(_, url)| url.as_str()).collect();
                assert_eq!(told, live, "etcd refuses a list of members that is not the live one");
                assert!(!member.started, "c-{ordinal} lost its data and returns under its old ID");
                Identity { member_id: member.id, cluster_id: *cluster_id }
            }
            // Nobody knows it, so it can't join.
            (None, None, None) => return,
        };
        volume.data = Some(identity);
        // Who was removed finds out and ends.
        let removed = formed.is_some_and(|(_, _, members)| members.iter().all(|it| it.id != identity.member_id));
        process.runs = Some(identity).filter(|_| !removed);
    }

    /// Founders become a cluster when a quorum of them runs.
    fn form(&mut self) {
        let Some(birth) = self.birth.clone().filter(|_| self.etcd.is_none()) else { return };
        let runs = |ordinal: &u32| self.pods.get(ordinal).is_some_and(|it| it.runs.is_some());
        if (0..birth.size).filter(runs).count() < quorum(birth.size as usize) {
            return;
        }
        let members =
            (0..birth.size).map(|ordinal| member(identity_of(&place(), &birth, ordinal).member_id, ordinal, false));
        let members: Vec<Member> = members.collect();
        let leader = members[0].id;
        let cluster_id = cluster_id(&place(), &birth);
        self.etcd = Some(Etcd { token: birth.token, cluster_id, members, leader });
    }

    /// Takes one step. False if etcd could not do it now.
    pub fn take(&mut self, step: &Step) -> bool {
        match step {
            Step::RecordBirth(birth) => {
                assert!(self.pods.is_empty() && self.birth.is_none());
                self.birth = Some(birth.clone());
            }
            Step::RecordClusterId(id) => self.cluster_id = Some(*id),
            Step::CreatePeer { ordinal, .. } => drop(self.peers.entry(*ordinal).or_default()),
            Step::RecordMember { ordinal, identity, started } => {
                let peer = self.peers.get_mut(ordinal).expect("an EtcdPeer to record in");
                *peer = Peer { identity: Some(*identity), started: *started, deleting: false };
            }
            Step::CreateClaim { ordinal, birth, identity } => {
                let claim = Claim { deleting: false, birth: birth.clone(), identity: *identity };
                self.claims.entry(*ordinal).or_insert(Volume { claim, data: None });
            }
            Step::MarkClaim { ordinal, identity } => {
                let is_new = self.member(*ordinal).is_some_and(|member| member.learner && !member.started);
                let volume = self.claims.get_mut(ordinal).expect("a claim to mark");
                let holds = is_new || volume.data == Some(*identity);
                assert!(holds, "c-{ordinal}'s claim is marked with what it does not hold");
                volume.claim.identity = Some(*identity);
            }
            Step::CreatePod { ordinal, start } => self.create_pod(*ordinal, start),
            Step::TellPod { ordinal, told, serves_clients } => {
                let start = &mut self.pods.get_mut(ordinal).expect("a pod to tell").start;
                (start.told, start.serves_clients) = (*told, *serves_clients);
            }
            Step::DeletePod { ordinal, .. } => self.pods.get_mut(ordinal).expect("a pod to delete").deleting = true,
            Step::DeleteClaim { ordinal } => {
                assert!(self.has_quorum(), "c-{ordinal}'s claim is deleted while no quorum answers");
                assert!(self.member(*ordinal).is_none(), "c-{ordinal}'s claim is deleted, and it is a member");
                self.claims.get_mut(ordinal).expect("a claim to delete").claim.deleting = true;
            }
            Step::DeletePeer { ordinal } => {
                assert!(!self.pods.contains_key(ordinal) && !self.claims.contains_key(ordinal));
                self.peers.remove(ordinal);
            }
            Step::AddLearner { .. } | Step::Promote { .. } | Step::MoveLeader { .. } | Step::RemoveMember { .. } => {
                return self.has_quorum() && self.change(step);
            }
        }
        true
    }

    fn create_pod(&mut self, ordinal: u32, start: &Start) {
        assert!(self.peers.contains_key(&ordinal) && self.claims.contains_key(&ordinal), "c-{ordinal} lacks something");
        assert!(!self.claims[&ordinal].claim.deleting, "c-{ordinal}'s claim is going away");
        assert!(!self.pods.contains_key(&ordinal), "c-{ordinal} has a pod");
        assert!(start.founding.is_none() || self.cluster_id.is_none(), "a founding pod in a born cluster");
        let process = Process { start: start.clone(), deleting: false, runs: None, problem: None };
        self.pods.insert(ordinal, process);
    }

    fn change(&mut self, step: &Step) -> bool {
        match step {
            Step::AddLearner { ordinal } => {
                assert_eq!(self.learners(), 0, "a second learner");
                assert!(self.member(*ordinal).is_none(), "c-{ordinal} is a member");
                assert!(self.peers.contains_key(ordinal), "a learner before its EtcdPeer");
                assert!(!self.pods.contains_key(ordinal), "a learner where a pod still runs");
                self.added += 1;
                let learner = member(1000 + self.added, *ordinal, true);
                self.etcd.as_mut().unwrap().members.push(learner);
            }
            Step::Promote { ordinal, .. } => {
                let learner = self.member(*ordinal).expect("a learner to promote");
                assert!(learner.started && self.is_up(learner), "c-{ordinal} is promoted before it runs");
                self.member_mut(*ordinal).learner = false;
            }
            Step::MoveLeader { to, to_id, .. } => {
                self.elect(*to);
                assert_eq!(self.etcd.as_ref().unwrap().leader, *to_id);
            }
            Step::RemoveMember { ordinal, member_id } => self.remove(*ordinal, *member_id),
            _ => unreachable!(),
        }
        true
    }

    fn member_mut(&mut self, ordinal: u32) -> &mut Member {
        let members = &mut self.etcd.as_mut().unwrap().members;
        members.iter_mut().find(|member| member.ordinal == Some(ordinal)).unwrap()
    }

    fn remove(&mut self, ordinal: u32, id: u64) {
        let leaving = self.member(ordinal).filter(|member| member.id == id).expect("a member to remove").clone();
        let etcd = self.etcd.as_ref().unwrap();
        assert_ne!(etcd.leader, id, "the leader c-{ordinal} is removed");
        let left = etcd.members.iter().filter(|member| !member.learner && member.id != id);
        let healthy = left.clone().filter(|member| self.is_up(member)).count();
        let left = left.count();
        assert!(leaving.learner || healthy >= quorum(left), "c-{ordinal} is removed, and {healthy} of {left} are left");
        self.etcd.as_mut().unwrap().members.retain(|member| member.id != id);
        if let Some(process) = self.pods.get_mut(&ordinal) {
            process.runs = None;
        }
    }

    /// The EtcdCluster is deleted with everything that it owns, and created again.
    pub fn recreate(&mut self) {
        self.lives += 1;
        (self.birth, self.cluster_id) = (None, None);
        self.peers.clear();
        self.pods.clear();
    }
}

impl Process {
    fn see(&self) -> Pod {
        Pod {
            deleting: self.deleting,
            finished: false,
            told: Some(self.start.told),
            serves_clients: self.start.serves_clients,
            problem: self.problem.clone(),
        }
    }

    pub fn told(&self) -> Told {
        self.start.told
    }
}

fn member(id: u64, ordinal: u32, learner: bool) -> Member {
    Member { id, ordinal: Some(ordinal), peer_url: place().peer_url(ordinal), started: false, learner }
}
