//! Reads hashes of the members' data. This reads the whole database of every member; when it is done, and what it means,
//! is decided in the core.

use std::collections::BTreeMap;
use std::time::Duration;

use etcd_operator_core::cluster::corruption::Hash;
use etcd_operator_core::cluster::observed::MemberId;
use etcd_operator_etcd::{Error, MemberClient, Status};
use futures::future::try_join_all;
use tracing::debug;

/// How long hashing a database of the largest size may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A member that answered, and its address.
pub struct ComparedVoter<'a> {
    pub url: &'a str,
    pub status: &'a Status,
}

impl ComparedVoter<'_> {
    pub fn member_id(&self) -> MemberId {
        MemberId(self.status.member_id)
    }
}

/// The hash of every voter at the newest revision that all of them have. Empty if not all of them could be read.
pub async fn compare(voters: &[ComparedVoter<'_>]) -> BTreeMap<MemberId, Hash> {
    let revision = voters.iter().map(|voter| voter.status.revision).min().unwrap_or_default();
    let hash = async |voter: &ComparedVoter<'_>| {
        let said = MemberClient::new(voter.url, PATIENCE)?.hash_kv(revision).await?;
        Ok((voter.member_id(), Hash { hash: said.hash, compact_revision: said.compact_revision }))
    };
    // A member may lag behind, or have just compacted.
    let failed = |error: &Error| debug!(%error, "the members' data could not be compared");
    let hashes = try_join_all(voters.iter().map(hash)).await.inspect_err(failed);
    hashes.unwrap_or_default().into_iter().collect()
}
