//! What the operator observes: Kubernetes through its caches, and etcd as far as it can be reached.

use std::collections::{BTreeMap, BTreeSet};

use etcd_operator_api::MemberRole;
use semver::Version;

use super::etcd::Etcd;
use super::strangers;
use super::templates::{fits_no_node, method_between};
use super::world::{Api, ClaimObject, PodObject, Process, REPLACE_AFTER, Storage, World};
use crate::cluster::observed::{
    self, Answer, BackupFirst, Claim, MemberId, Membership, NoAnswer, Objects, Observed, Peer, Pod, Recorded,
    Remembered, SharedObjects, Wanted,
};
use crate::cluster::quorum::quorum;
use crate::cluster::spec_diff::{SpecDiff, UpdateMethod};
use crate::cluster::tests::support::{names, version};
use crate::ordinal::Ordinal;

impl World {
    /// The operator's observation: Kubernetes from these objects, and etcd itself, which is always queried live.
    pub fn observe(&self, seen: &Api) -> Observed {
        let cluster = &seen.cluster;
        let answers = self.ask(seen);
        let strange = strangers::membership(&answers);
        let strange_version = strange.as_ref().map(|_| version("3.6.0"));
        Observed {
            names: names(),
            uid: format!("life-{}", cluster.lives),
            now: self.now,
            wanted: Wanted {
                replicas: cluster.replicas,
                durable: self.storage != Storage::Ephemeral,
                restores: cluster.restores,
                deleting: false,
                paused: cluster.paused.then(|| "spec.paused is true".to_owned()),
                replace_after: Some(REPLACE_AFTER),
                defragments: true,
                migrates: false,
                version: Some(cluster.wanted.clone()),
                flags: Vec::new(),
            },
            recorded: Recorded {
                bootstrap: cluster.bootstrap.clone(),
                cluster_id: cluster.cluster_id,
                version: cluster.accepted.clone(),
                voters: cluster.status.members.iter().filter(|it| it.role != Some(MemberRole::Learner)).count(),
                oldest_log: cluster.oldest_log.clone(),
                unhealthy_since: cluster.unhealthy_since.clone(),
            },
            objects: Objects {
                peers: BTreeMap::clone(&seen.peers),
                pods: seen.pods.iter().map(|(ordinal, pod)| (*ordinal, see_pod(pod, seen))).collect(),
                claims: seen.claims.iter().map(|(ordinal, claim)| (*ordinal, see_claim(claim, seen))).collect(),
                outdated: see_outdated(seen),
                quota: 1 << 30,
                backup_first: BackupFirst::NotRequired,
                shared: SharedObjects::clone(&seen.shared),
            },
            etcd: observed::Etcd {
                answers,
                membership: strange.or_else(|| self.known_etcd().map(Etcd::membership)),
                local_membership: self.local_membership(seen),
                cluster_version: strange_version
                    .or_else(|| self.cluster_version())
                    .or_else(|| cluster.status.cluster_version.as_deref().map(version))
                    .or_else(|| {
                        let noted = seen.claims.values().filter_map(|claim| claim.claim.version.as_ref());
                        noted.map(|noted| noted.minor).max().map(|minor| Version::new(3, minor, 0))
                    }),
                downgrade: self.known_etcd().and_then(|etcd| etcd.downgrade).map(|minor| Version::new(3, minor, 0)),
                alarms: BTreeSet::new(),
                compacted: None,
            },
            remembered: Remembered { has_rollout_slot: true, ..Remembered::default() },
        }
    }

    /// etcd, if the operator reaches a member that has a quorum.
    pub fn known_etcd(&self) -> Option<&Etcd> {
        let etcd = self.etcd.as_ref().filter(|etcd| etcd.has_quorum(self))?;
        let speaks = |process: &&Process| etcd.connects(self, process) && self.is_reached(process);
        self.processes.iter().find(speaks).map(|_| etcd)
    }

    /// Whether the operator can reach a process.
    fn is_reached(&self, process: &Process) -> bool {
        let is_elsewhere = self.hidden.contains(&process.machine) || self.misrouted.contains(&process.machine);
        self.answers(process) && !is_elsewhere
    }

