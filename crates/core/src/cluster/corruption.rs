//! What a comparison of the members' data means: a member that differs from the majority is corrupt. An inconclusive
//! comparison does not prove that none is.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::observed::MemberId;
use crate::cluster::quorum::quorum;

/// The hash of a member's data at some revision, as the member reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash {
    pub hash: u32,
    /// Up to where history was compacted when the hash was computed. Hashes of different compactions can't be compared.
    pub compact_revision: u64,
}

/// The members whose hash differs from that of a majority, by ID. `None` if that is inconclusive: there are not two to
/// compare, they don't cover the same revisions, or no majority agrees.
pub fn differing_members(hashes: &BTreeMap<MemberId, Hash>) -> Option<BTreeSet<MemberId>> {
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

/// The members that may be replaced after a comparison made just now, if `known` were known to differ before it. Of two
/// members, none is provably right; but one that a majority has found to differ before, and that still differs while
/// all the others agree, is corrupt.
pub fn confirmed_by(hashes: &BTreeMap<MemberId, Hash>, known: &BTreeSet<MemberId>) -> BTreeSet<MemberId> {
    differing_members(hashes).or_else(|| still_differ(hashes, known)).unwrap_or_default()
}

fn still_differ(hashes: &BTreeMap<MemberId, Hash>, known: &BTreeSet<MemberId>) -> Option<BTreeSet<MemberId>> {
    let mut others = hashes.iter().filter(|(id, _)| !known.contains(id)).map(|(_, hash)| *hash);
    let right = others.next().filter(|right| others.all(|other| other == *right))?;
    let compared: Vec<(MemberId, Hash)> = known.iter().filter_map(|id| Some((*id, *hashes.get(id)?))).collect();
    let differs = |hash: &Hash| hash.hash != right.hash && hash.compact_revision == right.compact_revision;
    compared.iter().all(|(_, hash)| differs(hash)).then(|| compared.iter().map(|(id, _)| *id).collect())
}

/// The members that are known to differ after a comparison, if `known` were known before it. A member that was found to
/// differ stays known until a conclusive comparison clears it, or it is no longer a member.
pub fn known_after(
    hashes: &BTreeMap<MemberId, Hash>,
    known: &BTreeSet<MemberId>,
    is_member: impl Fn(MemberId) -> bool,
) -> BTreeSet<MemberId> {
    let outcome = differing_members(hashes);
    let is_cleared = |id: MemberId| outcome.is_some() && hashes.contains_key(&id);
    let still_known = known.iter().copied().filter(|id| is_member(*id) && !is_cleared(*id));
    still_known.chain(outcome.iter().flatten().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: [u64; 0] = [];

    /// Members 1, 2, 3 …, and what each reports: its hash and its compact revision.
    fn hashes(said: &[(u32, u64)]) -> BTreeMap<MemberId, Hash> {
        let hash = |(hash, compact_revision): &(u32, u64)| Hash { hash: *hash, compact_revision: *compact_revision };
        (1..).map(MemberId).zip(said.iter().map(hash)).collect()
    }

    fn numbers(ids: BTreeSet<MemberId>) -> Vec<u64> {
        ids.into_iter().map(|id| id.0).collect()
    }

    fn differing(said: &[(u32, u64)]) -> Option<Vec<u64>> {
        differing_members(&hashes(said)).map(numbers)
    }

    /// The members known to differ after a comparison, if 2 was known before it.
    fn known_after_2(hashes: &BTreeMap<MemberId, Hash>, members: &[u64]) -> Vec<u64> {
        numbers(known_after(hashes, &BTreeSet::from([MemberId(2)]), |id| members.contains(&id.0)))
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
            numbers(confirmed_by(&hashes(said), &known.iter().copied().map(MemberId).collect()))
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
        others.remove(&MemberId(2));
        assert_eq!(known_after_2(&others, &[1, 2, 3, 4, 5]), [2, 5]);
    }

    #[test]
    fn finding_about_a_removed_member_is_dropped() {
        let mut others = hashes(&[(1, 5), (2, 5), (1, 5)]);
        others.remove(&MemberId(2));
        assert_eq!(known_after_2(&others, &[1, 3, 4]), NOBODY);
        assert_eq!(known_after_2(&hashes(&[]), &[1, 3, 4]), NOBODY, "also if nothing could be compared");
    }
}
