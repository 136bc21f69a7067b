//! What a comparison of the members' data means: a member that differs from the majority is corrupt. A comparison that
//! can't tell is no proof that nobody is.

use std::collections::{BTreeMap, BTreeSet};

use crate::quorum::quorum;

/// What a member's data amounts to at some revision, by the member's own account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash {
    pub hash: u32,
    /// What was compacted away when the hash was made. Hashes of different compactions can't be compared.
    pub compact_revision: u64,
}

/// Who has another hash than a majority, by ID. None if that can't be told: there are not two to compare, they don't speak
/// of the same stretch of history, or no majority agrees.
pub fn who_differs(hashes: &BTreeMap<u64, Hash>) -> Option<BTreeSet<u64>> {
    let mut votes: BTreeMap<u32, usize> = BTreeMap::new();
    for hash in hashes.values() {
        *votes.entry(hash.hash).or_default() += 1;
    }
    let compactions: BTreeSet<u64> = hashes.values().map(|hash| hash.compact_revision).collect();
    if hashes.len() < 2 || compactions.len() > 1 {
        return None;
    }
    let (right, _) = votes.into_iter().find(|(_, count)| *count >= quorum(hashes.len()))?;
    Some(hashes.iter().filter(|(_, hash)| hash.hash != right).map(|(id, _)| *id).collect())
}

/// Who may be given up for a comparison that was made just now, if these were known to differ before it. Of two nobody can tell
/// who is right; but whom a majority has found to differ before, and who still does while all the others agree, does.
pub fn confirmed_by(hashes: &BTreeMap<u64, Hash>, known: &BTreeSet<u64>) -> BTreeSet<u64> {
    who_differs(hashes).or_else(|| still_differ(hashes, known)).unwrap_or_default()
}

fn still_differ(hashes: &BTreeMap<u64, Hash>, known: &BTreeSet<u64>) -> Option<BTreeSet<u64>> {
    let mut others = hashes.iter().filter(|(id, _)| !known.contains(id)).map(|(_, hash)| *hash);
    let right = others.next().filter(|right| others.all(|other| other == *right))?;
    let compared: Vec<(u64, Hash)> = known.iter().filter_map(|id| Some((*id, *hashes.get(id)?))).collect();
    let differs = |hash: &Hash| hash.hash != right.hash && hash.compact_revision == right.compact_revision;
    compared.iter().all(|(_, hash)| differs(hash)).then(|| compared.iter().map(|(id, _)| *id).collect())
}

