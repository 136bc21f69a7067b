//! The identities of the initial members of a cluster, before they exist. etcd derives the IDs of initial members from
//! their peer URLs and the token alone, so a volume with the data of any other member is recognised before the first
//! start.

use sha1::{Digest, Sha1};

use crate::cluster::observed::{Bootstrap, ClusterId, Identity, MemberId, Observed};
use crate::names::ClusterNames;
use crate::ordinal::Ordinal;

pub fn identity_of(names: &ClusterNames, bootstrap: &Bootstrap, ordinal: Ordinal) -> Identity {
    Identity { member_id: member_id(names, bootstrap, ordinal), cluster_id: cluster_id(names, bootstrap) }
}

/// The ID of the cluster is derived from those of all initial members, in order.
pub fn cluster_id(names: &ClusterNames, bootstrap: &Bootstrap) -> ClusterId {
    let mut members: Vec<MemberId> =
        Ordinal::first(bootstrap.size).map(|ordinal| member_id(names, bootstrap, ordinal)).collect();
    members.sort_unstable();
    let bytes: Vec<u8> = members.into_iter().flat_map(|id| id.0.to_be_bytes()).collect();
    ClusterId(first_eight(&bytes))
}

/// The ID of the cluster, as recorded or as it will be. `None` if it is not known yet how it is bootstrapped.
pub fn expected_cluster_id(observed: &Observed) -> Option<ClusterId> {
    let of_bootstrap = |bootstrap: &Bootstrap| cluster_id(&observed.names, bootstrap);
    observed.recorded.cluster_id.or_else(|| observed.recorded.bootstrap.as_ref().map(of_bootstrap))
}

fn member_id(names: &ClusterNames, bootstrap: &Bootstrap, ordinal: Ordinal) -> MemberId {
    MemberId(first_eight(format!("{}{}", names.peer_url(ordinal), bootstrap.token).as_bytes()))
}

fn first_eight(bytes: &[u8]) -> u64 {
    Sha1::digest(bytes).iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The IDs that a real etcd 3.6.16 derived from this bootstrap.
    #[test]
    fn etcd_comes_to_the_same_ids() {
        let names =
            ClusterNames { cluster: "my-cluster".into(), namespace: "default".into(), domain: "cluster.local".into() };
        let bootstrap = Bootstrap { token: "a67ac203-ad99-4151-b352-c406c9ff41f8".into(), size: 3 };
        let members = [0x62b1cba203322599, 0xf53559f13cb55b88, 0x619197a9a6633326].map(MemberId);
        for (ordinal, member_id) in (0..).map(Ordinal).zip(members) {
            assert_eq!(
                identity_of(&names, &bootstrap, ordinal),
                Identity { member_id, cluster_id: ClusterId(0x4bf6b07483cbcacc) }
            );
        }
    }
}
