//! etcd as far as it matters here: its members, which of them are up, and what was acknowledged to clients. Raft itself
//! is assumed to work; that it has the majorities that it relies on is not.

use super::coverage::Rule;
use super::world::{Broken, Process, World};
use crate::cluster::initial_members::{cluster_id, identity_of};
use crate::cluster::observed::{Bootstrap, ClusterId, Member, MemberId, Membership};
use crate::cluster::quorum::quorum;
use crate::cluster::tests::support::names;
use crate::ordinal::Ordinal;

pub struct Etcd {
    /// What its ID and those of its initial members are derived from.
    pub bootstrap: Bootstrap,
    pub cluster_id: ClusterId,
    pub members: Vec<Member>,
    pub leader: Option<MemberId>,
    /// The cluster version, once the members agree on one: its minor.
    pub minor: Option<u64>,
    /// The minor version that is the target of a downgrade.
    pub downgrade: Option<u64>,
    /// How many writes were acknowledged to clients.
    pub acknowledged: u64,
    added: u64,
}

impl Etcd {
    pub fn found(bootstrap: Bootstrap) -> Self {
        let initial_member =
            |ordinal: Ordinal| new_member(identity_of(&names(), &bootstrap, ordinal).member_id, ordinal, false);
        Etcd {
            cluster_id: cluster_id(&names(), &bootstrap),
            members: Ordinal::first(bootstrap.size).map(initial_member).collect(),
            leader: None,
            minor: None,
            downgrade: None,
            acknowledged: 0,
            added: 0,
            bootstrap,
        }
    }

    pub fn membership(&self) -> Membership {
        Membership { cluster_id: self.cluster_id, members: self.members.clone() }
    }

    pub fn member(&self, id: MemberId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    pub fn member_at(&self, ordinal: Ordinal) -> Option<&Member> {
        self.members.iter().find(|member| member.ordinal == Some(ordinal))
    }

    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.learner)
    }

    /// Whether a process participates: a member that the others reach.
    pub fn connects(&self, world: &World, process: &Process) -> bool {
        let is_member = self.member(process.identity.member_id).is_some();
        process.identity.cluster_id == self.cluster_id && is_member && world.answers(process)
    }

    pub fn is_up(&self, world: &World, member: &Member) -> bool {
        let processes = world.processes.iter();
        processes.filter(|it| it.identity.member_id == member.id).any(|process| self.connects(world, process))
    }

    pub fn has_quorum(&self, world: &World) -> bool {
        let up = self.voters().filter(|voter| self.is_up(world, voter)).count();
        up >= quorum(self.voters().count())
    }

    pub fn add_learner(&mut self, ordinal: Ordinal) {
        self.added += 1;
        self.members.push(new_member(MemberId(1000 + self.added), ordinal, true));
    }
}

fn new_member(id: MemberId, ordinal: Ordinal, learner: bool) -> Member {
    Member { id, ordinal: Some(ordinal), peer_url: names().peer_url(ordinal), started: false, learner }
}

impl World {
    /// Initial members form a cluster when a quorum of them runs.
    pub fn form_etcd(&mut self) {
        let Some(bootstrap) = &self.api.cluster.bootstrap else { return };
        // The IDs are hashes, which are worth computing only if there are enough processes to be a quorum.
        let is_another = self.etcd.as_ref().is_none_or(|known| known.bootstrap != *bootstrap);
        if !is_another || self.processes.len() < quorum(bootstrap.size as usize) {
            return;
        }
        let etcd = Etcd::found(bootstrap.clone());
        if etcd.has_quorum(self) {
            self.note(|| "etcd: the initial members have formed a cluster".to_owned());
            self.etcd = Some(etcd);
        }
    }

    /// A membership change goes through the log: once it took effect, a quorum has everything before it.
    pub fn replicate_to_a_quorum(&mut self) {
        let Some(etcd) = &self.etcd else { return };
        let voters: Vec<MemberId> =
            etcd.voters().filter(|voter| etcd.is_up(self, voter)).map(|voter| voter.id).collect();
        let (needed, acknowledged) = (quorum(etcd.voters().count()), etcd.acknowledged);
        let mut running: Vec<&mut Process> =
            self.processes.iter_mut().filter(|it| voters.contains(&it.identity.member_id)).collect();
        running.sort_by_key(|process| std::cmp::Reverse(process.index));
        for process in running.into_iter().take(needed) {
            process.index = process.index.max(acknowledged);
            if let Some(data) = &mut self.disks[process.disk].data {
                data.index = process.index;
            }
        }
    }

