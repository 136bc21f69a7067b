//! Backups that succeed, and what becomes of them.

use std::fs;
use std::path::Path;
use std::process::Command;

use etcd_operator_protocol::manifest::KvHash;
use etcd_operator_protocol::report::{Done, Reason};
use etcd_operator_protocol::task::{Prune, Retention, Task};

use crate::pod::{
    backup, check, fetch, location, manifest_file, manifest_of, names_in, run, run_with_identity, take, verify,
};
use crate::proxy::{Fault, Proxy};
use crate::support::{Etcd, binaries, eventually, led_by_somebody};
use crate::writer::Writer;

/// A pair of keys for tests, and a private key that belongs to neither.
const RECIPIENT: &str = "age1q62q64xjglukjwhkc4tutju3mylshkfvlkz9ktu96xd0fcqus93sarc9ha";
const IDENTITY: &str = "AGE-SECRET-KEY-1HR3YGVM8X2JLUN0TXV0XK77LMSSW3THTGLE59S5DLVF2TYTPPZ5Q6NMH5V";
const OTHER_IDENTITY: &str = "AGE-SECRET-KEY-1AMSM8AN9C97CLD5XKM8NZJY9M57N4ZQJ9VAXVFALFSSS7PDR53CSUZ3C8J";

/// A member with ten keys at revision 15, compacted up to revision 5.
pub async fn a_member(version: &str, dir: &Path) -> Etcd {
    let mut etcd = Etcd::new(version, "origin", dir);
    etcd.start(&[], &[]);
    led_by_somebody(&mut etcd.client()).await;
    for n in 0..12 {
        assert!(etcd.etcdctl(&["put", &format!("key-{n}"), "value"]));
    }
    for n in 0..2 {
        assert!(etcd.etcdctl(&["del", &format!("key-{n}")]));
    }
    assert!(etcd.etcdctl(&["compaction", "--physical", "5"]));
    etcd
}

#[tokio::test]
async fn backup_is_restored_3_5() {
    what_was_backed_up_is_restored("3.5.35").await;
}

#[tokio::test]
async fn backup_is_restored_3_6() {
    what_was_backed_up_is_restored("3.6.16").await;
}

#[tokio::test]
async fn backup_is_restored_3_7() {
    what_was_backed_up_is_restored("3.7.3").await;
}

