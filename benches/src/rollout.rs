//! What a client notices of a restart of all members: the longest time for which none of its writes, or none of its reads,
//! succeeds. Ours beside deleting one pod after the other, and both beside a cluster that nothing happens to, which tells
//! how long the machine itself holds a client up.

use std::time::Duration;

use e2e::etcd::{Etcd, manifest};
use e2e::health::HEALING;
use e2e::{Namespace, eventually, is};

use crate::client::{self, Client, Report};
use crate::{ROUNDS, median};

/// How long the client runs before and after.
const AROUND: Duration = Duration::from_secs(5);

/// Something that happens to a cluster while the client looks.
struct Way {
    name: &'static str,
    run: fn(&Etcd, usize),
}

const WAYS: [Way; 3] = [
    Way { name: "at rest", run: |_, _| std::thread::sleep(Duration::from_secs(20)) },
    Way { name: "delete pods", run: |etcd, _| delete_one_after_the_other(etcd) },
    Way { name: "EtcdCluster", run: restart },
];

pub fn run() {
    println!("the longest stall of a client while all three members are restarted");
    client::load();
    let namespace = Namespace::create("bench-roll");
    let etcd = Etcd::create(&namespace, &manifest("c", 3));
    let mut stalls: [Vec<Duration>; 3] = Default::default();
    let mut kept = 0;
    for round in 0..ROUNDS {
        for (way, stalls) in WAYS.iter().zip(&mut stalls) {
            let report = measure(way, &etcd, round);
            println!(
                "  round {}: {:<12} writes {:>5.0} ms, reads {:>5.0} ms, {} errors in {} requests",
                round + 1,
                way.name,
                report.writes.longest_ms,
                report.reads.longest_ms,
                report.writes.errors + report.reads.errors,
                report.writes.acknowledged + report.reads.acknowledged,
            );
            kept += report.writes.acknowledged;
            stalls.push(report.longest());
        }
    }
    for (way, stalls) in WAYS.iter().zip(&stalls) {
        let (longest, median) = (stalls.iter().max().unwrap().as_millis(), median(stalls.clone()).as_millis());
        println!("  {:<12} longest {longest} ms, median {median} ms", way.name);
    }
    let [_, base, ours] = stalls.map(median);
    let ratio = ours.as_secs_f64() / base.as_secs_f64();
    println!("  ratio of the medians {ratio:.2} (target: at most 300 ms); all {kept} acknowledged writes are there");
    e2e::kubectl(&format!("delete namespace {}", namespace.name));
}

fn measure(way: &Way, etcd: &Etcd, round: usize) -> Report {
    let client = Client::start(etcd, &format!("client-{}-{round}", way.name.to_lowercase().replace(' ', "-")));
    std::thread::sleep(AROUND);
    (way.run)(etcd, round);
    std::thread::sleep(AROUND);
    let report = client.finish();
    // The next one begins with a cluster that is well.
    etcd.wait_for(3);
    report
}

/// As a person would with `kubectl delete pod` and `kubectl wait`. The operator recreates the pods.
fn delete_one_after_the_other(etcd: &Etcd) {
    for pod in etcd.names(3) {
        etcd.namespace.kubectl(&format!("delete pod {pod}"));
        eventually(&format!("{pod} is ready again"), HEALING, || {
            let wait = format!("wait --for=condition=Ready pod/{pod} --timeout=60s");
            e2e::try_kubectl(&format!("--namespace {} {wait}", etcd.namespace.name)).map(drop)
        });
    }
}

/// As the operator does it when it is asked to.
fn restart(etcd: &Etcd, round: usize) {
    let before = etcd.uids_of("etcdpeers");
    etcd.ask_for_a_restart(&format!("bench-{round}"));
    eventually("all members were restarted", HEALING, || {
        let now = etcd.uids_of("etcdpeers");
        let same: Vec<&String> =
            before.iter().filter(|(name, uid)| now.get(*name) == Some(uid)).map(|it| it.0).collect();
        is(same, Vec::new())?;
        etcd.says("Progressing", "False", "UpToDate", &[])?;
        is(etcd.status()["updatedReplicas"].as_u64(), Some(3))
    });
}