    /// A removed member that learns of its removal exits. The rest elects a leader, replicates, and serves clients.
    pub fn run_etcd(&mut self) -> Result<(), Broken> {
        let Some(mut etcd) = self.etcd.take() else { return Ok(()) };
        let outcome = self.run(&mut etcd);
        self.etcd = Some(etcd);
        outcome
    }

    /// The leader raises the cluster version when all members run the new one, and lowers it for a downgrade. Each
    /// member's data follows some time later.
    fn agree_on_a_version(&mut self, etcd: &mut Etcd, up: &[MemberId]) {
        let running = self.processes.iter().filter(|process| up.contains(&process.identity.member_id));
        let minors: Vec<u64> = running.map(|process| process.version.minor).collect();
        let lowest = minors.iter().copied().min().unwrap_or_default();
        let all_are_up = up.len() == etcd.members.len();
        match (etcd.minor, etcd.downgrade) {
            // They take some seconds to agree for the first time.
            (None, _) => etcd.minor = Some(lowest).filter(|_| self.random.percent(15)),
            (_, Some(target)) => {
                etcd.minor = Some(target);
                etcd.downgrade =
                    Some(target).filter(|target| !all_are_up || minors.iter().any(|minor| minor != target));
            }
            (Some(agreed), None) if all_are_up && lowest > agreed => etcd.minor = Some(lowest),
            _ => {}
        }
        let slow = Ordinal(self.random.below(6) as u32);
        for process in self.processes.iter().filter(|it| up.contains(&it.identity.member_id) && it.ordinal != slow) {
            if let (Some(data), Some(agreed)) = (&mut self.disks[process.disk].data, etcd.minor) {
                let runs = process.version.minor;
                // It writes a snapshot to make its data readable for an earlier version.
                data.oldest_log = if agreed < data.minor { runs } else { data.oldest_log.min(runs) };
                data.minor = agreed;
            }
        }
    }

    fn run(&mut self, etcd: &mut Etcd) -> Result<(), Broken> {
        if !etcd.has_quorum(self) {
            etcd.leader = None;
            return Ok(());
        }
        let removed: Vec<u64> = self
            .processes
            .iter()
            .filter(|it| etcd.member(it.identity.member_id).is_none() && self.answers(it))
            .map(|it| it.pod)
            .collect();
        self.processes.retain(|process| !removed.contains(&process.pod));
        let up: Vec<MemberId> = etcd.members.iter().filter(|it| etcd.is_up(self, it)).map(|it| it.id).collect();
        let index_of = |world: &World, id: MemberId| {
            let runs = world.processes.iter().find(|process| process.identity.member_id == id);
            runs.map_or(0, |process| process.index)
        };
        let voters: Vec<MemberId> = etcd.voters().map(|voter| voter.id).filter(|id| up.contains(id)).collect();
        let most = voters.iter().map(|id| index_of(self, *id)).max().unwrap_or_default();
        if etcd.acknowledged > 0 {
            self.coverage.judge(Rule::AcknowledgedWritesStay);
        }
        if most < etcd.acknowledged {
            let lost = etcd.acknowledged - most;
            return Err(format!("{lost} acknowledged writes are lost: nobody who votes has them"));
        }
        if etcd.leader.is_none_or(|leader| !voters.contains(&leader) || index_of(self, leader) < etcd.acknowledged) {
            etcd.leader = voters.iter().copied().find(|id| index_of(self, *id) == most);
        }
        etcd.members.iter_mut().filter(|it| up.contains(&it.id)).for_each(|it| it.started = true);
        self.agree_on_a_version(etcd, &up);
        // Writes are acknowledged to clients only once the operator has recorded all voters.
        let noted = |member: &Member| {
            let peer = member.ordinal.and_then(|ordinal| self.api.peers.get(&ordinal));
            peer.is_some_and(|peer| peer.started && peer.identity.is_some_and(|it| it.member_id == member.id))
        };
        let promises = self.api.cluster.cluster_id.is_some() && etcd.voters().all(noted);
        if promises {
            etcd.acknowledged = most + 1;
        }
        // A write needs a quorum; the other members may lag for a while.
        let may_lag = voters.len() - quorum(etcd.voters().count());
        let behind: Vec<MemberId> = (0..may_lag).map(|_| voters[self.random.below(voters.len())]).collect();
        let slow_learner = self.random.percent(40);
        for process in &mut self.processes {
            let id = process.identity.member_id;
            let lags = behind.contains(&id) || (slow_learner && !voters.contains(&id));
            if up.contains(&id) && !lags {
                process.index = etcd.acknowledged.max(most);
                if let Some(data) = &mut self.disks[process.disk].data {
                    data.index = process.index;
                }
            }
        }
        Ok(())
    }
}
