//! What does not belong to the cluster: volumes in the way of an EtcdCluster that is created again, and another etcd
//! cluster that answers at the addresses of its members. Nothing is touched until a user has cleared that up.

use std::collections::BTreeMap;

use super::world::{Api, ClaimObject, DataDir, Disk, Storage, World};
use crate::cluster::observed::{Answer, Claim, ClusterId, Identity, Member, MemberId, Membership, NoAnswer};
use crate::cluster::tests::support::{names, version};
use crate::ordinal::Ordinal;

const OTHER_CLUSTER: ClusterId = ClusterId(0xf0);
const MEMBERS: u32 = 3;
/// More than any member's ordinal.
const ORDINALS: u32 = 6;

impl Membership {
    pub fn is_of_another_cluster(&self) -> bool {
        self.cluster_id == OTHER_CLUSTER
    }
}

fn identity(ordinal: Ordinal) -> Identity {
    Identity { member_id: MemberId(0xf00 + u64::from(ordinal.0)), cluster_id: OTHER_CLUSTER }
}

/// What a member of the other cluster answers: that all is well.
pub fn answer(ordinal: Ordinal) -> Answer {
    Answer {
        identity: identity(ordinal),
        leader: Some(identity(Ordinal(0)).member_id),
        learner: false,
        version: Some(version("3.6.16")),
        storage_version: None,
        db_size: 0,
        db_in_use: 0,
        reads: true,
    }
}

/// The membership of the other cluster, if the operator takes that for the cluster's: it asks the first that answers.
pub fn membership(answers: &BTreeMap<Ordinal, Result<Answer, NoAnswer>>) -> Option<Membership> {
    let first = answers.values().flatten().find(|answer| answer.reads)?;
    let member = |ordinal: Ordinal| Member {
        id: identity(ordinal).member_id,
        ordinal: Some(ordinal),
        peer_url: names().peer_url(ordinal),
        started: true,
        learner: false,
    };
    let members = || Ordinal::first(MEMBERS).map(member).collect();
    (first.identity.cluster_id == OTHER_CLUSTER).then(|| Membership { cluster_id: OTHER_CLUSTER, members: members() })
}

/// Puts something in the way of an EtcdCluster that was created again a moment ago: it is to be restored from a backup
/// although it has volumes, or there is a volume of another cluster, or one that nobody knows.
pub fn get_in_the_way(world: &mut World) {
    let has_members = world.api.claims.values().any(|claim| claim.claim.identity.is_some());
    if !world.api.claims.is_empty() && world.random.percent(50) {
        world.note(|| "the user wants a backup restored over the volumes".to_owned());
        world.api.cluster.restores = true;
        return;
    }
    let Some(ordinal) = Ordinal::first(ORDINALS).find(|ordinal| !world.api.claims.contains_key(ordinal)) else {
        return;
    };
    world.note(|| format!("the user has a volume of another cluster for c-{ordinal}"));
    let version = world.api.claims.values().find_map(|claim| claim.claim.version.clone());
    let minor = world.disks.iter().find_map(|disk| disk.data).map_or(6, |data| data.minor);
    let known = Claim { identity: Some(identity(ordinal)), version, ..Claim::default() };
    let claim = if has_members { known } else { Claim::default() };
    let node = world.random.below(world.machines.len());
    let data = DataDir { identity: identity(ordinal), index: 0, corrupt: false, minor, oldest_log: minor };
    let bound_to = (world.storage == Storage::Local).then_some(node);
    world.disks.push(Disk { bound_to, data: Some(data) });
    let (uid, disk) = (world.next_uid(), Some(world.disks.len() - 1));
    let size = world.api.cluster.size;
    world.api.claims.insert(ordinal, ClaimObject { uid, claim, disk, chosen: Some(node), size });
    world.strange_claim = Some(uid);
}

/// The user deletes the strange volume, or creates the EtcdCluster without the backup. Whether there was anything.
pub fn clear_the_way(world: &mut World) -> bool {
    if let Some(uid) = world.strange_claim.take() {
        world.note(|| "the user deletes the volume of another cluster".to_owned());
        let claim = world.api.claims.values_mut().find(|claim| claim.uid == uid);
        return claim.map(|claim| claim.claim.deleting = true).is_some();
    }
    let is_obstructed = world.is_obstructed(&world.api);
    if is_obstructed {
        world.note(|| "the user creates the EtcdCluster without the backup".to_owned());
        let cluster = &mut world.api.cluster;
        (cluster.lives, cluster.version, cluster.restores) = (cluster.lives + 1, cluster.version + 1, false);
    }
    is_obstructed
}

impl World {
    /// Whether what exists can't form one cluster, and these objects show it.
    pub fn is_obstructed(&self, seen: &Api) -> bool {
        let cluster = &seen.cluster;
        let is_strange = |claim: &ClaimObject| Some(claim.uid) == self.strange_claim;
        let to_restore_over = cluster.restores && cluster.lives > 0 && !seen.claims.is_empty();
        let is_new = cluster.bootstrap.is_none() && cluster.cluster_id.is_none();
        is_new && (to_restore_over || seen.claims.values().any(is_strange))
    }
}
