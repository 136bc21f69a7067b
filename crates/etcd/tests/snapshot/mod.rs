//! Snapshots, and what can be asked while one is on its way.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use etcd_operator_etcd::{Cause, Error, MemberClient, SnapshotStream};

use crate::support::{Etcd, assert_cause, binaries, eventually, free_port, led_by_somebody};

#[tokio::test]
async fn etcdutl_reads_a_snapshot_3_5() {
    etcdutl_reads_a_snapshot("3.5.35").await;
}

#[tokio::test]
async fn etcdutl_reads_a_snapshot_3_6() {
    etcdutl_reads_a_snapshot("3.6.16").await;
}

#[tokio::test]
async fn etcdutl_reads_a_snapshot_3_7() {
    etcdutl_reads_a_snapshot("3.7.3").await;
}

async fn etcdutl_reads_a_snapshot(version: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mut etcd = Etcd::new(version, "a", dir.path());
    etcd.start(&[], &[]);
    let mut ask = etcd.client();
    led_by_somebody(&mut ask).await;
    for n in 0..5 {
        assert!(etcd.etcdctl(&["put", &format!("key-{n}"), "value"]));
    }
    assert!(etcd.etcdctl(&["del", "key-0"]));
    let newest = ask.status().await.unwrap().revision;
    assert_eq!(newest, 7);
    assert_eq!(ask.count_keys(newest).await.unwrap(), 4);
    assert_eq!(ask.count_keys(0).await.unwrap(), 4);
    assert_eq!(ask.count_keys(newest - 1).await.unwrap(), 5);
    assert_eq!(ask.count_keys(1).await.unwrap(), 0);
    assert_cause(ask.count_keys(newest + 1).await, |c| *c == Cause::FutureRevision);

    let snapshot = whole_snapshot(&mut ask).await.unwrap();
    assert_eq!(snapshot.len() % 512, 32, "a database and a hash");
    let file = dir.path().join("snapshot.db");
    std::fs::write(&file, &snapshot).unwrap();
    let said = status_of(version, &file);
    assert!(said.contains(r#""revision":7,"#), "{said}");
    let restored = Command::new(binaries(version).join("etcdutl"))
        .args(["snapshot", "restore", "--data-dir"])
        .arg(dir.path().join("restored"))
        .arg(&file)
        .output()
        .unwrap();
    assert!(restored.status.success(), "{restored:?}");

    assert!(etcd.etcdctl(&["compaction", "5"]));
    assert_cause(ask.count_keys(4).await, |c| *c == Cause::Compacted);
    assert_eq!(ask.count_keys(5).await.unwrap(), 4);
}

fn status_of(version: &str, file: &Path) -> String {
    let mut command = Command::new(binaries(version).join("etcdutl"));
    let output = command.args(["snapshot", "status", "--write-out", "json"]).arg(file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

async fn whole_snapshot(ask: &mut MemberClient) -> Result<Vec<u8>, Error> {
    let mut snapshot = Vec::new();
    let mut stream = ask.snapshot().await?;
    while let Some(piece) = stream.next().await? {
        snapshot.extend_from_slice(&piece);
    }
    Ok(snapshot)
}

#[tokio::test]
async fn learner_and_member_without_quorum_serve_snapshots() {
    for version in ["3.5.35", "3.6.16", "3.7.3"] {
        let dir = tempfile::tempdir().unwrap();
        let mut members = ["a", "b"].map(|name| Etcd::new(version, name, dir.path()));
        Etcd::found(&mut members, &[]);
        let [mut a, b] = members;
        let (mut ask_a, mut ask_b) = (a.client(), b.client());
        led_by_somebody(&mut ask_a).await;
        led_by_somebody(&mut ask_b).await;
        let mut learner = Etcd::new(version, "c", dir.path());
        eventually("the learner", async || ask_a.add_learner(&learner.peer_url).await.ok()).await;
        learner.start(&[&a, &b], &[]);
        let mut ask_learner = learner.client();
        assert!(led_by_somebody(&mut ask_learner).await.is_learner);
        assert_eq!(whole_snapshot(&mut ask_learner).await.unwrap().len() % 512, 32);
        assert_eq!(ask_learner.count_keys(1).await.unwrap(), 0);

        a.stop();
        assert_cause(ask_b.check_linearizable_read().await, |c| {
            matches!(c, Cause::TimedOut(_) | Cause::NoConsensus(_))
        });
        assert_eq!(whole_snapshot(&mut ask_b).await.unwrap().len() % 512, 32);
        assert_eq!(ask_b.count_keys(1).await.unwrap(), 0);
    }
}

/// A member with far more data than may be on its way to a reader that does not read.
async fn a_member_with_much_data(dir: &Path) -> Etcd {
    let mut etcd = Etcd::new("3.6.16", "much", dir);
    etcd.start(&[], &[]);
    led_by_somebody(&mut etcd.client()).await;
    let value = "x".repeat(100_000);
    for n in 0..120 {
        assert!(etcd.etcdctl(&["put", &format!("key-{n}"), &value]));
    }
    etcd
}

#[tokio::test]
async fn slow_snapshot_reader_can_make_other_requests() {
    let dir = tempfile::tempdir().unwrap();
    let etcd = a_member_with_much_data(dir.path()).await;
    let mut ask = etcd.client();
    let mut stream = ask.snapshot().await.unwrap();
    stream.next().await.unwrap().unwrap();
    let hash = ask.with_deadline(Duration::from_secs(20)).hash_kv(121).await.unwrap();
    assert_eq!(ask.count_keys(121).await.unwrap(), 120);
    // What is written meanwhile is not in it any more.
    assert!(etcd.etcdctl(&["put", "late", "value"]));
    let mut size = 0;
    while let Some(piece) = stream.next().await.unwrap() {
        size += piece.len();
    }
    assert!(size > 11_000_000, "{size}");
    assert_eq!(ask.hash_kv(121).await.unwrap(), hash);
}

#[tokio::test]
async fn snapshot_stream_that_breaks_off_or_stalls_fails() {
    let dir = tempfile::tempdir().unwrap();
    let mut etcd = a_member_with_much_data(dir.path()).await;
    let deadline = Duration::from_secs(1);
    let mut ask = MemberClient::new(&etcd.client_url, deadline).unwrap();

    let mut stream = ask.snapshot().await.unwrap();
    stream.next().await.unwrap().unwrap();
    etcd.freeze();
    let begin = Instant::now();
    let stalled = failure_of(stream).await;
    assert_eq!(stalled.cause, Cause::TimedOut(deadline), "{stalled}");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    assert_cause(ask.snapshot().await, |c| *c == Cause::TimedOut(deadline));
    etcd.thaw();

    let mut stream = eventually("the member's next snapshot", async || ask.snapshot().await.ok()).await;
    stream.next().await.unwrap().unwrap();
    etcd.stop();
    let broken = failure_of(stream).await;
    assert!(matches!(broken.cause, Cause::Unreachable(_)), "{broken}");
    assert!(broken.to_string().starts_with("taking a snapshot at http://127.0.0.1:"), "{broken}");
}

async fn failure_of(mut stream: SnapshotStream) -> Error {
    loop {
        match stream.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it came whole from a member that does not run"),
            Err(error) => return error,
        }
    }
}

#[tokio::test]
async fn snapshot_of_an_unreachable_member_fails() {
    let mut ask = MemberClient::new(&format!("http://127.0.0.1:{}", free_port()), Duration::from_secs(10)).unwrap();
    assert_cause(ask.snapshot().await, |c| matches!(c, Cause::Unreachable(why) if why.contains("refused")));
}
