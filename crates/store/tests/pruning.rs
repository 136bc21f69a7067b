//! What goes and what stays in a store where many have put their backups.
#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop right there")]

mod support;

use etcd_operator_protocol::manifest::{KvHash, Manifest, Origin};
use etcd_operator_protocol::report::{Pruned, Reason};
use etcd_operator_protocol::task::Retention;
use etcd_operator_store::prune::prune;
use etcd_operator_store::trailer::Fingerprint;
use etcd_operator_store::upload::{Encoded, Encoding, Upload};
use jiff::{SignedDuration, Timestamp};
use support::{Memory, manifest, origin, snapshot};

const SCHEDULE: &str = "team/nightly";

fn now() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().unwrap()
}

fn keep_last(keep_last: u32) -> Retention {
    Retention { keep_last, ..Retention::default() }
}

/// A backup that was taken so many hours ago.
async fn put(store: &Memory, key: &str, hours_ago: i64, origin: Origin) {
    put_with(store, key, hours_ago, origin, false).await;
}

async fn put_with(store: &Memory, key: &str, hours_ago: i64, origin: Origin, to_verify: bool) -> Manifest {
    let fingerprint = Fingerprint { size: 1, sha256: "00".into() };
    let encoded = Encoded { snapshot: fingerprint.clone(), object: fingerprint, compression: None, encryption: None };
    let manifest = manifest(origin, encoded, now() - SignedDuration::from_hours(hours_ago));
    let manifest = Manifest { to_verify, ..manifest };
    store.write(key, "x").await;
    store.write(&format!("{key}.manifest.json"), serde_json::to_vec(&manifest).unwrap()).await;
    manifest
}

/// One that is to be verified, and was if it is proven.
async fn put_to_verify(store: &Memory, name: &str, hours_ago: i64, proven: bool) {
    let key = format!("prod/{name}");
    let manifest = put_with(store, &key, hours_ago, origin(name), true).await;
    if proven {
        store.destination(&format!("s3://backups/{key}")).write_proof(&manifest).await.unwrap();
    }
}

async fn run(store: &Memory, retention: Option<&Retention>) -> Pruned {
    prune(&store.destination("s3://backups/prod/any.db"), SCHEDULE, retention, now()).await.unwrap()
}

#[tokio::test]
async fn pruning_deletes_by_time_and_not_by_name() {
    let store = Memory::default();
    put(&store, "prod/a", 1, origin("a")).await;
    put(&store, "prod/deeper/b", 3, origin("b")).await;
    put(&store, "prod/c", 2, origin("c")).await;
    let pruned = run(&store, Some(&keep_last(2))).await;
    assert_eq!(pruned, Pruned { kept: 2, deleted: 1, ..Pruned::default() });
    assert_eq!(store.names().await, ["prod/a", "prod/a.manifest.json", "prod/c", "prod/c.manifest.json"]);
}

#[tokio::test]
async fn pruning_leaves_backups_of_other_schedules() {
    let store = Memory::default();
    put(&store, "prod/ours", 1, origin("ours")).await;
    put(&store, "prod/theirs", 900, Origin { schedule: Some("other/nightly".into()), ..origin("theirs") }).await;
    put(&store, "prod/by-hand", 900, Origin { schedule: None, ..origin("by-hand") }).await;
    put(&store, "elsewhere/ours", 900, origin("elsewhere")).await;
    store.write("prod/without-manifest", "x").await;
    let before = store.names().await;
    assert_eq!(run(&store, Some(&keep_last(1))).await, Pruned { kept: 1, ..Pruned::default() });
    assert_eq!(store.names().await, before);
}

#[tokio::test]
async fn pruning_without_retention_deletes_everything_of_the_schedule() {
    let store = Memory::default();
    put(&store, "prod/a", 1, origin("a")).await;
    put(&store, "prod/b", 2, origin("b")).await;
    put(&store, "prod/theirs", 1, Origin { schedule: None, ..origin("theirs") }).await;
    // One is still being written.
    let to = store.destination("s3://backups/prod/c");
    let _upload = Upload::begin(&to, &origin("c"), &Encoding::default()).await.unwrap();
    let pruned = run(&store, None).await;
    assert_eq!(pruned, Pruned { deleted: 2, ..Pruned::default() });
    assert_eq!(store.names().await, ["prod/theirs", "prod/theirs.manifest.json"]);
    assert_eq!(store.open_uploads(), 0);
}

