//! Clusters to decide about, and short ways to change them.

use jiff::{SignedDuration, Timestamp};
use semver::Version;

use crate::cluster::observed::{
    Answer, Bootstrap, Claim, ClusterId, DataState, Etcd, ExpectedData, Identity, Member, MemberId, Membership,
    NoAnswer, Node, Objects, Observed, Peer, Pod, Recorded, Remembered, ServiceKind, SharedObjects, Wanted,
};
use crate::cluster::plan::{Plan, Step, plan};
use crate::cluster::quorum::quorum;
use crate::names::ClusterNames;
use crate::ordinal::Ordinal;

pub const CLUSTER_ID: ClusterId = ClusterId(0xc1);
pub const VERSION: &str = "3.6.16";
pub const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

pub const fn seconds(number: i64) -> SignedDuration {
    SignedDuration::from_secs(number)
}

/// The version that a text stands for.
pub fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

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

/// The Services and the budget of a cluster, as they should be.
fn shared_objects(voters: u32) -> SharedObjects {
    let min_available = Some(quorum(voters as usize));
    SharedObjects { services: ServiceKind::ALL.into(), min_available, budget_is_as_applied: true }
}

/// An EtcdCluster that was created a moment ago, but for its Services and its PodDisruptionBudget, which exist.
pub fn new_cluster(replicas: u32) -> Observed {
    Observed {
        names: names(),
        uid: "uid-1".into(),
        now: NOW,
        wanted: Wanted {
            replicas,
            durable: true,
            restores: false,
            deleting: false,
            paused: None,
            replace_after: Some(seconds(300)),
            defragments: true,
            migrates: false,
            version: Some(version(VERSION)),
            flags: Vec::new(),
        },
        recorded: Recorded { version: Some(version(VERSION)), ..Recorded::default() },
        objects: Objects { quota: 2 << 30, shared: shared_objects(replicas), ..Objects::default() },
        etcd: Etcd::default(),
        remembered: Remembered { has_rollout_slot: true, ..Remembered::default() },
    }
}

/// A cluster in the desired state: bootstrapped, with all members healthy. Member 0 is the leader.
pub fn cluster_of(size: u32) -> Observed {
    let mut observed = new_cluster(size).with(|it| {
        it.recorded.bootstrap = Some(bootstrap_of(size));
        it.recorded.cluster_id = Some(CLUSTER_ID);
        it.etcd.membership = Some(Membership { cluster_id: CLUSTER_ID, members: Vec::new() });
        it.etcd.cluster_version = Some(version("3.6.0"));
    });
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
    /// The same, but for this.
    pub fn with(mut self, change: impl FnOnce(&mut Observed)) -> Observed {
        change(&mut self);
        self
    }

    /// A healthy voter with all its objects.
    pub fn join(&mut self, ordinal: u32) {
        let identity = Some(identity_of(ordinal));
        let version = self.wanted.version.clone();
        self.objects
            .peers
            .insert(Ordinal(ordinal), Peer { identity, started: true, version, proven: true, ..Peer::default() });
        let version = self.etcd.cluster_version.as_ref().map(|_| super::support::version(VERSION));
        let claim = Claim { bootstrap: self.recorded.bootstrap.clone(), identity, version, ..Claim::default() };
        if self.wanted.durable {
            self.objects.claims.insert(Ordinal(ordinal), claim);
        }
        self.objects.pods.insert(
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
        self.objects.pods.values_mut().for_each(|pod| pod.ready = true);
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
        self.etcd.membership.as_mut().unwrap().members.push(member);
        self.fit_budget();
    }

    /// A learner that was just added, with its EtcdPeer.
    pub fn join_as_learner(&mut self, ordinal: u32) {
        self.join_etcd(ordinal);
        self.member_mut(ordinal).learner = true;
        self.fit_budget();
        let version = self.wanted.version.clone();
        let peer = Peer { identity: Some(identity_of(ordinal)), version, ..Peer::default() };
        self.objects.peers.insert(Ordinal(ordinal), peer);
    }

    /// A learner that runs and answers.
    pub fn join_as_running_learner(&mut self, ordinal: u32) {
        self.join(ordinal);
        self.member_mut(ordinal).learner = true;
        self.fit_budget();
        self.objects.pods.get_mut(&Ordinal(ordinal)).unwrap().serves_clients = false;
        self.answer(ordinal);
    }

    pub fn answer(&mut self, ordinal: u32) {
        let learner = self.member(Ordinal(ordinal)).unwrap().learner;
        let answer = Answer {
            identity: identity_of(ordinal),
            leader: Some(identity_of(0).member_id),
            learner,
            version: self
                .objects
                .peers
                .get(&Ordinal(ordinal))
                .map_or(Some(version(VERSION)), |peer| peer.version.clone()),
            storage_version: None,
            db_size: 20480,
            db_in_use: 20480,
            reads: !learner,
        };
        self.etcd.answers.insert(Ordinal(ordinal), Ok(answer));
    }

    pub fn stop_answering(&mut self, ordinal: u32) {
        self.etcd.answers.insert(Ordinal(ordinal), Err(NoAnswer("timed out".into())));
    }

    /// No member can be queried any more.
    pub fn lose_quorum(&mut self) {
        self.etcd.membership = None;
        self.etcd.answers.clear();
    }

    pub fn lead(&mut self, ordinal: u32) {
        for answer in self.etcd.answers.values_mut().flatten() {
            answer.leader = Some(identity_of(ordinal).member_id);
        }
    }

    pub fn leave_etcd(&mut self, ordinal: u32) {
        self.etcd.membership.as_mut().unwrap().members.retain(|member| member.ordinal != Some(Ordinal(ordinal)));
        self.fit_budget();
        self.etcd.answers.remove(&Ordinal(ordinal));
    }

    /// The PodDisruptionBudget is made for the voters that there are.
    pub fn fit_budget(&mut self) {
        let voters = self.etcd.membership.iter().flat_map(Membership::voters).count();
        self.objects.shared.min_available = Some(quorum(voters));
    }

    pub fn member_mut(&mut self, ordinal: u32) -> &mut Member {
        let members = &mut self.etcd.membership.as_mut().unwrap().members;
        members.iter_mut().find(|member| member.ordinal == Some(Ordinal(ordinal))).unwrap()
    }

    /// The EtcdCluster was deleted with everything that it owned, and recreated: only the claims are left.
    pub fn recreate(&mut self) {
        let claims = std::mem::take(&mut self.objects.claims);
        *self = new_cluster(self.wanted.replicas).with(|it| {
            it.uid = "uid-2".into();
            it.objects.claims = claims;
        });
    }
}
