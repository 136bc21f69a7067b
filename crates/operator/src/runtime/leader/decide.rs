//! Decides what a process may do, given the lease that it observed.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::LeaseSpec;

use super::LEASE_DURATION;

/// The content of the lease, and since when this process has observed it unchanged.
///
/// The times in the lease come from another machine's clock, which may be wrong, so they only serve to detect that the
/// lease has changed.
#[derive(Clone, Debug)]
pub struct Sighting {
    pub record: LeaseSpec,
    pub since: Instant,
}

impl Sighting {
    /// The sighting after the lease was read at `now`: a new one, unless the lease is unchanged.
    pub fn after(previous: Option<Sighting>, record: LeaseSpec, now: Instant) -> Sighting {
        previous.filter(|previous| previous.record == record).unwrap_or(Sighting { record, since: now })
    }

    pub fn holder(&self) -> Option<&str> {
        self.record.holder_identity.as_deref().filter(|holder| !holder.is_empty())
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    /// There is no leader: try to acquire the lease.
    Acquire,
    /// This process is the leader: renew the lease.
    Renew,
    /// Another process is the leader: check again later.
    Wait,
}

pub fn what_to_do(seen: &Sighting, me: &str, now: Instant) -> Decision {
    match seen.holder() {
        None => Decision::Acquire,
        Some(holder) if holder == me => Decision::Renew,
        Some(_) if now >= seen.since + duration_of(&seen.record) => Decision::Acquire,
        Some(_) => Decision::Wait,
    }
}

/// How long the holder may go without a renewal. The lease specifies it: the holder may be of a version with another
/// duration.
fn duration_of(record: &LeaseSpec) -> Duration {
    let stated = record.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    stated.filter(|seconds| *seconds > 0).map_or(LEASE_DURATION, Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn held_by(holder: &str, renewed_at: i64) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.into()),
            lease_duration_seconds: Some(12),
            renew_time: Some(MicroTime(Timestamp::from_second(renewed_at).unwrap())),
            ..Default::default()
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_lease_that_nobody_holds_is_free() {
        let now = Instant::now();
        for record in [LeaseSpec::default(), held_by("", 0)] {
            let seen = Sighting::after(None, record, now);
            assert_eq!(what_to_do(&seen, "me", now), Decision::Acquire);
        }
    }

    #[test]
    fn lease_holder_renews_its_own_lease() {
        let now = Instant::now();
        let seen = Sighting::after(None, held_by("me", 0), now);
        assert_eq!(what_to_do(&seen, "me", now), Decision::Renew);
    }

    #[test]
    fn the_holder_renews_even_if_it_was_silent_for_long() {
        let now = Instant::now();
        let seen = Sighting::after(None, held_by("me", 0), now);
        assert_eq!(what_to_do(&seen, "me", now + seconds(3600)), Decision::Renew);
    }

    #[test]
    fn the_lease_of_an_earlier_process_of_this_pod_is_another_ones() {
        let now = Instant::now();
        let seen = Sighting::after(None, held_by("pod_1111", 0), now);
        assert_eq!(what_to_do(&seen, "pod_2222", now), Decision::Wait);
    }

    #[test]
    fn a_lease_is_left_alone_for_its_whole_duration_however_old_it_says_it_is() {
        let start = Instant::now();
        let seen = Sighting::after(None, held_by("other", 0), start);
        let expires = start + seconds(12);
        assert_eq!(what_to_do(&seen, "me", start), Decision::Wait);
        assert_eq!(what_to_do(&seen, "me", expires - Duration::from_nanos(1)), Decision::Wait);
        assert_eq!(what_to_do(&seen, "me", expires), Decision::Acquire);
    }

    #[test]
    fn a_renewed_lease_starts_anew() {
        let start = Instant::now();
        let first = Sighting::after(None, held_by("other", 0), start);
        let second = Sighting::after(Some(first), held_by("other", 2), start + seconds(11));
        assert_eq!(what_to_do(&second, "me", start + seconds(22)), Decision::Wait);
        assert_eq!(what_to_do(&second, "me", start + seconds(23)), Decision::Acquire);
    }

    #[test]
    fn a_lease_seen_again_unchanged_does_not_start_anew() {
        let start = Instant::now();
        let first = Sighting::after(None, held_by("other", 0), start);
        let second = Sighting::after(Some(first), held_by("other", 0), start + seconds(11));
        assert_eq!(what_to_do(&second, "me", start + seconds(12)), Decision::Acquire);
    }

    #[test]
    fn the_holder_says_how_long_its_lease_lasts() {
        let start = Instant::now();
        let mut record = held_by("other", 0);
        for (stated, lasts) in [(Some(30), 30), (None, 12), (Some(0), 12), (Some(-5), 12)] {
            record.lease_duration_seconds = stated;
            let seen = Sighting::after(None, record.clone(), start);
            assert_eq!(what_to_do(&seen, "me", start + seconds(lasts - 1)), Decision::Wait, "{stated:?}");
            assert_eq!(what_to_do(&seen, "me", start + seconds(lasts)), Decision::Acquire, "{stated:?}");
        }
    }
}
