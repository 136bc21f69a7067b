//! Comparing the data of a cluster's members, now and then: a member that differs from the majority is corrupt. It reads
//! the whole database of every member, so it waits until all are well, and leaves large ones alone.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use etcd_operator_core::quorum::quorum;
use etcd_operator_etcd::{Error, KvHash, MemberClient, Status};
use futures::future::try_join_all;
use tracing::{debug, warn};

/// How long hashing a database of the largest size may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How soon data is compared if etcd itself says that some of it is wrong.
const SOON: Duration = Duration::from_secs(30);
/// Larger databases are not compared, in bytes.
const LARGEST: u64 = 512 << 20;

/// When each cluster was last compared, and who differed.
#[derive(Default)]
pub struct Comparisons(Mutex<HashMap<(String, String), Compared>>);

struct Compared {
    at: Instant,
    differing: BTreeSet<u64>,
}

/// A member that answered, and where.
pub struct Asked<'a> {
    pub url: &'a str,
    pub status: &'a Status,
}

impl Comparisons {
    /// The members that differ from the majority, by ID: as of now if a comparison is due, else as of the last one. If etcd
    /// itself accuses somebody, it is due soon, however large the databases are.
    pub async fn differing(
        &self,
        (namespace, cluster): (&str, &str),
        voters: &[Asked<'_>],
        every: Option<Duration>,
        accused: bool,
    ) -> BTreeSet<u64> {
        let every = if accused { Some(every.map_or(SOON, |every| every.min(SOON))) } else { every };
        let Some(every) = every else { return BTreeSet::new() };
        let (elapsed, last) = self.last(&(namespace.to_owned(), cluster.to_owned()), every);
        let is_cheap = accused || voters.iter().all(|voter| voter.status.db_size <= LARGEST);
        if elapsed < every || voters.len() < 2 || !is_cheap {
            return last;
        }
        // A comparison that fails is not repeated at every look: it may have been too much already.
        self.compare((namespace, cluster), voters).await.unwrap_or(last)
    }

    /// The members that differ at this moment. Nobody, if that can't be told.
    pub async fn differing_now(&self, cluster: (&str, &str), voters: &[Asked<'_>]) -> BTreeSet<u64> {
        self.compare(cluster, voters).await.unwrap_or_default()
    }

    async fn compare(&self, (namespace, cluster): (&str, &str), voters: &[Asked<'_>]) -> Option<BTreeSet<u64>> {
        let outcome = hashes_of(voters).await;
        // A member may be behind, or just have compacted.
        let failed = |error: &Error| debug!(%error, "the members' data could not be compared");
        let differing = outcome.inspect_err(failed).ok().map(|hashes| who_differs(&hashes));
        if differing.as_ref().is_some_and(|differing| !differing.is_empty()) {
            warn!(namespace, cluster, ?differing, "members differ from the majority");
        }
        let mut all = self.all();
        let known = all.entry((namespace.to_owned(), cluster.to_owned()));
        let compared = known.or_insert(Compared { at: Instant::now(), differing: BTreeSet::new() });
        compared.at = Instant::now();
        compared.differing = differing.clone().unwrap_or_else(|| compared.differing.clone());
        differing
    }

    /// How long ago the last comparison was, and who differed. A cluster that was never compared is taken for one that was
    /// at some time within the interval, so that a new process does not compare all of them at once.
    fn last(&self, key: &(String, String), every: Duration) -> (Duration, BTreeSet<u64>) {
        let mut all = self.all();
        let compared = all.entry(key.clone()).or_insert_with(|| {
            let mut hasher = DefaultHasher::new();
            key.hash(&mut hasher);
            let ago = every.mul_f64((hasher.finish() % 1000) as f64 / 1000.0);
            let now = Instant::now();
            Compared { at: now.checked_sub(ago).unwrap_or(now), differing: BTreeSet::new() }
        });
        (compared.at.elapsed(), compared.differing.clone())
    }

    /// Forgets a cluster that is gone.
    pub fn forget(&self, namespace: &str, cluster: &str) {
        self.all().remove(&(namespace.to_owned(), cluster.to_owned()));
    }

    fn all(&self) -> MutexGuard<'_, HashMap<(String, String), Compared>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What every voter has at the newest revision that all of them have.
async fn hashes_of(voters: &[Asked<'_>]) -> Result<BTreeMap<u64, KvHash>, Error> {
    let revision = voters.iter().map(|voter| voter.status.revision).min().unwrap_or_default();
    let hash = async |voter: &Asked<'_>| {
        let hash = MemberClient::new(voter.url, PATIENCE)?.hash_kv(revision).await?;
        Ok::<_, Error>((voter.status.member_id, hash))
    };
    Ok(try_join_all(voters.iter().map(hash)).await?.into_iter().collect())
}

/// Who has another hash than a majority. Hashes of different compactions can't be compared.
fn who_differs(hashes: &BTreeMap<u64, KvHash>) -> BTreeSet<u64> {
    let mut compactions = hashes.values().map(|hash| hash.compact_revision);
    let first = compactions.next();
    if compactions.any(|compaction| Some(compaction) != first) {
        return BTreeSet::new();
    }
    let mut votes: BTreeMap<u32, usize> = BTreeMap::new();
    for hash in hashes.values() {
        *votes.entry(hash.hash).or_default() += 1;
    }
    let majority = votes.into_iter().find(|(_, count)| *count >= quorum(hashes.len()));
    let Some((right, _)) = majority else { return BTreeSet::new() };
    hashes.iter().filter(|(_, hash)| hash.hash != right).map(|(id, _)| *id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: [u64; 0] = [];

    fn differing(hashes: &[(u32, u64)]) -> Vec<u64> {
        let hash = |(hash, compact_revision): &(u32, u64)| KvHash {
            hash: *hash,
            compact_revision: *compact_revision,
            hash_revision: 9,
        };
        let hashes = (1..).zip(hashes.iter().map(hash)).collect();
        who_differs(&hashes).into_iter().collect()
    }

    #[test]
    fn who_is_outvoted_differs() {
        assert_eq!(differing(&[(1, 5), (1, 5), (1, 5)]), NOBODY);
        assert_eq!(differing(&[(1, 5), (2, 5), (1, 5)]), [2]);
        assert_eq!(differing(&[(1, 5), (2, 5), (3, 5), (1, 5), (1, 5)]), [2, 3]);
    }

    #[test]
    fn without_a_majority_nobody_knows() {
        assert_eq!(differing(&[(1, 5), (2, 5)]), NOBODY);
        assert_eq!(differing(&[(1, 5), (2, 5), (3, 5)]), NOBODY);
        assert_eq!(differing(&[(1, 5), (1, 5), (2, 5), (2, 5)]), NOBODY);
    }

    #[test]
    fn hashes_of_different_compactions_say_nothing() {
        assert_eq!(differing(&[(1, 5), (2, 6), (1, 5)]), NOBODY);
    }
}
