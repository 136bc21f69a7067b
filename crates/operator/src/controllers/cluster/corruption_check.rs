//! Compares the data of a cluster's members periodically. This reads the whole database of every member, so it waits
//! until all are healthy, and skips large databases. What a comparison means is decided in the core.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher};
use std::time::{Duration, Instant};

use etcd_operator_core::cluster::corruption::{Hash, confirmed_by, differing_members, known_after};
use etcd_operator_core::cluster::observed::{MemberId, Membership};
use etcd_operator_core::names::ClusterNames;
use etcd_operator_etcd::{Error, MemberClient, Status};
use futures::future::try_join_all;
use tracing::{debug, warn};

use super::memory::{LastCheck, Memory};

/// How long hashing a database of the largest size may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How soon data is compared if etcd itself raises a corruption alarm.
const SOON: Duration = Duration::from_secs(30);
/// Larger databases are not compared, in bytes.
const LARGEST: u64 = 512 << 20;

/// A cluster to be compared.
pub struct Subject<'a> {
    pub names: &'a ClusterNames,
    /// What is remembered of the last comparison.
    pub memory: &'a Memory,
    /// All members of the cluster. `None` if no quorum could be queried.
    pub membership: Option<&'a Membership>,
    /// The members that can be compared.
    pub voters: Vec<ComparedVoter<'a>>,
}

/// A member that answered, and its address.
pub struct ComparedVoter<'a> {
    pub url: &'a str,
    pub status: &'a Status,
}

impl Subject<'_> {
    /// The members that are known to differ from the majority, by ID: as of now if a comparison is due, otherwise as of
    /// the last one. If etcd itself raises an alarm, it is due soon, however large the databases are.
    pub async fn differing(&self, every: Option<Duration>, has_alarm: bool) -> BTreeSet<MemberId> {
        let every = if has_alarm { Some(every.map_or(SOON, |every| every.min(SOON))) } else { every };
        let Some(every) = every else { return BTreeSet::new() };
        let (elapsed, last) = self.last(every);
        let is_cheap = has_alarm || self.voters.iter().all(|voter| voter.status.db_size <= LARGEST);
        if elapsed < every || self.voters.len() < 2 || !is_cheap {
            return last;
        }
        // A failed comparison is not repeated at every reconcile: it may have been too much load already.
        let hashes = self.compare().await;
        self.learn(&hashes)
    }

    /// The members that differ right now. Empty if that is inconclusive: nothing is destroyed because of a stale
    /// finding. An inconclusive comparison is not repeated at once either: it reads all data.
    pub async fn differing_now(&self) -> BTreeSet<MemberId> {
        let is_recent = |last: &LastCheck| !last.is_conclusive && last.at.elapsed() < SOON;
        if self.memory.last_check().as_ref().is_some_and(is_recent) {
            return BTreeSet::new();
        }
        let hashes = self.compare().await;
        let known = self.learn(&hashes);
        confirmed_by(&hashes, &known)
    }

    /// The hashes of the voters. Empty if not all of them could be read.
    async fn compare(&self) -> BTreeMap<MemberId, Hash> {
        // A member may lag behind, or have just compacted.
        let failed = |error: &Error| debug!(%error, "the members' data could not be compared");
        hashes_of(&self.voters).await.inspect_err(failed).unwrap_or_default()
    }

    /// Remembers the result of a comparison, and returns which members are known to differ now.
    fn learn(&self, hashes: &BTreeMap<MemberId, Hash>) -> BTreeSet<MemberId> {
        let mut last = self.memory.last_check();
        let known = last.take().map(|last| last.differing).unwrap_or_default();
        let differing = known_after(hashes, &known, |id| self.has_member(id));
        if !differing.is_empty() {
            warn!(?differing, "members differ from the majority");
        }
        let is_conclusive = differing_members(hashes).is_some() || !confirmed_by(hashes, &differing).is_empty();
        *last = Some(LastCheck { at: Instant::now(), differing: differing.clone(), is_conclusive });
        differing
    }

    /// Whether a member may belong to the cluster.
    fn has_member(&self, id: MemberId) -> bool {
        self.membership.is_none_or(|membership| membership.member(id).is_some())
    }

    /// How long ago the last comparison was, and which members differed. A cluster that was never compared is treated
    /// as if it was at some time within the interval, so that a new process does not compare all clusters at once.
    fn last(&self, every: Duration) -> (Duration, BTreeSet<MemberId>) {
        let mut last = self.memory.last_check();
        let compared = last.get_or_insert_with(|| {
            let mut hasher = DefaultHasher::new();
            (&self.names.namespace, &self.names.cluster).hash(&mut hasher);
            let ago = every.mul_f64((hasher.finish() % 1000) as f64 / 1000.0);
            let now = Instant::now();
            LastCheck { at: now.checked_sub(ago).unwrap_or(now), differing: BTreeSet::new(), is_conclusive: true }
        });
        (compared.at.elapsed(), compared.differing.clone())
    }
}

/// The hash of every voter at the newest revision that all of them have.
async fn hashes_of(voters: &[ComparedVoter<'_>]) -> Result<BTreeMap<MemberId, Hash>, Error> {
    let revision = voters.iter().map(|voter| voter.status.revision).min().unwrap_or_default();
    let hash = async |voter: &ComparedVoter<'_>| {
        let said = MemberClient::new(voter.url, PATIENCE)?.hash_kv(revision).await?;
        let hash = Hash { hash: said.hash, compact_revision: said.compact_revision };
        Ok::<_, Error>((MemberId(voter.status.member_id), hash))
    };
    Ok(try_join_all(voters.iter().map(hash)).await?.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No member can be queried while one is unreachable, and that does not show whose data is wrong.
    #[tokio::test]
    async fn a_comparison_of_nobody_does_not_erase_a_finding() {
        let memory = Memory::default();
        let names = ClusterNames { cluster: "c".into(), namespace: "ns".into(), domain: "cluster.local".into() };
        let nobody = Subject { names: &names, memory: &memory, membership: None, voters: Vec::new() };
        let found = LastCheck { at: Instant::now(), differing: BTreeSet::from([MemberId(2)]), is_conclusive: true };
        *memory.last_check() = Some(found);
        assert_eq!(nobody.differing_now().await, BTreeSet::new(), "nothing is destroyed for an old finding");
        let every = Some(Duration::from_secs(60));
        assert_eq!(nobody.differing(every, false).await, BTreeSet::from([MemberId(2)]), "but it is known still");
    }
}