#[tokio::test]
async fn dry_run_lists_backups_and_deletes_nothing() {
    let store = Memory::default();
    for number in 0..5 {
        put(&store, &format!("prod/{number}"), 10 - number, origin("a")).await;
    }
    let before = store.names().await;
    let pruned = run(&store, Some(&Retention { dry_run: true, ..keep_last(2) })).await;
    let would_delete = [0, 1, 2].map(|number| format!("s3://backups/prod/{number}")).to_vec();
    assert_eq!(pruned, Pruned { kept: 2, would_delete, ..Pruned::default() });
    assert_eq!(store.names().await, before);
}

#[tokio::test]
async fn long_list_of_names_fits_into_a_report() {
    let store = Memory::default();
    for number in 0..200 {
        put(&store, &format!("prod/a-rather-long-name-{number}"), 300 - number, origin("a")).await;
    }
    let pruned = run(&store, Some(&Retention { dry_run: true, ..keep_last(1) })).await;
    assert!(serde_json::to_string(&pruned).unwrap().len() < 3000);
    assert!(pruned.would_delete.last().unwrap().ends_with("more"), "{pruned:?}");
}

#[tokio::test]
async fn manifest_without_its_object_is_deleted() {
    let store = Memory::default();
    put(&store, "prod/a", 1, origin("a")).await;
    put(&store, "prod/b", 2, origin("b")).await;
    // As if it was interrupted between the two.
    store.delete("prod/a").await;
    assert_eq!(run(&store, Some(&keep_last(1))).await, Pruned { kept: 1, ..Pruned::default() });
    assert_eq!(store.names().await, ["prod/b", "prod/b.manifest.json"]);
}

#[tokio::test]
async fn unreadable_manifest_is_reported_and_its_object_is_kept() {
    let store = Memory::default();
    put(&store, "prod/a", 1, origin("a")).await;
    put(&store, "prod/b", 2, origin("b")).await;
    store.write("prod/c", "x").await;
    store.write("prod/c.manifest.json", "nonsense").await;
    let pruned = run(&store, Some(&keep_last(1))).await;
    assert_eq!((pruned.kept, pruned.deleted), (1, 1));
    assert!(pruned.problem.unwrap().contains("prod/c.manifest.json"));
    assert_eq!(store.names().await, ["prod/a", "prod/a.manifest.json", "prod/c", "prod/c.manifest.json"]);
}

#[tokio::test]
async fn leftovers_of_a_killed_pod_are_deleted_after_a_day() {
    let store = Memory::default();
    put(&store, "prod/a", 1, origin("a")).await;
    for (key, name, killed_before_completion) in [("killed-early", "early", true), ("killed-late", "late", false)] {
        let to = store.destination(&format!("s3://backups/prod/{key}"));
        let mut upload = Upload::begin(&to, &origin(name), &Encoding::default()).await.unwrap();
        upload.write(snapshot(4096).into()).await.unwrap();
        if killed_before_completion {
            drop(upload);
        } else {
            upload.finish().await.unwrap();
        }
    }
    let below = store.destination("s3://backups/prod/");
    let begun = Timestamp::now();
    prune(&below, SCHEDULE, Some(&keep_last(9)), begun + SignedDuration::from_hours(23)).await.unwrap();
    assert_eq!(store.open_uploads(), 1);
    assert_eq!(store.names().await.len(), 2 + 1 + 2);
    prune(&below, "team/another", Some(&keep_last(9)), begun + SignedDuration::from_hours(25)).await.unwrap();
    assert_eq!(store.names().await.len(), 2 + 1 + 2);
    prune(&below, SCHEDULE, Some(&keep_last(9)), begun + SignedDuration::from_hours(25)).await.unwrap();
    assert_eq!(store.open_uploads(), 0);
    assert_eq!(store.names().await, ["prod/a", "prod/a.manifest.json"]);
}

#[tokio::test]
async fn marker_of_a_complete_backup_is_deleted_alone() {
    let store = Memory::default();
    let to = store.destination("s3://backups/prod/a");
    Upload::begin(&to, &origin("a"), &Encoding::default()).await.unwrap().abort().await;
    let _upload = Upload::begin(&to, &origin("a"), &Encoding::default()).await.unwrap();
    put(&store, "prod/a", 1, origin("a")).await;
    let later = Timestamp::now() + SignedDuration::from_hours(25);
    prune(&to, SCHEDULE, Some(&keep_last(1)), later).await.unwrap();
    assert_eq!(store.names().await, ["prod/a", "prod/a.manifest.json"]);
}

#[tokio::test]
async fn invalid_retention_deletes_nothing() {
    let store = Memory::default();
    put(&store, "prod/a", 1, origin("a")).await;
    put(&store, "prod/b", 2, origin("b")).await;
    let rules = Retention { time_zone: "Mars/Olympus".into(), ..keep_last(1) };
    let failure = prune(&store.destination("s3://backups/prod/"), SCHEDULE, Some(&rules), now()).await.unwrap_err();
    assert_eq!(failure.reason, Reason::InvalidRequest);
    assert_eq!(store.names().await.len(), 4);
}