/// Who is known to differ after a comparison, if these were known before it. Whoever was found to differ is so until a
/// comparison that could tell has cleared them, or they are no members any more.
pub fn known_after(
    hashes: &BTreeMap<u64, Hash>,
    known: &BTreeSet<u64>,
    is_member: impl Fn(u64) -> bool,
) -> BTreeSet<u64> {
    let outcome = who_differs(hashes);
    let is_cleared = |id: u64| outcome.is_some() && hashes.contains_key(&id);
    let still_known = known.iter().copied().filter(|id| is_member(*id) && !is_cleared(*id));
    still_known.chain(outcome.iter().flatten().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: [u64; 0] = [];

    /// Members 1, 2, 3 …, and what each says: its hash and its compaction.
    fn hashes(said: &[(u32, u64)]) -> BTreeMap<u64, Hash> {
        let hash = |(hash, compact_revision): &(u32, u64)| Hash { hash: *hash, compact_revision: *compact_revision };
        (1..).zip(said.iter().map(hash)).collect()
    }

    fn differing(said: &[(u32, u64)]) -> Option<Vec<u64>> {
        who_differs(&hashes(said)).map(|ids| ids.into_iter().collect())
    }

    /// Who is known to differ after a comparison, if 2 was before it.
    fn known_after_2(hashes: &BTreeMap<u64, Hash>, members: &[u64]) -> Vec<u64> {
        known_after(hashes, &BTreeSet::from([2]), |id| members.contains(&id)).into_iter().collect()
    }

    #[test]
    fn member_with_a_minority_hash_differs() {
        assert_eq!(differing(&[(1, 5), (1, 5), (1, 5)]), Some(vec![]));
        assert_eq!(differing(&[(1, 5), (1, 5)]), Some(vec![]));
        assert_eq!(differing(&[(1, 5), (2, 5), (1, 5)]), Some(vec![2]));
        assert_eq!(differing(&[(1, 5), (2, 5), (3, 5), (1, 5), (1, 5)]), Some(vec![2, 3]));
    }

    #[test]
    fn hashes_without_a_majority_are_inconclusive() {
        assert_eq!(differing(&[(1, 5), (2, 5)]), None);
        assert_eq!(differing(&[(1, 5), (2, 5), (3, 5)]), None);
        assert_eq!(differing(&[(1, 5), (1, 5), (2, 5), (2, 5)]), None);
    }

    #[test]
    fn hashes_of_different_compactions_are_inconclusive() {
        assert_eq!(differing(&[(1, 5), (2, 6), (1, 5)]), None);
        assert_eq!(differing(&[(1, 5), (1, 6), (1, 5)]), None, "equal ones are chance then");
    }

    #[test]
    fn single_hash_is_inconclusive() {
        assert_eq!(differing(&[]), None);
        assert_eq!(differing(&[(1, 5)]), None);
    }

    #[test]
    fn a_comparison_that_cannot_tell_keeps_what_was_found() {
        for said in [&[][..], &[(1, 5)], &[(1, 5), (1, 6), (1, 5)], &[(1, 5), (2, 5), (3, 5)]] {
            assert_eq!(known_after_2(&hashes(said), &[1, 2, 3]), [2], "{said:?}");
        }
    }

    #[test]
    fn a_comparison_that_can_tell_replaces_what_was_found() {
        assert_eq!(known_after_2(&hashes(&[(1, 5), (2, 5), (1, 5)]), &[1, 2, 3]), [2]);
        assert_eq!(known_after_2(&hashes(&[(1, 5), (1, 5), (1, 5)]), &[1, 2, 3]), NOBODY);
        assert_eq!(known_after_2(&hashes(&[(1, 5), (1, 5), (2, 5)]), &[1, 2, 3]), [3]);
    }

    #[test]
    fn known_finding_is_confirmed_in_a_tie_if_all_the_others_agree() {
        let confirmed = |said: &[(u32, u64)], known: &[u64]| -> Vec<u64> {
            confirmed_by(&hashes(said), &known.iter().copied().collect()).into_iter().collect()
        };
        assert_eq!(confirmed(&[(1, 5), (2, 5)], &[2]), [2], "the third of them is gone since");
        assert_eq!(confirmed(&[(1, 5), (2, 5)], &[]), NOBODY, "nobody can tell");
        assert_eq!(confirmed(&[(1, 5), (1, 5)], &[2]), NOBODY, "it does not differ any more");
        assert_eq!(confirmed(&[(1, 5), (2, 6)], &[2]), NOBODY, "they can't be compared");
        assert_eq!(confirmed(&[(1, 5), (2, 5), (3, 5)], &[2]), NOBODY, "the others don't agree");
        assert_eq!(confirmed(&[(1, 5), (1, 5), (2, 5), (3, 5)], &[3, 4]), [3, 4]);
        assert_eq!(confirmed(&[(2, 5)], &[1]), NOBODY, "there is nobody to compare it with");
    }

    #[test]
    fn finding_about_a_member_not_compared_is_kept() {
        let mut others = hashes(&[(1, 5), (2, 5), (1, 5), (1, 5), (3, 5)]);
        others.remove(&2);
        assert_eq!(known_after_2(&others, &[1, 2, 3, 4, 5]), [2, 5]);
    }

    #[test]
    fn finding_about_a_removed_member_is_dropped() {
        let mut others = hashes(&[(1, 5), (2, 5), (1, 5)]);
        others.remove(&2);
        assert_eq!(known_after_2(&others, &[1, 3, 4]), NOBODY);
        assert_eq!(known_after_2(&hashes(&[]), &[1, 3, 4]), NOBODY, "also if nothing could be compared");
    }
}
