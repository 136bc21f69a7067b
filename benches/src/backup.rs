//! How fast a backup is: EtcdBackups to a volume and to the lab's S3 store beside `etcdctl snapshot save`, which writes what
//! comes to a file and does nothing else. All end on the same disk, and all programs share this machine: the store, too.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use e2e::Namespace;
use e2e::backup::{Order, backup_manifest};
use e2e::etcd::Etcd;
use e2e::stores::{Bucket, Store};
use serde_json::{Value, json};

use crate::memory::{Memory, Watch};
use crate::{ROUNDS, filling, median};

const TARGET: f64 = 0.8;
/// What the pod of a backup may take, whatever the size of the database.
const MEMORY: u64 = 64 << 20;
/// Where the lab's S3 store keeps its buckets: objects are plain files.
const BUCKETS: &str = "/var/lib/etcd-lab/stores/s3/buckets";
const OBJECT: &str = "c.db";

pub fn run() {
    println!("a database of 2 GB, from etcd to where its copy is taken");
    let namespace = Namespace::create("bench-backup");
    let started = Instant::now();
    let etcd = filling::large_cluster(&namespace);
    println!("  filled in {:.0} s", started.elapsed().as_secs_f64());
    let mut times: [Vec<Duration>; 3] = Default::default();
    for round in 1..=ROUNDS {
        let saved = save(&etcd);
        println!("  round {round}: etcdctl       {saved}");
        let in_volume = back_up_to_volume(&etcd, &format!("volume-{round}"));
        println!("  round {round}: to a volume   {in_volume}");
        let in_s3 = back_up_to_s3(&etcd, &format!("s3-{round}"), "None");
        println!("  round {round}: to S3         {in_s3}");
        let all = [saved, in_volume.copied, in_s3.copied];
        assert!(all.iter().all(|copied| copied.bytes == all[0].bytes), "all have copied the same");
        times.iter_mut().zip(all).for_each(|(times, copied)| times.push(copied.took));
    }
    println!("  to S3 with zstd:       {}", back_up_to_s3(&etcd, "zstd", "Zstd"));
    let [base, in_volume, in_s3] = times.map(|times| median(times).as_secs_f64());
    println!(
        "  median: etcdctl {base:.1} s, to a volume {in_volume:.1} s, to S3 {in_s3:.1} s, ratio of speeds {:.2} and {:.2} \
         (target: at least {TARGET})",
        base / in_volume,
        base / in_s3,
    );
    e2e::kubectl(&format!("delete namespace {}", namespace.name));
}

/// What was copied in how long.
struct Copied {
    bytes: u64,
    took: Duration,
}

impl fmt::Display for Copied {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        let seconds = self.took.as_secs_f64();
        write!(
            to,
            "{:>4.0} MB/s ({:.2} GB in {seconds:.1} s)",
            self.bytes as f64 / seconds / 1e6,
            self.bytes as f64 / 1e9
        )
    }
}

/// As a person would, to a file in /tmp. `etcdctl` ends when the disk has it.
fn save(etcd: &Etcd) -> Copied {
    settle();
    let file = std::env::temp_dir().join(format!("bench-backup-{}.db", std::process::id()));
    let started = Instant::now();
    let mut etcdctl = Command::new(e2e::checkout().join(".lab/bin/etcdctl"));
    let output = etcdctl.args(["--endpoints", &etcd.endpoints(), "snapshot", "save"]).arg(&file).output().unwrap();
    let took = started.elapsed();
    assert!(output.status.success(), "etcdctl snapshot save: {}", String::from_utf8_lossy(&output.stderr));
    let bytes = fs::metadata(&file).unwrap().len();
    fs::remove_file(&file).unwrap();
    Copied { bytes, took }
}

/// What a backup did, and what it took.
struct TakenBackup {
    /// As the agent tells it, without the start of its pod.
    copied: Copied,
    /// From `kubectl apply` to `Completed`.
    waited: Duration,
    memory: Memory,
}

impl fmt::Display for TakenBackup {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        let (waited, peak) = (self.waited.as_secs_f64(), self.memory.peak as f64 / f64::from(1 << 20));
        write!(to, "{}, {waited:.1} s after apply, {peak:.1} of {} MiB of memory", self.copied, self.memory.limit >> 20)
    }
}

fn back_up_to_volume(etcd: &Etcd, name: &str) -> TakenBackup {
    let claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "3Gi"}}},
    });
    etcd.namespace.apply(&claim.to_string()).unwrap();
    let taken = back_up(etcd, name, json!({"persistentVolumeClaim": {"claimName": name}}), "None");
    etcd.namespace.kubectl(&format!("delete pvc {name}"));
    taken
}

fn back_up_to_s3(etcd: &Etcd, name: &str, compression: &str) -> TakenBackup {
    let bucket = Bucket::create(Store::S3, &format!("bench-{name}"), etcd.namespace);
    let taken = back_up(etcd, name, bucket.destination(OBJECT), compression);
    // The lab keeps what it is given until it goes.
    fs::remove_file(Path::new(BUCKETS).join(&bucket.name).join(OBJECT)).unwrap();
    taken
}

fn back_up(etcd: &Etcd, name: &str, destination: Value, compression: &str) -> TakenBackup {
    let mut manifest = backup_manifest(name, &etcd.name, destination);
    manifest["spec"]["compression"] = json!(compression);
    settle();
    let started = Instant::now();
    let order = Order::place(etcd.namespace, &manifest);
    let memory = Watch::begin(&uid_of_pod(&order));
    // Waits without asking again and again, which would take time from what is measured.
    let wait = format!("wait --for=jsonpath={{.status.phase}}=Completed etcdbackup/{name} --timeout=300s");
    let completed = e2e::try_kubectl(&format!("--namespace {} {wait}", etcd.namespace.name));
    let waited = started.elapsed();
    let memory = memory.end();
    let status = order.status();
    assert!(completed.is_ok(), "the backup {name} is not complete: {status}");
    assert_eq!(pods_of(&order).len(), 1, "the first attempt at {name} did it: {status}");
    assert_eq!(memory.limit, MEMORY, "the limit of the memory of {name}");
    let copied = Copied { bytes: status["snapshotSize"].as_u64().unwrap(), took: told_by_agent(&order) };
    TakenBackup { copied, waited, memory }
}

fn selector(backup: &str) -> String {
    format!("-l etcd.improbable.io/backup-name={backup}")
}

/// One for each attempt.
fn pods_of(order: &Order) -> Vec<Value> {
    let pods = order.namespace.get(&format!("pods {}", selector(&order.name)));
    pods["items"].as_array().unwrap().clone()
}

/// Known before anything in the pod runs.
fn uid_of_pod(order: &Order) -> String {
    e2e::eventually(&format!("{} has a pod", order.name), Duration::from_secs(60), || {
        let pods = pods_of(order);
        let uid = pods.first().and_then(|pod| pod["metadata"]["uid"].as_str());
        uid.map(str::to_owned).ok_or_else(|| "it has none".to_owned())
    })
}

/// From when it began to upload until the store said that the object is there.
fn told_by_agent(order: &Order) -> Duration {
    let log = order.namespace.kubectl(&format!("logs {}", selector(&order.name)));
    let seconds = log.split_whitespace().find_map(|word| word.strip_prefix("seconds=")?.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or_else(|| panic!("how long {} took is not in its log:\n{log}", order.name)))
}

/// What was written before is on the disk, and nobody has to wait for it later.
fn settle() {
    assert!(Command::new("sync").status().unwrap().success());
}
