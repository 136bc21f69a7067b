//! Hashes, alarms and defragmentation.

use std::io::{Read, Write};
use std::net::TcpStream;

use etcd_operator_etcd::{Alarm, AlarmKind, Cause, KvHash, MemberClient};

use crate::support::{Etcd, assert_cause, eventually, led_by_somebody};

#[tokio::test]
async fn members_have_the_same_hash_3_5() {
    members_have_the_same_hash("3.5.35").await;
}

#[tokio::test]
async fn members_have_the_same_hash_3_6() {
    members_have_the_same_hash("3.6.16").await;
}

#[tokio::test]
async fn members_have_the_same_hash_3_7() {
    members_have_the_same_hash("3.7.3").await;
}

async fn members_have_the_same_hash(version: &str) {
    let dir = tempfile::tempdir().unwrap();
    let (members, mut clients) = three_members(version, &dir, &[]).await;
    for value in ["one", "two", "three", "four"] {
        assert!(members[0].etcdctl(&["put", "key", value]));
    }
    // A new cluster has revision 1.
    let newest = 5;
    everybody_reaches(newest, &mut clients).await;

    let reported = |revision| if version.starts_with("3.5.") { 0 } else { revision };
    let hash = same_hash(newest, &mut clients).await;
    assert_eq!((hash.compact_revision, hash.hash_revision), (0, reported(newest)));
    assert_eq!(same_hash(0, &mut clients).await, hash, "0 is the newest revision");
    let before = same_hash(newest - 1, &mut clients).await;
    assert_eq!((before.compact_revision, before.hash_revision), (0, reported(newest - 1)));
    assert_ne!(before.hash, hash.hash);

    for ask in &mut clients {
        for revision in [newest + 1, u64::MAX] {
            assert_cause(ask.hash_kv(revision).await, |c| *c == Cause::FutureRevision);
        }
    }

    assert_eq!(clients[0].compacted_revision(newest).await.unwrap(), 1, "nothing was compacted yet");
    assert!(members[0].etcdctl(&["compaction", "3"]));
    for ask in &mut clients {
        // The others get to know of it a moment later.
        eventually("the compaction", async || (ask.hash_kv(newest).await.unwrap().compact_revision == 3).then_some(()))
            .await;
        assert_cause(ask.hash_kv(2).await, |c| *c == Cause::Compacted);
        assert_eq!(ask.compacted_revision(newest).await.unwrap(), 3);
    }
    let after = same_hash(newest, &mut clients).await;
    assert_eq!((after.compact_revision, after.hash_revision), (3, reported(newest)));
}

/// The hash of all members, which must be one.
async fn same_hash(revision: u64, clients: &mut [MemberClient]) -> KvHash {
    let mut hashes = Vec::new();
    for ask in clients {
        hashes.push(ask.hash_kv(revision).await.unwrap());
    }
    assert!(hashes.iter().all(|h| *h == hashes[0]), "{hashes:?}");
    hashes[0]
}

#[tokio::test]
async fn cluster_with_nospace_alarm_recovers_3_5() {
    a_full_cluster_recovers("3.5.35").await;
}

#[tokio::test]
async fn cluster_with_nospace_alarm_recovers_3_6() {
    a_full_cluster_recovers("3.6.16").await;
}

#[tokio::test]
async fn cluster_with_nospace_alarm_recovers_3_7() {
    a_full_cluster_recovers("3.7.3").await;
}

