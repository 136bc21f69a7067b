//! A schedule whose backups are deleted with its cluster, while users delete the cluster, restore it under its name and
//! change their minds, and the operator is down or crashes between two steps. Backups are deleted only if that was
//! desired when the cluster was deleted, and never while a cluster of its name exists or is to be restored.

use etcd_operator_api::EtcdBackupSchedule;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::support::{at, nightly, with_status};
use crate::schedule::plan::{Deletion, Observed, ObservedCluster, Plan, plan};

#[derive(Clone, Debug)]
enum Event {
    Ask(bool),
    DeleteCluster,
    CreateCluster,
    BeginRestore,
    /// The restore creates a cluster, or fails and is deleted.
    EndRestore(bool),
    /// The pod of the deletion does its work.
    Delete,
    Pass(i64),
    /// The operator reconciles, and stops after so many steps.
    Observed(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        2 => any::<bool>().prop_map(Event::Ask),
        2 => Just(Event::DeleteCluster),
        1 => Just(Event::CreateCluster),
        1 => Just(Event::BeginRestore),
        1 => any::<bool>().prop_map(Event::EndRestore),
        1 => Just(Event::Delete),
        3 => (1_i64..60).prop_map(Event::Pass),
        6 => prop_oneof![2 => Just(usize::MAX), 1 => 0_usize..3].prop_map(Event::Observed),
    ];
    prop::collection::vec(event, 1..60)
}

/// The whole state, and what actually happened.
struct World {
    now: Timestamp,
    schedule: EtcdBackupSchedule,
    /// The number of the current cluster.
    cluster: Option<usize>,
    clusters: usize,
    restores: bool,
    /// The cluster whose backups a Job deletes or has deleted, and whether it has.
    job: Option<(String, bool)>,
    /// The last cluster that the operator has observed and recorded, and whether its backups were to be deleted with it
    /// when it was deleted.
    seen: Option<usize>,
    was_asked_for: bool,
}

impl World {
    fn new() -> Self {
        let mut schedule = nightly();
        schedule.spec.delete_with_cluster = true;
        World {
            now: at("15T12:00"),
            schedule,
            cluster: Some(0),
            clusters: 1,
            restores: false,
            job: None,
            seen: None,
            was_asked_for: false,
        }
    }

    fn remembered(&self) -> Option<String> {
        self.schedule.status.as_ref().and_then(|status| status.cluster_uid.clone())
    }

    fn plan(&self) -> Plan {
        let cluster = match self.cluster {
            Some(number) => ObservedCluster::Present { uid: number.to_string() },
            None if self.restores => ObservedCluster::ToBeRestored,
            None => ObservedCluster::Gone,
        };
        // The Job is found by the name of the recorded cluster.
        let deletion = match self.job.as_ref().filter(|(of, _)| Some(of) == self.remembered().as_ref()) {
            None => Deletion::NotBegun,
            Some((_, false)) => Deletion::Runs { trouble: None },
            Some((_, true)) => Deletion::Done { deleted: 1 },
        };
        plan(&Observed { schedule: &self.schedule, taken: &[], cluster, deletion, now: self.now })
    }

    /// The same steps in the same order as the operator, which may stop after each. A new status triggers another
    /// reconcile.
    fn observed(&mut self, mut steps: usize) {
        for _ in 0..5 {
            let planned = self.plan();
            if planned.stop_deleting {
                let Some(left) = steps.checked_sub(1) else { return };
                steps = left;
                self.job = None;
            }
            if let Some(of) = &planned.delete_backups_of {
                let Some(left) = steps.checked_sub(1) else { return };
                steps = left;
                self.check_that_they_may_go(of);
                self.job = Some((of.clone(), false));
            }
            let planned = self.plan();
            let Some(left) = steps.checked_sub(1) else { return };
            steps = left;
            if self.schedule.status.as_ref() == Some(&planned.status) {
                let runs = self.job.as_ref().is_some_and(|(_, done)| !done);
                let is_wrong = self.cluster.is_some() || self.restores || !self.schedule.spec.delete_with_cluster;
                assert!(!(runs && is_wrong), "backups are still being deleted");
                return;
            }
            if self.cluster.is_some() {
                self.seen = self.cluster;
            }
            self.schedule = with_status(&self.schedule, planned.status);
        }
        panic!("it never comes to rest: {:?}", self.plan());
    }

    fn check_that_they_may_go(&self, of: &str) {
        assert_eq!(self.cluster, None, "a cluster lives");
        assert!(!self.restores, "a cluster is being restored");
        assert!(self.schedule.spec.delete_with_cluster, "nobody asks for it");
        assert_eq!(self.seen.map(|number| number.to_string()).as_deref(), Some(of), "it is another cluster");
        assert!(self.was_asked_for, "it was not asked for when the cluster went");
    }

    fn live_through(&mut self, event: &Event) {
        match event {
            Event::Ask(ask) => {
                if self.schedule.spec.delete_with_cluster != *ask {
                    self.schedule.spec.delete_with_cluster = *ask;
                    self.schedule.metadata.generation = self.schedule.metadata.generation.map(|it| it + 1);
                }
            }
            Event::DeleteCluster => {
                if self.cluster.is_some() && self.cluster == self.seen {
                    self.was_asked_for = self.schedule.spec.delete_with_cluster;
                }
                self.cluster = None;
            }
            Event::CreateCluster if self.cluster.is_none() => self.found(),
            Event::BeginRestore => self.restores |= self.cluster.is_none(),
            Event::EndRestore(well) if self.restores => {
                self.restores = false;
                if *well && self.cluster.is_none() {
                    self.found();
                }
            }
            Event::Delete => self.job = self.job.take().map(|(of, _)| (of, true)),
            Event::Pass(seconds) => self.now += SignedDuration::from_secs(*seconds),
            Event::Observed(steps) => self.observed(*steps),
            Event::CreateCluster | Event::EndRestore(_) => {}
        }
    }

    fn found(&mut self) {
        self.cluster = Some(self.clusters);
        self.clusters += 1;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn backups_are_deleted_only_for_a_cluster_that_is_gone_for_good(events in events()) {
        let mut world = World::new();
        world.observed(usize::MAX);
        for event in &events {
            world.live_through(event);
        }
    }
}