#[tokio::test]
async fn newest_proven_backup_is_kept_despite_newer_ones() {
    let store = Memory::default();
    put_to_verify(&store, "earlier", 5, true).await;
    put_to_verify(&store, "proven", 4, true).await;
    put_to_verify(&store, "bad", 3, false).await;
    put_to_verify(&store, "new", 1, false).await;
    assert_eq!(run(&store, Some(&keep_last(1))).await, Pruned { kept: 2, deleted: 2, ..Pruned::default() });
    let proven = ["prod/proven", "prod/proven.manifest.json", "prod/proven.proof.json"];
    let new = ["prod/new", "prod/new.manifest.json"];
    assert_eq!(store.names().await, [&new[..], &proven].concat(), "proofs go with what they are about");
    let to = store.destination("s3://backups/prod/new");
    to.write_proof(&to.read_manifest().await.unwrap().unwrap()).await.unwrap();
    assert_eq!(run(&store, Some(&keep_last(1))).await, Pruned { kept: 1, deleted: 1, ..Pruned::default() });
    assert_eq!(store.names().await, ["prod/new", "prod/new.manifest.json", "prod/new.proof.json"]);
}

#[tokio::test]
async fn proof_does_not_count_for_a_later_backup_of_the_same_name() {
    let store = Memory::default();
    put_to_verify(&store, "a", 3, true).await;
    let again = Origin { uid: "another".into(), ..origin("a") };
    put_with(&store, "prod/a", 2, again, true).await;
    put(&store, "prod/b", 1, origin("b")).await;
    assert_eq!(run(&store, Some(&keep_last(1))).await, Pruned { kept: 1, deleted: 1, ..Pruned::default() });
    assert_eq!(store.names().await, ["prod/b", "prod/b.manifest.json"]);
}

#[tokio::test]
async fn backup_of_an_earlier_version_is_kept_until_another_one_is_proven() {
    let store = Memory::default();
    for (name, hours_ago) in [("good", 30), ("bad", 20)] {
        let key = format!("prod/{name}");
        let manifest = put_with(&store, &key, hours_ago, origin(name), false).await;
        let manifest = Manifest { kv_hash: Some(KvHash { hash: 1, compact_revision: 0 }), ..manifest };
        store.write(&format!("{key}.manifest.json"), serde_json::to_vec(&manifest).unwrap()).await;
    }
    put_to_verify(&store, "new", 10, false).await;
    assert_eq!(run(&store, Some(&keep_last(1))).await, Pruned { kept: 3, ..Pruned::default() });
    put_to_verify(&store, "newest", 1, true).await;
    assert_eq!(run(&store, Some(&keep_last(1))).await, Pruned { kept: 1, deleted: 3, ..Pruned::default() });
}

#[tokio::test]
async fn orphaned_proof_is_deleted_if_it_is_of_this_schedule() {
    let store = Memory::default();
    put(&store, "prod/kept", 1, origin("kept")).await;
    put_to_verify(&store, "deleted", 3, true).await;
    let theirs = Origin { schedule: Some("other/nightly".into()), ..origin("theirs") };
    let manifest = put_with(&store, "prod/theirs", 3, theirs, true).await;
    store.destination("s3://backups/prod/theirs").write_proof(&manifest).await.unwrap();
    for key in ["prod/deleted", "prod/theirs"] {
        store.delete(key).await;
        store.delete(&format!("{key}.manifest.json")).await;
    }
    store.write("prod/other.proof.json", "{}").await;
    // Without its manifest nobody knows what it is, so all of it stays.
    put_to_verify(&store, "unknown", 3, true).await;
    store.delete("prod/unknown.manifest.json").await;
    let before = store.names().await;
    run(&store, Some(&Retention { dry_run: true, ..keep_last(1) })).await;
    assert_eq!(store.names().await, before);
    assert_eq!(run(&store, Some(&keep_last(1))).await, Pruned { kept: 1, ..Pruned::default() });
    let without_it = before.into_iter().filter(|name| name != "prod/deleted.proof.json");
    assert_eq!(store.names().await, without_it.collect::<Vec<_>>());
}

#[tokio::test]
async fn existing_proof_is_not_overwritten() {
    let store = Memory::default();
    put_to_verify(&store, "a", 3, true).await;
    let to = store.destination("s3://backups/prod/a");
    let before = store.read("prod/a.proof.json").await;
    to.write_proof(&to.read_manifest().await.unwrap().unwrap()).await.unwrap();
    assert_eq!(store.read("prod/a.proof.json").await, before);
}