async fn a_full_cluster_recovers(version: &str) {
    const QUOTA: u64 = 2 << 20;
    let dir = tempfile::tempdir().unwrap();
    let (members, mut clients) = three_members(version, &dir, &["--quota-backend-bytes", &QUOTA.to_string()]).await;
    let before = clients[0].status().await.unwrap();
    assert_eq!(before.db_size_quota, (!version.starts_with("3.5.")).then_some(QUOTA));

    // Always the same key, so that history is all there is to fill the quota, and all of it can be compacted away.
    let value = "x".repeat(100_000);
    let puts = (0..100).take_while(|_| members[0].etcdctl(&["put", "key", &value])).count();
    assert!((1..100).contains(&puts), "{puts} puts until the quota was used up");
    let ids = member_ids(&mut clients).await;
    for ask in &mut clients {
        let status = async || Some(ask.status().await.unwrap()).filter(|s| !s.alarms.is_empty());
        let status = eventually("the alarm", status).await;
        // Whoever finds first that it is full raises the alarm, and others may do so at the same time.
        assert!(status.alarms.iter().all(|a| a.kind == AlarmKind::NoSpace && ids.contains(&a.member_id)), "{status:?}");
        assert_eq!(status.alarms.len(), status.errors.len(), "{status:?}");
    }
    // Not just those that were counted: the write that raises the alarm may take place although it is refused.
    let newest = clients[0].status().await.unwrap().revision;
    everybody_reaches(newest, &mut clients).await;

    // Each member removes what was compacted in its own time, so each is asked to answer when it has done so. Nothing can
    // be compacted twice: each time there is one revision more to compact.
    for (revision, (member, ask)) in (newest - 2..).zip(members.iter().zip(&mut clients)) {
        assert!(member.etcdctl(&["compaction", "--physical", &revision.to_string()]));
        // The size in use cannot be relied on here: it was seen to stay as it was.
        let compacted = ask.status().await.unwrap();
        ask.defragment().await.unwrap();
        let defragmented = ask.status().await.unwrap();
        assert!(defragmented.db_size < compacted.db_size / 2, "{compacted:?} {defragmented:?}");
    }

    assert!(!members[0].etcdctl(&["put", "key", "value"]), "an alarm stays until it is disarmed");
    eventually("a write after the alarm", async || {
        for alarm in clients[0].status().await.unwrap().alarms {
            clients[0].disarm(alarm).await.unwrap();
            // It is not raised any more, which is no error.
            clients[0].disarm(alarm).await.unwrap();
        }
        members[0].etcdctl(&["put", "key", "value"]).then_some(())
    })
    .await;
    for ask in &mut clients {
        let status = async || Some(ask.status().await.unwrap()).filter(|s| s.revision == newest + 1);
        let status = eventually("the write after the alarm", status).await;
        assert_eq!((&status.errors[..], &status.alarms[..]), (&[][..], &[][..]));
    }
}

/// etcd blames nobody if it finds that members differ and cannot tell who is right.
#[tokio::test]
async fn alarm_without_a_member_is_listed_and_disarmed() {
    for version in ["3.5.35", "3.6.16", "3.7.3"] {
        let dir = tempfile::tempdir().unwrap();
        let mut etcd = Etcd::new(version, "corrupt", dir.path());
        etcd.start(&[], &["--quota-backend-bytes", "-1"]);
        let mut ask = etcd.client();
        assert_eq!(led_by_somebody(&mut ask).await.db_size_quota, None, "the quota is switched off");

        let nobodys = Alarm { member_id: 0, kind: AlarmKind::Corrupt };
        let of_seven = Alarm { member_id: 7, kind: AlarmKind::Corrupt };
        let of_seven_too = Alarm { member_id: 7, kind: AlarmKind::NoSpace };
        for alarm in [nobodys, of_seven, of_seven_too] {
            raise(&etcd, alarm);
        }
        for still_there in [&[nobodys, of_seven, of_seven_too][..], &[nobodys, of_seven_too], &[of_seven_too], &[]] {
            let mut alarms = ask.status().await.unwrap().alarms;
            // etcd promises no order.
            alarms.sort_by_key(|a| (a.member_id, a.kind == AlarmKind::NoSpace));
            assert_eq!(alarms, still_there, "{version}");
            // Each call takes back one alarm and no other.
            let next = [of_seven, nobodys, of_seven_too].into_iter().find(|a| still_there.contains(a));
            if let Some(alarm) = next {
                ask.hash_kv(0).await.unwrap();
                ask.disarm(alarm).await.unwrap();
            }
        }
        assert!(etcd.etcdctl(&["put", "key", "value"]));
    }
}

/// Raises an alarm, which etcdctl can't, over etcd's HTTP gateway.
fn raise(etcd: &Etcd, alarm: Alarm) {
    let body = format!(r#"{{"action":"ACTIVATE","memberID":"{}","alarm":"{}"}}"#, alarm.member_id, alarm.kind);
    let host = etcd.client_url.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(host).unwrap();
    let head = format!("POST /v3/maintenance/alarm HTTP/1.0\r\nHost: {host}\r\nContent-Length: {}\r\n\r\n", body.len());
    connection.write_all((head + &body).as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
}

/// A new cluster whose members all know the leader, and a client for each of them.
async fn three_members(version: &str, dir: &tempfile::TempDir, flags: &[&str]) -> ([Etcd; 3], [MemberClient; 3]) {
    let mut members = ["a", "b", "c"].map(|name| Etcd::new(version, name, dir.path()));
    Etcd::found(&mut members, flags);
    let mut clients = [members[0].client(), members[1].client(), members[2].client()];
    for ask in &mut clients {
        led_by_somebody(ask).await;
    }
    (members, clients)
}

async fn member_ids(clients: &mut [MemberClient]) -> Vec<u64> {
    let mut ids = Vec::new();
    for ask in clients {
        ids.push(ask.status().await.unwrap().member_id);
    }
    ids
}

/// A write is acknowledged by one member, and reaches the others a moment later.
async fn everybody_reaches(revision: u64, clients: &mut [MemberClient]) {
    for ask in clients {
        let reached = async || (ask.status().await.unwrap().revision == revision).then_some(());
        eventually("the newest revision", reached).await;
    }
}
