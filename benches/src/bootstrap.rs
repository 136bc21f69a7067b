//! How long it takes from `kubectl apply` until three voters answer: our clusters beside bare StatefulSets with a static
//! bootstrap, which is as fast as Kubernetes itself allows.

use std::time::{Duration, Instant};

use e2e::Namespace;
use e2e::etcd::{Etcd, manifest};

use crate::{ROUNDS, median, stateful_set};

/// One way to make clusters of three members.
struct Way {
    name: &'static str,
    manifest: fn(&str) -> String,
}

const WAYS: [Way; 2] = [
    Way { name: "StatefulSet", manifest: stateful_set::manifest },
    Way { name: "EtcdCluster", manifest: |name| manifest(name, 3).to_string() },
];

pub fn run() {
    compare("one cluster, from apply to three voters", 1, 1.2);
    compare("ten clusters at once, from apply to three voters each", 10, 1.4);
}

fn compare(what: &str, clusters: usize, target: f64) {
    println!("{what}");
    let mut times: [Vec<Duration>; 2] = Default::default();
    for round in 0..ROUNDS {
        for (way, times) in WAYS.iter().zip(&mut times) {
            let took = measure(way, clusters, round);
            println!("  round {}: {:<12} {:.1} s", round + 1, way.name, took.as_secs_f64());
            times.push(took);
        }
    }
    let [base, ours] = times.map(median);
    let ratio = ours.as_secs_f64() / base.as_secs_f64();
    println!(
        "  median: StatefulSet {:.1} s, EtcdCluster {:.1} s, ratio {ratio:.2} (target: at most {target})",
        base.as_secs_f64(),
        ours.as_secs_f64()
    );
}

/// The time until every cluster of a batch has three voters that answer. The batch is removed before the next begins.
fn measure(way: &Way, clusters: usize, round: usize) -> Duration {
    let namespace = Namespace::create(&format!("bench-{}-{clusters}-{round}", way.name.to_lowercase()));
    let names: Vec<String> = (0..clusters).map(|number| format!("c{number}")).collect();
    let manifests: Vec<String> = names.iter().map(|name| (way.manifest)(name)).collect();
    let started = Instant::now();
    namespace.apply(&manifests.join("\n---\n")).unwrap();
    for name in &names {
        let etcd = Etcd { namespace: &namespace, name: name.clone() };
        e2e::eventually(&format!("{name} has three voters that answer"), Duration::from_secs(180), || {
            three_answer(&etcd)
        });
    }
    let took = started.elapsed();
    e2e::kubectl(&format!("delete namespace {}", namespace.name));
    took
}

/// Asks each of the three for a read that needs a quorum.
fn three_answer(etcd: &Etcd) -> Result<(), String> {
    let endpoints = etcd.endpoints();
    if endpoints.split(',').filter(|endpoint| !endpoint.is_empty()).count() < 3 {
        return Err(format!("only these have an address: {endpoints}"));
    }
    etcd.etcdctl(&["endpoint", "health"]).map(drop)
}
