//! How many voters form a quorum, and whether one of them may be removed.

/// The smallest majority of the voters.
pub fn quorum(voters: usize) -> usize {
    voters / 2 + 1
}

/// Whether a voter may be removed: the healthy voters among the remaining ones must be a quorum of those.
pub fn may_remove(voters: usize, healthy_after: usize) -> bool {
    voters > 1 && healthy_after >= quorum(voters - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quorum_is_more_than_half_of_the_voters() {
        assert_eq!([1, 2, 3, 4, 5].map(quorum), [1, 2, 2, 3, 3]);
    }

    #[test]
    fn a_voter_may_leave_only_if_the_rest_can_go_on() {
        assert!(may_remove(3, 2));
        assert!(!may_remove(3, 1), "the two that stay need both");
        assert!(may_remove(5, 3));
        assert!(!may_remove(5, 2));
        assert!(may_remove(2, 1));
        assert!(!may_remove(1, 0), "the last one never leaves");
    }
}
