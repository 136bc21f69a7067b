//! What one process remembers of the comparisons of a cluster's data, and when the next one is due. Comparing reads the
//! whole database of every member, so it is done rarely, and not again at once if it was inconclusive.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher};

use jiff::{SignedDuration, Timestamp};

use crate::cluster::corruption::{Hash, confirmed_by, differing_members, known_after};
use crate::cluster::observed::{AlarmKind, MemberId, Observed};
use crate::names::ClusterNames;

/// How soon data is compared if etcd itself raises a corruption alarm, or again after an inconclusive comparison.
const SOON: SignedDuration = SignedDuration::from_secs(30);
/// Larger databases are not compared, in bytes, unless etcd raises an alarm.
const LARGEST: i64 = 512 << 20;

#[derive(Clone, Debug, Default)]
pub struct CorruptionHistory {
    last: Option<Comparison>,
}

/// When a cluster was last compared, and which members are known to differ since then.
#[derive(Clone, Debug)]
struct Comparison {
    at: Timestamp,
    differing: BTreeSet<MemberId>,
    /// Whether it showed which members differ.
    is_conclusive: bool,
}

/// For what the members' data is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// It is done every so often. `None`: the user does not want it.
    Every(Option<SignedDuration>),
    /// A member is about to be replaced because of it, so the last comparison is not enough.
    BeforeReplacement,
}

impl CorruptionHistory {
    /// Whether the data of these voters, all of which are healthy, is compared now.
    pub fn is_due(&self, occasion: Occasion, observed: &Observed, voters: &[MemberId]) -> bool {
        // If the clock was set back, nobody knows how long ago it was.
        let elapsed = self.last.as_ref().map(|last| observed.elapsed_since(last.at).abs());
        match occasion {
            Occasion::BeforeReplacement => {
                let is_inconclusive = self.last.as_ref().is_some_and(|last| !last.is_conclusive);
                !(is_inconclusive && elapsed.is_some_and(|elapsed| elapsed < SOON))
            }
            Occasion::Every(every) => {
                let Some(every) = interval(every, observed) else { return false };
                let is_small = |id: &MemberId| {
                    let mut answers = observed.etcd.answers.values().flatten();
                    answers.any(|answer| answer.identity.member_id == *id && answer.db_size <= LARGEST)
                };
                let is_cheap = has_alarm(observed) || voters.iter().all(is_small);
                elapsed.is_some_and(|elapsed| elapsed >= every) && voters.len() > 1 && is_cheap
            }
        }
    }

    /// Remembers a comparison if one was made now, with the hash of each voter or none if they could not be read, and
    /// sets which members differ.
    pub fn keep(&mut self, occasion: Occasion, compared: Option<&BTreeMap<MemberId, Hash>>, observed: &mut Observed) {
        if let Some(hashes) = compared {
            self.learn(hashes, observed);
        }
        observed.remembered.differing = match (occasion, compared) {
            (Occasion::BeforeReplacement, Some(hashes)) => confirmed_by(hashes, &self.known()),
            // Nothing is destroyed because of an old finding.
            (Occasion::BeforeReplacement, None) => BTreeSet::new(),
            (Occasion::Every(every), _) => match interval(every, observed) {
                Some(every) => {
                    self.last.get_or_insert_with(|| sometime_within(every, &observed.names, observed.now));
                    self.known()
                }
                None => BTreeSet::new(),
            },
        };
    }

    fn learn(&mut self, hashes: &BTreeMap<MemberId, Hash>, observed: &Observed) {
        let may_be_member = |id: MemberId| observed.etcd.membership.as_ref().is_none_or(|it| it.member(id).is_some());
        let differing = known_after(hashes, &self.known(), may_be_member);
        let is_conclusive = differing_members(hashes).is_some() || !confirmed_by(hashes, &differing).is_empty();
        self.last = Some(Comparison { at: observed.now, differing, is_conclusive });
    }

    fn known(&self) -> BTreeSet<MemberId> {
        self.last.as_ref().map(|last| last.differing.clone()).unwrap_or_default()
    }
}

/// How often data is compared. `None` if it is not.
fn interval(every: Option<SignedDuration>, observed: &Observed) -> Option<SignedDuration> {
    if has_alarm(observed) { Some(every.map_or(SOON, |every| every.min(SOON))) } else { every }
}

fn has_alarm(observed: &Observed) -> bool {
    observed.etcd.alarms.iter().any(|alarm| alarm.kind == AlarmKind::Corrupt)
}

