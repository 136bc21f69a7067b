//! Whatever happens between any two steps, no rule breaks; and when it stops happening, the cluster becomes what was
//! asked for. The rules are checked in `world`.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::world::World;
use crate::observed::Data;
use crate::plan::{Plan, Step};

#[derive(Clone, Debug)]
enum Event {
    /// The operator looks, plans, and gets this far: then it crashes, or the reply to its last step is lost.
    Operate(usize),
    /// Pods stop and start, members elect.
    Settle,
    Scale(u32),
    DeletePod(u32),
    NodeDown(u32),
    NodeUp(u32),
    Elect(u32),
    Recreate,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => Just(Event::Operate(usize::MAX)),
        6 => (0..8usize).prop_map(Event::Operate),
        10 => Just(Event::Settle),
        2 => (1..=5u32).prop_map(Event::Scale),
        2 => (0..5u32).prop_map(Event::DeletePod),
        2 => (0..5u32).prop_map(Event::NodeDown),
        3 => (0..5u32).prop_map(Event::NodeUp),
        1 => (0..5u32).prop_map(Event::Elect),
        1 => Just(Event::Recreate),
    ]
}

fn happen(world: &mut World, event: &Event) {
    match event {
        Event::Operate(steps) => operate(world, *steps),
        Event::Settle => world.settle(),
        Event::Scale(replicas) => world.replicas = *replicas,
        Event::DeletePod(ordinal) => drop(world.pods.remove(ordinal)),
        Event::NodeDown(ordinal) => drop(world.down.insert(*ordinal)),
        Event::NodeUp(ordinal) => drop(world.down.remove(ordinal)),
        Event::Elect(ordinal) => world.elect(*ordinal),
        Event::Recreate => world.recreate(),
    }
}

fn operate(world: &mut World, steps: usize) {
    let plan = world.plan();
    let changes = plan.steps.iter().filter(|step| {
        matches!(
            step,
            Step::AddLearner { .. } | Step::Promote { .. } | Step::MoveLeader { .. } | Step::RemoveMember { .. }
        )
    });
    assert!(changes.count() <= 1, "more than one membership change: {plan:?}");
    for step in plan.steps.iter().take(steps) {
        if !world.take(step) {
            break;
        }
    }
}

/// Lets the operator work undisturbed until nothing is left to do.
fn calm_down(world: &mut World) {
    world.down.clear();
    for _ in 0..60 {
        world.settle();
        if world.plan() == Plan::default() {
            return;
        }
        operate(world, usize::MAX);
    }
    panic!("it never comes to rest: {:?}", world.plan());
}

fn check_as_asked_for(world: &World) {
    let wanted: BTreeSet<u32> = (0..world.replicas).collect();
    assert_eq!(world.voters(), wanted, "voters");
    assert_eq!(world.learners(), 0);
    assert_eq!(world.peers.keys().copied().collect::<BTreeSet<_>>(), wanted, "peers");
    assert_eq!(world.pods.keys().copied().collect::<BTreeSet<_>>(), wanted, "pods");
    assert_eq!(world.claims.keys().copied().collect::<BTreeSet<_>>(), wanted, "claims");
    assert!(world.pods.values().all(|pod| pod.told().data == Data::Kept), "everybody must keep its data now");
}

#[test]
fn left_alone_every_size_becomes_every_other() {
    for (from, to) in (1..=5).flat_map(|from| (1..=5).map(move |to| (from, to))) {
        let mut world = World::new(from);
        calm_down(&mut world);
        check_as_asked_for(&world);
        world.replicas = to;
        calm_down(&mut world);
        check_as_asked_for(&world);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_rule_breaks_and_the_cluster_becomes_what_was_asked_for(
        replicas in 1..=5u32,
        events in prop::collection::vec(event(), 0..80),
    ) {
        let mut world = World::new(replicas);
        for event in &events {
            happen(&mut world, event);
        }
        calm_down(&mut world);
        check_as_asked_for(&world);
    }
}