async fn what_was_backed_up_is_restored(version: &str) {
    let dir = tempfile::tempdir().unwrap();
    let etcd = a_member(version, dir.path()).await;
    let object = dir.path().join("bucket/team/nightly.db");
    let mut task = backup(&[&etcd.client_url], &object);
    task.hash_keys = true;
    let done = take(&task).done();
    let status = etcd.client().status().await.unwrap();
    let manifest = done.manifest.clone().unwrap();
    assert_eq!((manifest.revision, manifest.keys), (15, 10));
    assert_eq!((&manifest.etcd_version, &manifest.member), (&version.to_owned(), &etcd.client_url));
    assert_eq!(manifest.cluster_id, format!("{:x}", status.cluster_id));
    assert!(manifest.with_quorum);
    assert_eq!(manifest.origin, task.origin);
    assert_eq!(manifest.kv_hash.unwrap().compact_revision, 5);
    assert_eq!((manifest.snapshot_size, &manifest.snapshot_sha256), (manifest.object_size, &manifest.object_sha256));
    assert_eq!(fs::metadata(&object).unwrap().len(), manifest.object_size);
    assert_eq!(names_in(object.parent().unwrap()), ["nightly.db", "nightly.db.manifest.json"]);
    assert_eq!(manifest_of(&object), manifest);
    assert_eq!(run(&check(&object)).done(), Done { manifest: Some(manifest.clone()), ..Done::default() });

    let file = dir.path().join("fetched.db");
    run(&fetch(&object, &file)).done();
    assert_eq!(fs::read(&file).unwrap(), fs::read(&object).unwrap());
    assert!(etcdutl(version, &["snapshot", "status", "--write-out", "json"], &file).contains(r#""revision":15,"#));
    let mut restored = Etcd::new(version, "restored", dir.path());
    restore(version, &file, &restored);
    restored.start(&[], &[]);
    assert_eq!(
        run(&verify(&object, &restored.client_url)).done(),
        Done { manifest: Some(manifest.clone()), ..Done::default() }
    );
    let names = ["nightly.db", "nightly.db.manifest.json", "nightly.db.proof.json"];
    assert_eq!(names_in(object.parent().unwrap()), names, "it is written down that it was proven");
    fs::remove_file(object.with_extension("db.proof.json")).unwrap();

    let hash = manifest.kv_hash.unwrap();
    let mut wrong = [manifest.clone(), manifest.clone(), manifest.clone(), manifest.clone()];
    wrong[0].keys += 1;
    wrong[1].revision += 1000;
    wrong[2].kv_hash = Some(KvHash { hash: hash.hash ^ 1, ..hash });
    wrong[3].kv_hash = Some(KvHash { compact_revision: 4, ..hash });
    let mut outcomes = Vec::new();
    for wrong in &wrong {
        assert_eq!(names_in(object.parent().unwrap()), names[..2], "what is wrong has no proof");
        fs::write(manifest_file(&object), serde_json::to_vec(wrong).unwrap()).unwrap();
        outcomes.push(run(&verify(&object, &restored.client_url)));
    }
    let not_comparable = outcomes.pop().unwrap().done().remark.unwrap();
    assert!(not_comparable.contains("revision 4 and the other up to 5"), "{not_comparable}");
    let words = ["it has 10 keys at revision 15, and 11 were backed up", "revision 1015", "the hash of its keys is"];
    for (outcome, words) in outcomes.into_iter().zip(words) {
        let failure = outcome.failed(2);
        assert_eq!(failure.reason, Reason::ContentMismatch);
        assert!(failure.message.contains(words), "{}", failure.message);
    }
}

fn restore(version: &str, file: &Path, into: &Etcd) {
    let data_dir = into.data_dir.to_str().unwrap();
    let name = into.data_dir.file_name().unwrap().to_str().unwrap();
    let everybody = format!("{name}={}", into.peer_url);
    let flags = ["--name", name, "--initial-cluster", &everybody];
    let more = ["--initial-advertise-peer-urls", &into.peer_url, "--data-dir", data_dir];
    etcdutl(version, &[&["snapshot", "restore"][..], &flags, &more].concat(), file);
}

fn etcdutl(version: &str, args: &[&str], file: &Path) -> String {
    let output = Command::new(binaries(version).join("etcdutl")).args(args).arg(file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn backup_is_compressed_and_encrypted() {
    let dir = tempfile::tempdir().unwrap();
    let etcd = a_member("3.6.16", dir.path()).await;
    let plain = dir.path().join("bucket/plain.db");
    let plain_manifest = take(&backup(&[&etcd.client_url], &plain)).done().manifest.unwrap();
    for (compress, encrypt) in [(true, false), (false, true), (true, true)] {
        let object = dir.path().join(format!("bucket/{compress}-{encrypt}.db"));
        let mut task = backup(&[&etcd.client_url], &object);
        task.compress = compress;
        task.recipients = if encrypt { vec![RECIPIENT.into()] } else { Vec::new() };
        let manifest = take(&task).done().manifest.unwrap();
        assert_eq!(manifest.compression.as_deref(), compress.then_some("zstd"));
        assert_eq!(manifest.encryption.as_deref(), encrypt.then_some("age"));
        assert_eq!(compress, manifest.object_size < manifest.snapshot_size);
        assert_eq!(manifest.snapshot_size, plain_manifest.snapshot_size);

        let file = dir.path().join("fetched.db");
        run_with_identity(&fetch(&object, &file), IDENTITY).done();
        assert_eq!(fs::metadata(&file).unwrap().len(), manifest.snapshot_size);
        assert!(etcdutl("3.6.16", &["snapshot", "status", "--write-out", "json"], &file).contains(r#""revision":15,"#));
        if encrypt {
            for outcome in [run(&check(&object)), run_with_identity(&check(&object), OTHER_IDENTITY)] {
                assert_eq!(outcome.failed(2).reason, Reason::WrongKey);
            }
        }
    }
}

#[tokio::test]
async fn attempt_after_a_successful_one_reports_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let mut etcd = a_member("3.6.16", dir.path()).await;
    let object = dir.path().join("bucket/nightly.db");
    let task = backup(&[&etcd.client_url], &object);
    let first = take(&task).done();
    // Nobody can be asked any more, and nobody needs to.
    etcd.stop();
    assert_eq!(take(&task).done(), first);

    let mut namesake = task.clone();
    namesake.origin.uid = "2".into();
    let mut somebody_else = task;
    somebody_else.origin.backup = "team/other".into();
    let before = fs::read(&object).unwrap();
    for task in [namesake, somebody_else] {
        let failure = take(&task).failed(2);
        assert_eq!(failure.reason, Reason::ObjectExists);
        assert!(failure.message.contains("nightly.db"), "{}", failure.message);
    }
    assert_eq!(fs::read(&object).unwrap(), before);
    assert_eq!(names_in(object.parent().unwrap()), ["nightly.db", "nightly.db.manifest.json"]);
}

/// What is compacted away right before a snapshot can't be read in it any more, so that nothing could be verified there.
#[tokio::test]
async fn backup_during_writes_and_compactions_can_be_verified() {
    let dir = tempfile::tempdir().unwrap();
    let etcd = a_member("3.6.16", dir.path()).await;
    let objects = [1, 2, 3, 4, 5].map(|n| dir.path().join(format!("bucket/{n}.db")));
    let writer = Writer::start(&etcd.client_url, 15);
    for object in &objects {
        let mut task = backup(&[&etcd.client_url], object);
        task.hash_keys = true;
        let revision = take(&task).done().manifest.unwrap().revision;
        writer.wait_for(revision + 50);
    }
    writer.stop();
    for (n, object) in objects.iter().enumerate() {
        let mut restored = Etcd::new("3.6.16", &format!("restored-{n}"), dir.path());
        restore("3.6.16", object, &restored);
        restored.start(&[], &[]);
        run(&verify(object, &restored.client_url)).done();
    }
}

/// An address may stand for several members, and another connection may lead to another of them.
#[tokio::test]
async fn backup_uses_one_connection_for_all_requests() {
    let dir = tempfile::tempdir().unwrap();
    let etcd = a_member("3.6.16", dir.path()).await;
    let proxy = Proxy::start(&etcd.client_url, usize::MAX, Fault::Cut);
    let mut task = backup(&[&proxy.url], &dir.path().join("bucket/x.db"));
    task.hash_keys = true;
    assert!(take(&task).done().manifest.unwrap().kv_hash.is_some());
    assert_eq!(proxy.connections(), 1);
}

#[tokio::test]
async fn cluster_without_quorum_is_backed_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut members = ["a", "b"].map(|name| Etcd::new("3.6.16", name, dir.path()));
    Etcd::found(&mut members, &[]);
    let [mut a, b] = members;
    for etcd in [&a, &b] {
        led_by_somebody(&mut etcd.client()).await;
    }
    assert!(a.etcdctl(&["put", "key", "value"]));
    let mut ask_b = b.client();
    eventually("the write", async || (ask_b.status().await.unwrap().revision == 2).then_some(())).await;
    let with_quorum = dir.path().join("bucket/with.db");
    let task = backup(&[&a.client_url, &b.client_url], &with_quorum);
    let manifest = take(&task).done().manifest.unwrap();
    let status = ask_b.status().await.unwrap();
    let follower = if status.leader == status.member_id { &a.client_url } else { &b.client_url };
    assert_eq!((manifest.with_quorum, &manifest.member), (true, follower), "the leader has enough to do");
    a.stop();
    let without = dir.path().join("bucket/without.db");
    let manifest = take(&backup(&[&a.client_url, &b.client_url], &without)).done().manifest.unwrap();
    assert!(!manifest.with_quorum);
    assert_eq!((manifest.revision, manifest.keys, &manifest.member), (2, 1, &b.client_url));
}

#[tokio::test]
async fn older_backups_of_the_schedule_are_pruned_after_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let etcd = a_member("3.6.16", dir.path()).await;
    let bucket = dir.path().join("bucket");
    let retention = Retention { keep_last: 1, time_zone: "UTC".into(), ..Retention::default() };
    for n in 1..=3 {
        let mut task = backup(&[&etcd.client_url], &bucket.join(format!("{n}.db")));
        task.origin.backup = format!("team/nightly-{n}");
        task.origin.schedule = Some("team/nightly".into());
        task.retention = Some(retention.clone());
        let pruned = take(&task).done().pruned.unwrap();
        assert_eq!((pruned.kept, pruned.deleted, pruned.problem), (1, u32::from(n > 1), None));
    }
    assert_eq!(names_in(&bucket), ["3.db", "3.db.manifest.json"]);
    let all = Prune { below: location(&bucket.join("x")), schedule: "team/nightly".into(), retention: None };
    assert_eq!(run(&Task::Prune(all)).done().pruned.unwrap().deleted, 1);
    assert_eq!(names_in(&bucket), [""; 0]);
}