    /// The cluster version that etcd reports, if a quorum can be queried.
    fn cluster_version(&self) -> Option<Version> {
        Some(Version::new(3, self.known_etcd()?.minor?, 0))
    }

    /// Queries every known pod at its known address: a pod that is gone does not answer.
    fn ask(&self, seen: &Api) -> BTreeMap<Ordinal, Result<Answer, NoAnswer>> {
        let mut answers = BTreeMap::new();
        for (ordinal, pod) in seen.pods.iter() {
            let Some(process) = self.processes.iter().find(|process| process.pod == pod.uid) else { continue };
            let answer = match process {
                process if self.misrouted.contains(&process.machine) => Ok(strangers::answer(*ordinal)),
                process if self.is_reached(process) => Ok(self.answer_of(process)),
                _ => Err(NoAnswer("timed out".to_owned())),
            };
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
            version: Some(process.version.clone()),
            // A process whose disk was emptied underneath does not know it.
            storage_version: self.disks[process.disk]
                .data
                .map(|data| data.minor)
                .or_else(|| etcd?.minor)
                .filter(|_| etcd.is_some_and(|etcd| etcd.minor.is_some()))
                .map(|minor| Version::new(3, minor, 0)),
            db_size: 0,
            db_in_use: 0,
            reads: member.is_some() && !learner && quorum.is_some(),
        }
    }

    /// The members whose data differs from that of a majority, according to a comparison of all voters; or that were
    /// known to differ before, while all the others agree. `None` if they can't be compared, or the comparison is
    /// inconclusive.
    pub fn differing(&self, known: &BTreeSet<MemberId>) -> Option<BTreeSet<MemberId>> {
        let etcd = self.known_etcd()?;
        let is_heard =
            |id: MemberId| self.processes.iter().any(|it| it.identity.member_id == id && self.is_reached(it));
        if !etcd.voters().all(|voter| etcd.is_up(self, voter) && is_heard(voter.id)) {
            return None;
        }
        let is_corrupt = |process: &&Process| self.disks[process.disk].data.is_some_and(|data| data.corrupt);
        let running = self.processes.iter().filter(|process| etcd.connects(self, process));
        let corrupt: BTreeSet<MemberId> =
            running.filter(is_corrupt).map(|process| process.identity.member_id).collect();
        let right = etcd.voters().filter(|it| !corrupt.contains(&it.id)).count();
        let is_known = right > 0 && corrupt.iter().all(|id| known.contains(id));
        (right >= quorum(etcd.voters().count()) || is_known).then_some(corrupt)
    }
}

fn see_outdated(seen: &Api) -> BTreeMap<Ordinal, SpecDiff> {
    let change = |ordinal: &Ordinal, peer: &Peer| {
        let method = update_method(seen, *ordinal, peer)?;
        Some((*ordinal, SpecDiff { fields: vec![format!("{:?} or its template", peer.version)], method }))
    };
    seen.peers.iter().filter_map(|(ordinal, peer)| change(ordinal, peer)).collect()
}

/// How a member follows the spec, if it is outdated.
fn update_method(seen: &Api, ordinal: Ordinal, peer: &Peer) -> Option<UpdateMethod> {
    let (made, wanted) = (*seen.templates.get(&ordinal)?, seen.cluster.template);
    let pod = seen.pods.get(&ordinal).filter(|pod| !pod.deleting);
    // A pod that was resized to more than its node has may find a node that has it.
    let is_short = || pod.is_some_and(|pod| pod.node.is_some() && pod.template == made && fits_no_node(made));
    let refuses = || pod.is_some_and(|pod| pod.resize_refused == Some(wanted));
    if peer.version.as_ref() != Some(&seen.cluster.wanted) {
        return Some(UpdateMethod::Restart);
    }
    if made == wanted {
        return is_short().then_some(UpdateMethod::Restart);
    }
    match method_between(made, wanted) {
        UpdateMethod::Resize if refuses() => Some(UpdateMethod::Restart),
        method => Some(method),
    }
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
    let too_small = claim.size < seen.cluster.size;
    Claim { node: claim.chosen.map(|node| seen.nodes[node]), too_small, ..claim.claim.clone() }
}
