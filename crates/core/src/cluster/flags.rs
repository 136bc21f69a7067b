//! Which flags each version of etcd knows: an upgrade must not give a member a flag with which it would not start.
//!
//! The tables come from the flag definitions in the sources of etcd 3.5.35, 3.6.16 and 3.7.3: etcd refuses flags that
//! it doesn't know as "not defined". Flags that only the operator sets are left out.

/// Flags added in 3.6. None were added in 3.7.
const CAME_WITH_3_6: [&str; 20] = [
    "bootstrap-defrag-threshold-megabytes",
    "compact-hash-check-time",
    "compaction-batch-limit",
    "compaction-sleep-interval",
    "corrupt-check-time",
    "distributed-tracing-address",
    "distributed-tracing-instance-id",
    "distributed-tracing-sampling-rate",
    "distributed-tracing-service-name",
    "downgrade-check-time",
    "enable-distributed-tracing",
    "experimental-warning-unary-request-duration",
    "feature-gates",
    "log-format",
    "max-learners",
    "memory-mlock",
    "snapshot-catchup-entries",
    "warning-apply-duration",
    "warning-unary-request-duration",
    "watch-progress-notify-interval",
];

/// Flags removed in 3.6.
const WENT_WITH_3_6: [&str; 2] = ["enable-v2", "experimental-enable-v2v3"];

/// The prefix of the flags removed in 3.7: all that had it, and no others.
const WENT_WITH_3_7: &str = "experimental-";

/// The flags that a minor version of etcd 3 does not know, although another supported one does. They are given without
/// leading dashes. Versions newer than all known ones are treated like the newest of those.
pub fn unknown_flags<'a>(minor: u64, flags: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    flags.filter(|flag| is_unknown(minor, flag)).collect()
}

fn is_unknown(minor: u64, flag: &str) -> bool {
    let not_yet = minor < 6 && CAME_WITH_3_6.contains(&flag);
    let no_more = (minor >= 6 && WENT_WITH_3_6.contains(&flag)) || (minor >= 7 && flag.starts_with(WENT_WITH_3_7));
    not_yet || no_more
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The minor versions that don't know a flag.
    fn unknown_to(flag: &str) -> Vec<u64> {
        [5, 6, 7, 8].into_iter().filter(|minor| !unknown_flags(*minor, [flag].into_iter()).is_empty()).collect()
    }

    #[test]
    fn a_flag_is_unknown_before_it_came() {
        assert_eq!(unknown_to("feature-gates"), [5]);
        assert_eq!(unknown_to("compaction-batch-limit"), [5]);
    }

    #[test]
    fn a_flag_is_unknown_once_it_went() {
        assert_eq!(unknown_to("enable-v2"), [6, 7, 8]);
        assert_eq!(unknown_to("experimental-enable-v2v3"), [6, 7, 8]);
        assert_eq!(unknown_to("experimental-compaction-batch-limit"), [7, 8]);
    }

    #[test]
    fn flag_that_came_and_went_is_unknown_before_and_after() {
        assert_eq!(unknown_to("experimental-warning-unary-request-duration"), [5, 7, 8]);
    }

    #[test]
    fn flags_that_all_know_or_none_are_not_judged() {
        assert_eq!(unknown_to("max-txn-ops"), [0; 0]);
        assert_eq!(unknown_to("v2-deprecation"), [0; 0]);
        assert_eq!(unknown_to("no-flag-of-etcd"), [0; 0]);
        assert_eq!(unknown_to("experimental"), [0; 0]);
    }

    #[test]
    fn the_unknown_ones_are_picked_in_their_order() {
        let flags = ["log-format", "max-txn-ops", "experimental-corrupt-check-time", "enable-v2"];
        assert_eq!(unknown_flags(5, flags.into_iter()), ["log-format"]);
        assert_eq!(unknown_flags(6, flags.into_iter()), ["enable-v2"]);
        assert_eq!(unknown_flags(7, flags.into_iter()), ["experimental-corrupt-check-time", "enable-v2"]);
    }
}
