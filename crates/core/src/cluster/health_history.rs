//! What one process remembers from one reconcile of a cluster to the next. A status may be missing or stale if it could
//! not be written; only what this process observed counts against a member.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::cluster::observed::{MemberId, Observed};

#[derive(Clone, Debug, Default)]
pub struct HealthHistory {
    /// Since when each member was unhealthy in every observation, while a quorum answered and the cluster was not
    /// paused; by ID.
    unhealthy: BTreeMap<MemberId, Timestamp>,
}

impl HealthHistory {
    /// Remembers an observation, and sets since when members have been observed unhealthy. Time without observations,
    /// or in which no member could have recovered, does not count against them.
    pub fn keep(&mut self, observed: &mut Observed) {
        let looked_after = observed.etcd.membership.as_ref().filter(|_| observed.wanted.paused.is_none());
        let unhealthy = looked_after.iter().flat_map(|it| &it.members).filter(|member| !observed.is_healthy(member));
        let since = |id: MemberId| (id, self.unhealthy.get(&id).copied().unwrap_or(observed.now));
        self.unhealthy = unhealthy.map(|member| since(member.id)).collect();
        observed.remembered.unhealthy_since = self.unhealthy.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::support::{NOW, cluster_of, identity_of, seconds};

    fn look(history: &mut HealthHistory, now: Timestamp, change: fn(&mut Observed)) -> Option<Timestamp> {
        let mut observed = cluster_of(3);
        observed.now = now;
        observed.stop_answering(1);
        change(&mut observed);
        history.keep(&mut observed);
        observed.remembered.unhealthy_since.get(&identity_of(1).member_id).copied()
    }

    #[test]
    fn health_history_counts_only_observed_time() {
        let mut history = HealthHistory::default();
        assert_eq!(look(&mut history, NOW, |_| {}), Some(NOW));
        assert_eq!(look(&mut history, NOW + seconds(10), |_| {}), Some(NOW));
        assert_eq!(look(&mut history, NOW + seconds(20), |observed| observed.answer(1)), None);
        assert_eq!(look(&mut history, NOW + seconds(30), |_| {}), Some(NOW + seconds(30)), "it was well in between");
    }

    #[test]
    fn a_look_without_a_quorum_or_with_a_pause_begins_anew() {
        let mut history = HealthHistory::default();
        for (start, change) in [
            (NOW, Observed::lose_quorum as fn(&mut Observed)),
            (NOW + seconds(100), |observed| observed.wanted.paused = Some("so".into())),
        ] {
            assert_eq!(look(&mut history, start, |_| {}), Some(start));
            look(&mut history, start + seconds(20), change);
            assert_eq!(look(&mut history, start + seconds(30), |_| {}), Some(start + seconds(30)));
            look(&mut history, start + seconds(40), |observed| observed.answer(1));
        }
    }
}
