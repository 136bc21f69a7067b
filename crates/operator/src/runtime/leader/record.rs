//! What a process writes into the lease.

use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::LEASE_DURATION;

/// The lease after `me` acquired or renewed it. `now` is for human readers.
pub fn held(previous: &LeaseSpec, me: &str, now: MicroTime) -> LeaseSpec {
    let mine_already = previous.holder_identity.as_deref() == Some(me);
    let transitions = previous.lease_transitions.unwrap_or(0);
    LeaseSpec {
        holder_identity: Some(me.into()),
        lease_duration_seconds: Some(LEASE_DURATION.as_secs() as i32),
        acquire_time: if mine_already { previous.acquire_time.clone() } else { Some(now.clone()) },
        renew_time: Some(now),
        lease_transitions: Some(if mine_already { transitions } else { transitions.saturating_add(1) }),
        ..previous.clone()
    }
}

/// The lease after its holder released it.
pub fn released(previous: &LeaseSpec) -> LeaseSpec {
    LeaseSpec { holder_identity: Some(String::new()), ..previous.clone() }
}

pub fn wall_clock() -> MicroTime {
    MicroTime(jiff::Timestamp::now())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn at(second: i64) -> MicroTime {
        MicroTime(Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn acquiring_counts_a_transition() {
        let first = held(&LeaseSpec::default(), "a", at(1));
        assert_eq!(first.holder_identity.as_deref(), Some("a"));
        assert_eq!(first.lease_transitions, Some(1));
        let second = held(&first, "b", at(20));
        assert_eq!(second.lease_transitions, Some(2));
        assert_eq!(second.acquire_time, Some(at(20)));
    }

    #[test]
    fn renewing_changes_only_the_time_of_renewal() {
        let first = held(&LeaseSpec::default(), "a", at(1));
        let second = held(&first, "a", at(3));
        assert_eq!(second, LeaseSpec { renew_time: Some(at(3)), ..first });
    }

    #[test]
    fn releasing_leaves_no_holder_and_the_next_one_counts() {
        let first = released(&held(&LeaseSpec::default(), "a", at(1)));
        assert_eq!(first.holder_identity.as_deref(), Some(""));
        assert_eq!(held(&first, "b", at(2)).lease_transitions, Some(2));
    }
}
