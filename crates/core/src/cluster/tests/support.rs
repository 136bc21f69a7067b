//! Clusters to decide about, and short ways to change them.

use std::collections::BTreeMap;

use crate::cluster::observed::{
    Answer, Bootstrap, Claim, ClusterId, DataState, ExpectedData, Identity, Member, MemberId, Membership, Node,
    Observed, Peer, Pod, Versions,
};
use crate::cluster::plan::{Plan, Step, plan};
use crate::names::ClusterNames;
use crate::ordinal::Ordinal;

pub const CLUSTER_ID: ClusterId = ClusterId(0xc1);
pub const VERSION: &str = "3.6.16";
pub const NOW: i64 = 1_800_000_000;

pub fn names() -> ClusterNames {
    ClusterNames { cluster: "c".into(), namespace: "db".into(), domain: "cluster.local".into() }
}

pub fn bootstrap_of(size: u32) -> Bootstrap {
    Bootstrap { token: "uid-1".into(), size }
}

pub fn identity_of(ordinal: u32) -> Identity {
    Identity { member_id: MemberId(100 + u64::from(ordinal)), cluster_id: CLUSTER_ID }
}

pub fn kept(ordinal: u32) -> ExpectedData {
    ExpectedData { data: DataState::Existing, identity: Some(identity_of(ordinal)) }
}

pub fn fresh(ordinal: u32) -> ExpectedData {
    ExpectedData { data: DataState::New, identity: Some(identity_of(ordinal)) }
}

pub fn entry_of(ordinal: u32) -> (String, String) {
    (names().member_name(Ordinal(ordinal)), names().peer_url(Ordinal(ordinal)))
}

/// An EtcdCluster that was created a moment ago.
pub fn new_cluster(replicas: u32) -> Observed {
    Observed {
        names: names(),
        uid: "uid-1".into(),
        replicas,
        durable: true,
        restores: false,
        deleting: false,
        paused: None,
        now: NOW,
        replace_after: Some(300),
        defragments: true,
        quota: 2 << 30,
        bootstrap: None,
        cluster_id: None,
        versions: Versions { wanted: VERSION.into(), accepted: Some(VERSION.into()), ..Versions::default() },
        backup_first: Default::default(),
        outdated: BTreeMap::new(),
        has_rollout_slot: true,
        migrates: false,
        peers: BTreeMap::new(),
        pods: BTreeMap::new(),
        claims: BTreeMap::new(),
        answers: BTreeMap::new(),
        membership: None,
        local_membership: None,
        unhealthy_since: BTreeMap::new(),
        observed_unhealthy_since: BTreeMap::new(),
        alarms: Default::default(),
        compacted: None,
        differing: Default::default(),
    }
}

/// A cluster in the desired state: bootstrapped, with all members healthy. Member 0 is the leader.
pub fn cluster_of(size: u32) -> Observed {
    let mut observed = Observed {
        bootstrap: Some(bootstrap_of(size)),
        cluster_id: Some(CLUSTER_ID),
        membership: Some(Membership { cluster_id: CLUSTER_ID, members: Vec::new() }),
        versions: Versions { cluster: Some("3.6.0".into()), ..new_cluster(size).versions },
        ..new_cluster(size)
    };
    for ordinal in 0..size {
        observed.join(ordinal);
    }
    observed
}

pub fn steps_of(observed: &Observed) -> Vec<Step> {
    plan(observed).steps
}

/// The reason for which a plan waits.
pub fn awaited(plan: &Plan) -> &'static str {
    plan.waiting.as_ref().map_or("", |waiting| waiting.reason.as_str())
}

impl Observed {
    /// A healthy voter with all its objects.
    pub fn join(&mut self, ordinal: u32) {
        let identity = Some(identity_of(ordinal));
        let version = self.versions.wanted.clone();
        self.peers.insert(Ordinal(ordinal), Peer { identity, started: true, version, proven: true, ..Peer::default() });
        let version = self.versions.cluster.as_ref().map(|_| VERSION.to_owned());
        let claim = Claim { bootstrap: self.bootstrap.clone(), identity, version, ..Claim::default() };
        if self.durable {
            self.claims.insert(Ordinal(ordinal), claim);
        }
        self.pods.insert(
            Ordinal(ordinal),
            Pod {
                expected: Some(kept(ordinal)),
                serves_clients: true,
                node: Some(Node::default()),
                began: true,
                ..Pod::default()
            },
        );
        self.join_etcd(ordinal);
        self.member_mut(ordinal).started = true;
        self.answer(ordinal);
    }

    /// The kubelets report all pods ready.
    pub fn be_ready(&mut self) {
        self.pods.values_mut().for_each(|pod| pod.ready = true);
    }

    /// A voter that only etcd knows.
    pub fn join_etcd(&mut self, ordinal: u32) {
        let member = Member {
            id: identity_of(ordinal).member_id,
            ordinal: Some(Ordinal(ordinal)),
            peer_url: names().peer_url(Ordinal(ordinal)),
            started: false,
            learner: false,
        };
        self.membership.as_mut().unwrap().members.push(member);
    }

    /// A learner that was just added, with its EtcdPeer.
    pub fn join_as_learner(&mut self, ordinal: u32) {
        self.join_etcd(ordinal);
        self.member_mut(ordinal).learner = true;
        let version = self.versions.wanted.clone();
        let peer = Peer { identity: Some(identity_of(ordinal)), version, ..Peer::default() };
        self.peers.insert(Ordinal(ordinal), peer);
    }

    /// A learner that runs and answers.
    pub fn join_as_running_learner(&mut self, ordinal: u32) {
        self.join(ordinal);
        self.member_mut(ordinal).learner = true;
        self.pods.get_mut(&Ordinal(ordinal)).unwrap().serves_clients = false;
        self.answer(ordinal);
    }

    pub fn answer(&mut self, ordinal: u32) {
        let learner = self.member(Ordinal(ordinal)).unwrap().learner;
        let answer = Answer {
            identity: identity_of(ordinal),
            leader: Some(identity_of(0).member_id),
            learner,
            version: self.peers.get(&Ordinal(ordinal)).map_or(VERSION.into(), |peer| peer.version.clone()),
            storage_version: None,
            db_size: 20480,
            db_in_use: 20480,
            reads: !learner,
        };
        self.answers.insert(Ordinal(ordinal), Ok(answer));
    }

    pub fn stop_answering(&mut self, ordinal: u32) {
        self.answers.insert(Ordinal(ordinal), Err("timed out".into()));
    }

    /// No member can be queried any more.
    pub fn lose_quorum(&mut self) {
        self.membership = None;
        self.answers.clear();
    }

    pub fn lead(&mut self, ordinal: u32) {
        for answer in self.answers.values_mut().flatten() {
            answer.leader = Some(identity_of(ordinal).member_id);
        }
    }

    pub fn leave_etcd(&mut self, ordinal: u32) {
        self.membership.as_mut().unwrap().members.retain(|member| member.ordinal != Some(Ordinal(ordinal)));
        self.answers.remove(&Ordinal(ordinal));
    }

    pub fn member_mut(&mut self, ordinal: u32) -> &mut Member {
        let members = &mut self.membership.as_mut().unwrap().members;
        members.iter_mut().find(|member| member.ordinal == Some(Ordinal(ordinal))).unwrap()
    }

    /// The EtcdCluster was deleted with everything that it owned, and recreated: only the claims are left.
    pub fn recreate(&mut self) {
        let claims = std::mem::take(&mut self.claims);
        *self = Observed { uid: "uid-2".into(), claims, ..new_cluster(self.replicas) };
    }
}
