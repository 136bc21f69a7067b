//! How long it takes from `kubectl apply` until three voters answer: our clusters beside plain StatefulSets with a static
//! bootstrap, which is as fast as Kubernetes itself allows.

use std::time::Duration;

use e2e::Namespace;
use e2e::etcd::{Etcd, manifest};
use jiff::Timestamp;

use crate::sightings::{POD, Watch};
use crate::{answers, stateful_set, timeline};

/// How long all members may take.
const LIMIT: Duration = Duration::from_secs(180);

/// One way to make clusters of three members.
struct Way {
    name: &'static str,
    manifest: fn(&str) -> String,
}

const WAYS: [Way; 2] = [
    Way { name: "StatefulSet", manifest: stateful_set::manifest },
    Way { name: "EtcdCluster", manifest: |name| manifest(name, 3).to_string() },
];

/// What is compared, how often, and how much longer an EtcdCluster may take.
struct Comparison {
    what: &'static str,
    clusters: usize,
    rounds: usize,
    target: f64,
}

/// How long one batch took. Of a batch of one, also where the time went.
struct Measured {
    took: Duration,
    timeline: Vec<String>,
}

pub fn run() {
    let one = Comparison { what: "one cluster, from apply to three voters", clusters: 1, rounds: 9, target: 1.1 };
    one.run();
    let what = "ten clusters at once, from apply to three voters each";
    Comparison { what, clusters: 10, rounds: 3, target: 1.4 }.run();
}

impl Comparison {
    fn run(&self) {
        println!("{}", self.what);
        let mut measured: [Vec<Measured>; 2] = Default::default();
        for round in 0..self.rounds {
            let mut line = format!("  round {}:", round + 1);
            for (way, measured) in WAYS.iter().zip(&mut measured) {
                let this = self.measure(way, round);
                line.push_str(&format!("  {} {:.2} s", way.name, this.took.as_secs_f64()));
                measured.push(this);
            }
            println!("{line}");
        }
        let [base, ours] = measured.map(median);
        let (base_took, ours_took) = (base.took.as_secs_f64(), ours.took.as_secs_f64());
        println!(
            "  median: StatefulSet {base_took:.2} s, EtcdCluster {ours_took:.2} s, ratio {:.2} (target: at most {})",
            ours_took / base_took,
            self.target
        );
        for (way, measured) in WAYS.iter().zip([base, ours]).filter(|(_, measured)| !measured.timeline.is_empty()) {
            println!("  the {} of the median, by member:", way.name);
            measured.timeline.iter().for_each(|line| println!("    {line}"));
        }
    }

    /// The time until every cluster of a batch has three voters that answer. The batch is removed before the next begins.
    fn measure(&self, way: &Way, round: usize) -> Measured {
        let name = format!("bench-{}-{}-{round}", way.name.to_lowercase(), self.clusters);
        let namespace = Namespace::create(&name);
        let names: Vec<String> = (0..self.clusters).map(|number| format!("c{number}")).collect();
        let manifests: Vec<String> = names.iter().map(|name| (way.manifest)(name)).collect();
        let is_one = self.clusters == 1;
        let watch = Watch::start(&namespace.name, if is_one { &timeline::WATCHED } else { &[POD] });
        let began = Timestamp::now();
        namespace.apply(&manifests.join("\n---\n")).unwrap();
        let answers = answers::wait_for(3 * self.clusters, &watch, LIMIT);
        let last = answers.values().max().copied().unwrap_or(began);
        let timeline = if is_one {
            wait_for_available(way, &namespace, &names[0]);
            timeline::lines(began, &watch.seen(), &answers, &namespace)
        } else {
            Vec::new()
        };
        drop(watch);
        remove(&namespace);
        Measured { took: last.duration_since(began).unsigned_abs(), timeline }
    }
}

/// Removes everything, so that nothing of it is still going on when the next batch is measured. Members that stop all at
/// once have nobody to hand over to, and would take long.
fn remove(namespace: &Namespace) {
    namespace.kubectl("delete statefulset,etcdcluster --all");
    namespace.kubectl("delete pods --all --grace-period=1");
    e2e::kubectl(&format!("delete namespace {}", namespace.name));
}

/// The end of the timeline of an EtcdCluster.
fn wait_for_available(way: &Way, namespace: &Namespace, name: &str) {
    if way.name == "EtcdCluster" {
        Etcd { namespace, name: name.to_owned() }.wait_for(3);
    }
}

fn median(mut measured: Vec<Measured>) -> Measured {
    measured.sort_by_key(|it| it.took);
    let middle = measured.len() / 2;
    measured.swap_remove(middle)
}
