//! The annotations of pods and claims: the identity of a member, and the data that it should have.

use std::collections::BTreeMap;

use etcd_operator_core::cluster::observed::{Bootstrap, ClusterId, ExpectedData, Identity, MemberId};
use etcd_operator_protocol::gate::{read_data_state, stored_data_state};

/// On any object of a cluster: `true` pauses the whole cluster.
pub const PAUSED: &str = "etcd.improbable.io/paused";
/// On pods and claims: the ID of the member whose data it is.
pub const MEMBER_ID: &str = "etcd.improbable.io/member-id";
/// On pods and claims: the ID of the etcd cluster.
pub const CLUSTER_ID: &str = "etcd.improbable.io/cluster-id";
/// On pods: whether data must exist, `Fresh` or `Kept`. The gate reads it at every start of etcd.
pub const DATA: &str = "etcd.improbable.io/data";
/// On pods: since when clients are drained, because the pod is about to be restarted.
pub const LEAVING_SINCE: &str = "etcd.improbable.io/leaving-since";
/// On pods: the desired image of etcd. The running container may report another name of it.
pub const IMAGE: &str = "etcd.improbable.io/image";
/// On pods: the resources that Kubernetes refused to give them in place.
pub const RESIZE_REFUSED: &str = "etcd.improbable.io/resize-refused";
/// On claims: the version of etcd whose minor is the earliest that can read the data; with the patch that wrote it.
pub const DATA_VERSION: &str = "etcd.improbable.io/data-version";
/// On pods, for the cluster autoscaler: the volumes that a pod may lose when its node is removed.
pub const EVICTABLE_VOLUMES: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";
/// On claims: the token and the size of the bootstrap that the claim was created for. Claims outlive operators, so
/// these names stay as they were first written.
pub const BOOTSTRAP_TOKEN: &str = "etcd.improbable.io/birth-token";
pub const BOOTSTRAP_SIZE: &str = "etcd.improbable.io/birth-size";
/// A label on pods: `voter`, `learner`, or `leaving` before it is restarted. The client Service selects the voters.
pub const ROLE: &str = "etcd.improbable.io/role";
pub const VOTER: &str = "voter";
pub const LEARNER: &str = "learner";
pub const LEAVING: &str = "leaving";

/// The role of a member's pod. A voter that does not serve clients is being drained, or does not serve them yet.
pub fn role(is_learner: bool, serves_clients: bool) -> &'static str {
    match (is_learner, serves_clients) {
        (_, true) => VOTER,
        (true, false) => LEARNER,
        (false, false) => LEAVING,
    }
}

pub fn of_identity(identity: Option<Identity>) -> BTreeMap<String, String> {
    identity.map_or_else(BTreeMap::new, |identity| {
        BTreeMap::from([
            (MEMBER_ID.to_owned(), identity.member_id.to_string()),
            (CLUSTER_ID.to_owned(), identity.cluster_id.to_string()),
        ])
    })
}

pub fn of_expected_data(expected: ExpectedData) -> BTreeMap<String, String> {
    let mut all = of_identity(expected.identity);
    all.insert(DATA.to_owned(), stored_data_state(expected.data).to_owned());
    all
}

pub fn of_bootstrap(bootstrap: Option<&Bootstrap>) -> BTreeMap<String, String> {
    bootstrap.map_or_else(BTreeMap::new, |bootstrap| {
        BTreeMap::from([
            (BOOTSTRAP_TOKEN.to_owned(), bootstrap.token.clone()),
            (BOOTSTRAP_SIZE.to_owned(), bootstrap.size.to_string()),
        ])
    })
}

pub fn read_identity(annotations: &BTreeMap<String, String>) -> Option<Identity> {
    Some(Identity {
        member_id: MemberId::parse(annotations.get(MEMBER_ID)?)?,
        cluster_id: ClusterId::parse(annotations.get(CLUSTER_ID)?)?,
    })
}

pub fn read_expected_data(annotations: &BTreeMap<String, String>) -> Option<ExpectedData> {
    Some(ExpectedData { data: read_data_state(annotations.get(DATA)?)?, identity: read_identity(annotations) })
}

pub fn read_bootstrap(annotations: &BTreeMap<String, String>) -> Option<Bootstrap> {
    Some(Bootstrap {
        token: annotations.get(BOOTSTRAP_TOKEN)?.clone(),
        size: annotations.get(BOOTSTRAP_SIZE)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use etcd_operator_core::cluster::observed::DataState;

    use super::*;

    #[test]
    fn annotations_that_were_written_are_read_again() {
        let identity = Identity { member_id: MemberId(0x8eca1236bfa86a0a), cluster_id: ClusterId(7) };
        for expected in [
            ExpectedData { data: DataState::New, identity: None },
            ExpectedData { data: DataState::New, identity: Some(identity) },
            ExpectedData { data: DataState::Existing, identity: Some(identity) },
        ] {
            assert_eq!(read_expected_data(&of_expected_data(expected)), Some(expected));
        }
        let bootstrap = Bootstrap { token: "t".into(), size: 3 };
        assert_eq!(read_bootstrap(&of_bootstrap(Some(&bootstrap))), Some(bootstrap));
        assert_eq!(read_expected_data(&BTreeMap::new()), None);
    }
}
