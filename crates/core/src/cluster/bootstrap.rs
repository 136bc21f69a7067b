//! The stage of a cluster: not yet recorded, bootstrapping, or bootstrapped. A bootstrapped cluster is never
//! bootstrapped again, and volumes of an earlier EtcdCluster are adopted rather than bootstrapped over.

use crate::cluster::observed::{Bootstrap, Claim, ClusterId, Observed};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing was ever started: how it will be bootstrapped is recorded first.
    ToRecord(Bootstrap),
    /// Volumes of an earlier EtcdCluster of this name exist: the cluster continues with them.
    ToAdopt(ClusterId),
    Bootstrapping(Bootstrap),
    Bootstrapped(ClusterId),
    /// What an earlier cluster of this name left is still being deleted. Nothing may be built on it.
    ToWait(&'static str),
    /// What exists can't form one cluster.
    Refused(String),
}

pub fn stage_of(observed: &Observed) -> Stage {
    if let Some(cluster_id) = observed.recorded.cluster_id {
        return Stage::Bootstrapped(cluster_id);
    }
    if let Some(bootstrap) = &observed.recorded.bootstrap {
        return Stage::Bootstrapping(bootstrap.clone());
    }
    if observed.objects.claims.values().any(|claim| claim.deleting) {
        return Stage::ToWait("volume claims of an earlier cluster of this name are still being deleted");
    }
    // Claims that this very EtcdCluster has made for its bootstrap are not in its way, should that not be recorded any
    // more.
    let is_own = |claim: &Claim| claim.bootstrap.as_ref().is_some_and(|it| it.token == observed.uid);
    if observed.wanted.restores && !observed.objects.claims.values().all(is_own) {
        return Stage::Refused(volumes_in_the_way(observed));
    }
    let claimed = observed.objects.claims.values().filter_map(|claim| claim.identity);
    let recorded = observed.objects.peers.values().filter(|peer| !peer.deleting).filter_map(|peer| peer.identity);
    let mut earlier: Vec<ClusterId> = claimed.chain(recorded).map(|identity| identity.cluster_id).collect();
    earlier.sort_unstable();
    earlier.dedup();
    match earlier[..] {
        [] => {}
        [cluster_id] => return Stage::ToAdopt(cluster_id),
        _ => return Stage::Refused(several_clusters(&earlier)),
    }
    // Members of an earlier cluster that still answer would be mistaken for those that are to be bootstrapped.
    if observed.objects.pods.values().any(|pod| pod.deleting)
        || observed.objects.peers.values().any(|peer| peer.deleting)
    {
        return Stage::ToWait("members of an earlier cluster of this name are still being deleted");
    }
    let unknown: Vec<String> = observed
        .objects
        .claims
        .iter()
        .filter(|(_, claim)| claim.bootstrap.is_none())
        .map(|(ordinal, _)| observed.names.member_name(*ordinal))
        .collect();
    if !unknown.is_empty() {
        return Stage::Refused(unknown_claims(&unknown));
    }
    // Volumes without a known member: an earlier bootstrap was never observed to complete. It is repeated with its own
    // token, so that members which did start are found again instead of bootstrapped over.
    let unfinished = observed.objects.claims.values().find_map(|claim| claim.bootstrap.clone());
    Stage::ToRecord(
        unfinished.unwrap_or_else(|| Bootstrap { token: observed.uid.clone(), size: initial_size(observed) }),
    )
}

/// A backup is restored to one member; the others get its data like every new member.
fn initial_size(observed: &Observed) -> u32 {
    if observed.wanted.restores { 1 } else { observed.wanted.replicas }
}

/// It is ambiguous whether the user wants the data on the volumes or in the backup.
fn volumes_in_the_way(observed: &Observed) -> String {
    let names: Vec<String> =
        observed.objects.claims.keys().map(|ordinal| observed.names.member_name(*ordinal)).collect();
    format!(
        "a backup is to be restored, but there are volume claims of this cluster's name already ({}): delete them if the backup \
         is what you want, or create the cluster without spec.bootstrap.restore to go on with what is on them",
        names.join(", ")
    )
}

/// It is unknown whether they hold data, and of which cluster: a cluster is not bootstrapped over them.
fn unknown_claims(names: &[String]) -> String {
    format!(
        "there are volume claims of this cluster's name that the operator did not make ({}); rename or delete them, or \
         choose another name for the cluster",
        names.join(", ")
    )
}

fn several_clusters(ids: &[ClusterId]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| id.to_string()).collect();
    format!(
        "the volume claims of this name hold data of different etcd clusters ({}); delete or rename those that you don't \
         want to be used",
        ids.join(", ")
    )
}