/// A cluster that was never compared is treated as if it was at some time within the interval, so that a new process
/// does not compare all clusters at once.
fn sometime_within(every: SignedDuration, names: &ClusterNames, now: Timestamp) -> Comparison {
    let mut hasher = DefaultHasher::new();
    (&names.namespace, &names.cluster).hash(&mut hasher);
    let ago = every.mul_f64((hasher.finish() % 1000) as f64 / 1000.0);
    Comparison { at: now - ago, differing: BTreeSet::new(), is_conclusive: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::observed::Alarm;
    use crate::cluster::tests::support::{NOW, cluster_of, identity_of, seconds};
    use crate::ordinal::Ordinal;

    const HOURLY: Occasion = Occasion::Every(Some(SignedDuration::from_hours(1)));

    fn ids() -> Vec<MemberId> {
        [0, 1, 2].map(|ordinal| identity_of(ordinal).member_id).to_vec()
    }

    fn hashes(said: [u32; 3]) -> BTreeMap<MemberId, Hash> {
        ids().into_iter().zip(said.map(|hash| Hash { hash, compact_revision: 5 })).collect()
    }

    /// A history in which member 1 was found to differ an hour ago.
    fn with_a_finding() -> CorruptionHistory {
        let mut history = CorruptionHistory::default();
        history.keep(HOURLY, Some(&hashes([1, 2, 1])), &mut cluster_of(3).with(|it| it.now -= seconds(3600)));
        history
    }

    fn known(history: &mut CorruptionHistory, occasion: Occasion, compared: Option<[u32; 3]>) -> Vec<MemberId> {
        let mut observed = cluster_of(3);
        history.keep(occasion, compared.map(hashes).as_ref(), &mut observed);
        observed.remembered.differing.into_iter().collect()
    }

    #[test]
    fn new_process_compares_each_cluster_for_the_first_time_within_the_interval() {
        let (mut history, mut observed) = (CorruptionHistory::default(), cluster_of(3));
        assert!(!history.is_due(HOURLY, &observed, &ids()), "not all clusters at once");
        history.keep(HOURLY, None, &mut observed);
        observed.now = NOW + seconds(3600);
        assert!(history.is_due(HOURLY, &observed, &ids()));
    }

    #[test]
    fn comparison_is_due_only_if_it_is_wanted_and_all_voters_can_be_compared_cheaply() {
        let (history, mut observed) = (with_a_finding(), cluster_of(3));
        assert!(history.is_due(HOURLY, &observed, &ids()));
        assert!(!history.is_due(Occasion::Every(None), &observed, &ids()));
        assert!(!history.is_due(HOURLY, &observed, &[]), "a member is unhealthy, and recovery comes first");
        observed.etcd.answers.get_mut(&Ordinal(2)).unwrap().as_mut().unwrap().db_size = LARGEST + 1;
        assert!(!history.is_due(HOURLY, &observed, &ids()));
    }

    #[test]
    fn alarm_of_etcd_makes_a_comparison_due_soon_also_if_it_is_not_wanted_or_large() {
        let mut history = CorruptionHistory::default();
        let mut observed = cluster_of(3);
        observed.etcd.alarms.insert(Alarm { member_id: identity_of(1).member_id, kind: AlarmKind::Corrupt });
        observed.etcd.answers.get_mut(&Ordinal(2)).unwrap().as_mut().unwrap().db_size = LARGEST + 1;
        history.keep(Occasion::Every(None), None, &mut observed);
        observed.now += SOON;
        assert!(history.is_due(Occasion::Every(None), &observed, &ids()));
    }

    /// No member can be queried while one is unreachable, and that does not show whose data is wrong.
    #[test]
    fn comparison_of_nobody_does_not_erase_a_finding() {
        let mut history = with_a_finding();
        let mut observed = cluster_of(3).with(|it| it.lose_quorum());
        history.keep(Occasion::BeforeReplacement, Some(&BTreeMap::new()), &mut observed);
        assert!(observed.remembered.differing.is_empty(), "nothing is destroyed for an old finding");
        assert_eq!(known(&mut history, HOURLY, None), [ids()[1]], "but it is known still");
    }

    #[test]
    fn inconclusive_comparison_before_a_replacement_is_not_repeated_at_once() {
        let mut history = with_a_finding();
        let observed = cluster_of(3);
        assert!(history.is_due(Occasion::BeforeReplacement, &observed, &ids()));
        assert!(known(&mut history, Occasion::BeforeReplacement, Some([1, 2, 3])).is_empty());
        assert!(!history.is_due(Occasion::BeforeReplacement, &observed, &ids()));
        assert!(history.is_due(Occasion::BeforeReplacement, &observed.with(|it| it.now += SOON), &ids()));
    }

    #[test]
    fn finding_that_is_confirmed_may_be_acted_on() {
        let mut history = with_a_finding();
        assert_eq!(known(&mut history, Occasion::BeforeReplacement, Some([1, 2, 1])), [ids()[1]]);
        assert!(known(&mut history, Occasion::BeforeReplacement, Some([1, 1, 1])).is_empty(), "it is well");
    }
}
