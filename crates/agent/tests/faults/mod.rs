//! Backups that fail: nothing is left that looks complete, and it is said what may be tried again.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use etcd_operator_protocol::report::Reason;
use etcd_operator_protocol::task::Task;

use crate::pod::{Pod, backup, names_in, take};
use crate::proxy::{Fault, Proxy};
use crate::support::{Etcd, free_port, led_by_somebody};

/// What a stream must have carried to be well under way, and less than all.
const HALF: usize = 6 << 20;

/// A member with 12 MB.
async fn a_large_member(dir: &Path) -> Etcd {
    let mut etcd = Etcd::new("3.6.16", "large", dir);
    etcd.start(&[], &[]);
    led_by_somebody(&mut etcd.client()).await;
    let value = "x".repeat(100_000);
    for n in 0..120 {
        assert!(etcd.etcdctl(&["put", &format!("key-{n}"), &value]));
    }
    etcd
}

#[tokio::test]
async fn broken_stream_leaves_nothing_and_the_next_member_is_tried() {
    let dir = tempfile::tempdir().unwrap();
    let etcd = a_large_member(dir.path()).await;
    let bucket = dir.path().join("bucket");
    let object = bucket.join("nightly.db");
    let broken = Proxy::start(&etcd.client_url, HALF, Fault::Cut);
    let failure = take(&backup(&[&broken.url], &object)).failed(1);
    assert_eq!(failure.reason, Reason::BadStream);
    assert!(failure.message.contains(&broken.url), "{}", failure.message);
    assert_eq!(names_in(&bucket), [""; 0]);

    let done = take(&backup(&[&broken.url, &etcd.client_url], &object)).done();
    assert_eq!(done.manifest.unwrap().member, etcd.client_url);
    assert_eq!(names_in(&bucket), ["nightly.db", "nightly.db.manifest.json"]);
}

#[tokio::test]
async fn killed_member_leaves_nothing_in_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let mut etcd = a_large_member(dir.path()).await;
    let bucket = dir.path().join("bucket");
    let slow = Proxy::start(&etcd.client_url, HALF, Fault::Stall);
    let pod = Pod::start(&Task::Backup(Box::new(backup(&[&slow.url], &bucket.join("nightly.db")))));
    slow.wait_until_injected();
    etcd.stop();
    let failure = pod.end().failed(1);
    assert_eq!(failure.reason, Reason::BadStream, "{}", failure.message);
    assert_eq!(names_in(&bucket), [""; 0]);
}

#[tokio::test]
async fn terminated_pod_ends_at_once_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let etcd = a_large_member(dir.path()).await;
    let bucket = dir.path().join("bucket");
    let slow = Proxy::start(&etcd.client_url, HALF, Fault::Stall);
    let pod = Pod::start(&Task::Backup(Box::new(backup(&[&slow.url], &bucket.join("nightly.db")))));
    slow.wait_until_injected();
    let begin = Instant::now();
    pod.terminate();
    let failure = pod.end().failed(1);
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert_eq!(failure.reason, Reason::Stopped);
    assert_eq!(names_in(&bucket), [""; 0]);
}

#[tokio::test]
async fn leftovers_of_a_killed_pod_are_removed_by_the_next_attempt() {
    let dir = tempfile::tempdir().unwrap();
    let etcd = a_large_member(dir.path()).await;
    let bucket = dir.path().join("bucket");
    let object = bucket.join("nightly.db");
    let slow = Proxy::start(&etcd.client_url, HALF, Fault::Stall);
    let pod = Pod::start(&Task::Backup(Box::new(backup(&[&slow.url], &object))));
    slow.wait_until_injected();
    pod.kill();
    assert!(!object.exists());
    assert!(!names_in(&bucket).is_empty(), "it was killed before it began");
    take(&backup(&[&etcd.client_url], &object)).done();
    assert_eq!(names_in(&bucket), ["nightly.db", "nightly.db.manifest.json"]);
}

#[tokio::test]
async fn existing_object_of_another_owner_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let etcd = crate::backups::a_member("3.6.16", dir.path()).await;
    let object = dir.path().join("nightly.db");
    fs::write(&object, "somebody's work").unwrap();
    let failure = take(&backup(&[&etcd.client_url], &object)).failed(2);
    assert_eq!(failure.reason, Reason::ObjectExists);
    assert!(failure.message.contains("nightly.db"), "{}", failure.message);
    assert_eq!(fs::read(&object).unwrap(), b"somebody's work");
}

#[tokio::test]
async fn members_of_different_clusters_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut clusters = ["one", "other"].map(|name| Etcd::new("3.6.16", name, dir.path()));
    for etcd in &mut clusters {
        etcd.start(&[], &[]);
        led_by_somebody(&mut etcd.client()).await;
    }
    let [one, other] = &clusters;
    let bucket = dir.path().join("bucket");
    let failure = take(&backup(&[&one.client_url, &other.client_url], &bucket.join("x.db"))).failed(2);
    assert_eq!(failure.reason, Reason::InvalidRequest);
    assert_eq!(names_in(&bucket), [""; 0]);
}

#[test]
fn unreachable_members_are_all_named() {
    let dir = tempfile::tempdir().unwrap();
    let urls = [free_port(), free_port()].map(|port| format!("http://127.0.0.1:{port}"));
    let failure = take(&backup(&[&urls[0], &urls[1]], &dir.path().join("x.db"))).failed(1);
    assert_eq!(failure.reason, Reason::EtcdUnreachable);
    for url in &urls {
        assert!(failure.message.contains(url), "{}", failure.message);
    }
    assert!(failure.message.contains("refused"), "{}", failure.message);
}

#[test]
fn invalid_task_is_not_retried() {
    for task in ["", "{}", r#"{"do":"dance"}"#] {
        let failure = Pod::start_with(task, None).end().failed(2);
        assert_eq!(failure.reason, Reason::InvalidRequest);
        assert!(failure.message.contains("AGENT_TASK"), "{}", failure.message);
    }
}
