//! Compares the data of a cluster's members periodically. This reads the whole database of every member, so it waits
//! until all are healthy, and skips large databases. What a comparison means is decided in the core.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash as _, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use etcd_operator_core::corruption::{Hash, confirmed_by, differing_members, known_after};
use etcd_operator_core::observed::Membership;
use etcd_operator_etcd::{Error, MemberClient, Status};
use futures::future::try_join_all;
use tracing::{debug, warn};

/// How long hashing a database of the largest size may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How soon data is compared if etcd itself raises a corruption alarm.
const SOON: Duration = Duration::from_secs(30);
/// Larger databases are not compared, in bytes.
const LARGEST: u64 = 512 << 20;

/// When each cluster was last compared, and which members are known to differ since then.
#[derive(Default)]
pub struct CorruptionChecks(Mutex<HashMap<(String, String), LastCheck>>);

struct LastCheck {
    at: Instant,
    differing: BTreeSet<u64>,
    /// Whether the comparison showed which members differ.
    is_conclusive: bool,
}

/// A cluster to be compared.
pub struct Subject<'a> {
    pub namespace: &'a str,
    pub cluster: &'a str,
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
    fn key(&self) -> (String, String) {
        (self.namespace.to_owned(), self.cluster.to_owned())
    }

    /// Whether a member may belong to the cluster.
    fn has_member(&self, id: u64) -> bool {
        self.membership.is_none_or(|membership| membership.member(id).is_some())
    }
}

impl CorruptionChecks {
    /// The members that are known to differ from the majority, by ID: as of now if a comparison is due, otherwise as of
    /// the last one. If etcd itself raises an alarm, it is due soon, however large the databases are.
    pub async fn differing(&self, subject: &Subject<'_>, every: Option<Duration>, accused: bool) -> BTreeSet<u64> {
        let every = if accused { Some(every.map_or(SOON, |every| every.min(SOON))) } else { every };
        let Some(every) = every else { return BTreeSet::new() };
        let (elapsed, last) = self.last(&subject.key(), every);
        let voters = &subject.voters;
        let is_cheap = accused || voters.iter().all(|voter| voter.status.db_size <= LARGEST);
        if elapsed < every || voters.len() < 2 || !is_cheap {
            return last;
        }
        // A failed comparison is not repeated at every reconcile: it may have been too much load already.
        let hashes = self.compare(subject).await;
        self.learn(subject, &hashes)
    }

    /// The members that differ right now. Empty if that is inconclusive: nothing is destroyed because of a stale
    /// finding. An inconclusive comparison is not repeated at once either: it reads all data.
    pub async fn differing_now(&self, subject: &Subject<'_>) -> BTreeSet<u64> {
        if self.all().get(&subject.key()).is_some_and(|last| !last.is_conclusive && last.at.elapsed() < SOON) {
            return BTreeSet::new();
        }
        let hashes = self.compare(subject).await;
        let known = self.learn(subject, &hashes);
        confirmed_by(&hashes, &known)
    }

    /// The hashes of the voters. Empty if not all of them could be read.
    async fn compare(&self, subject: &Subject<'_>) -> BTreeMap<u64, Hash> {
        // A member may lag behind, or have just compacted.
        let failed = |error: &Error| debug!(%error, "the members' data could not be compared");
        hashes_of(&subject.voters).await.inspect_err(failed).unwrap_or_default()
    }

    /// Remembers the result of a comparison, and returns which members are known to differ now.
    fn learn(&self, subject: &Subject<'_>, hashes: &BTreeMap<u64, Hash>) -> BTreeSet<u64> {
        let mut all = self.all();
        let known = all.remove(&subject.key()).map(|last| last.differing).unwrap_or_default();
        let differing = known_after(hashes, &known, |id| subject.has_member(id));
        if !differing.is_empty() {
            let (namespace, cluster) = (subject.namespace, subject.cluster);
            warn!(namespace, cluster, ?differing, "members differ from the majority");
        }
        let is_conclusive = differing_members(hashes).is_some() || !confirmed_by(hashes, &differing).is_empty();
        all.insert(subject.key(), LastCheck { at: Instant::now(), differing: differing.clone(), is_conclusive });
        differing
    }

    /// How long ago the last comparison was, and which members differed. A cluster that was never compared is treated
    /// as if it was at some time within the interval, so that a new process does not compare all clusters at once.
    fn last(&self, key: &(String, String), every: Duration) -> (Duration, BTreeSet<u64>) {
        let mut all = self.all();
        let compared = all.entry(key.clone()).or_insert_with(|| {
            let mut hasher = DefaultHasher::new();
            key.hash(&mut hasher);
            let ago = every.mul_f64((hasher.finish() % 1000) as f64 / 1000.0);
            let now = Instant::now();
            LastCheck { at: now.checked_sub(ago).unwrap_or(now), differing: BTreeSet::new(), is_conclusive: true }
        });
        (compared.at.elapsed(), compared.differing.clone())
    }

    /// Forgets a cluster that is gone.
    pub fn forget(&self, namespace: &str, cluster: &str) {
        self.all().remove(&(namespace.to_owned(), cluster.to_owned()));
    }

    fn all(&self) -> MutexGuard<'_, HashMap<(String, String), LastCheck>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hash of every voter at the newest revision that all of them have.
async fn hashes_of(voters: &[ComparedVoter<'_>]) -> Result<BTreeMap<u64, Hash>, Error> {
    let revision = voters.iter().map(|voter| voter.status.revision).min().unwrap_or_default();
    let hash = async |voter: &ComparedVoter<'_>| {
        let said = MemberClient::new(voter.url, PATIENCE)?.hash_kv(revision).await?;
        let hash = Hash { hash: said.hash, compact_revision: said.compact_revision };
        Ok::<_, Error>((voter.status.member_id, hash))
    };
    Ok(try_join_all(voters.iter().map(hash)).await?.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No member can be queried while one is unreachable, and that does not show whose data is wrong.
    #[tokio::test]
    async fn a_comparison_of_nobody_does_not_erase_a_finding() {
        let nobody = Subject { namespace: "ns", cluster: "c", membership: None, voters: Vec::new() };
        let (corruption_checks, every) = (CorruptionChecks::default(), Some(Duration::from_secs(60)));
        let found = LastCheck { at: Instant::now(), differing: BTreeSet::from([2]), is_conclusive: true };
        corruption_checks.all().insert(nobody.key(), found);
        assert_eq!(
            corruption_checks.differing_now(&nobody).await,
            BTreeSet::new(),
            "nothing is destroyed for an old finding"
        );
        assert_eq!(
            corruption_checks.differing(&nobody, every, false).await,
            BTreeSet::from([2]),
            "but it is known still"
        );
    }
}
