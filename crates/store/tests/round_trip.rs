//! What goes into a store comes out again, or there is an error: never anything else.
#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop right there")]

mod support;

use std::io;

use bytes::Bytes;
use etcd_operator_protocol::manifest::Origin;
use etcd_operator_protocol::report::Reason;
use etcd_operator_protocol::task::{Find, Location};
use etcd_operator_store::destination::{Destination, There};
use etcd_operator_store::download::download;
use etcd_operator_store::upload::{Encoding, Upload};
use jiff::Timestamp;
use proptest::prelude::*;
use support::{Memory, encodings, manifest, new_keys, origin, snapshot, upload};

const URL: &str = "s3://backups/prod/1.db";
const KEY: &str = "prod/1.db";
const MIB: usize = 1024 * 1024;

fn location(url: &str) -> Location {
    Location { url: url.into(), ..Location::default() }
}

async fn read(from: &Destination, identity: Option<&str>) -> Result<Vec<u8>, Reason> {
    download(from, identity, Vec::new()).await.map(|(_, bytes)| bytes).map_err(|failure| failure.reason)
}

#[tokio::test]
async fn snapshot_survives_a_round_trip_in_every_encoding() {
    let (identity, recipient) = new_keys();
    for encoding in encodings(&recipient) {
        // Smaller than a part, and several of them.
        let sizes = if encoding.compress { [4096, 2 * MIB] } else { [4096, 9 * MIB] };
        for size in sizes {
            let (store, snapshot) = (Memory::default(), snapshot(size));
            let to = store.destination(URL);
            let encoded = upload(&to, &snapshot, &encoding).await;
            assert_eq!(encoded.compression.as_deref(), encoding.compress.then_some("zstd"));
            assert_eq!(encoded.encryption.is_some(), !encoding.recipients.is_empty());
            assert_eq!(encoded.object.size, store.read(KEY).await.len() as u64);

            let (decoded, bytes) = download(&to, Some(&identity), Vec::new()).await.unwrap();
            assert!(bytes == snapshot, "{encoding:?}, {size} bytes");
            assert_eq!((&decoded.snapshot, &decoded.object), (&encoded.snapshot, &encoded.object));
            let find = Find { from: location(URL), sha256: Some(encoded.snapshot.sha256.clone()) };
            let manifest = manifest(origin("one"), encoded, Timestamp::now());
            decoded.check(Some(&manifest), &find).unwrap();
        }
    }
}

#[tokio::test]
async fn file_store_survives_a_round_trip() {
    let directory = tempfile::tempdir().unwrap();
    let (identity, recipient) = new_keys();
    let snapshot = snapshot(MIB);
    for (number, encoding) in encodings(&recipient).iter().enumerate() {
        let url = format!("file://{}/prod/{number}%20of%204.db", directory.path().display());
        let to = Destination::open(&location(&url)).unwrap();
        assert_eq!(to.what_is_there(&origin("one")).await.unwrap(), There::Nothing);
        let encoded = upload(&to, &snapshot, encoding).await;
        let manifest = manifest(origin("one"), encoded, Timestamp::now());
        to.write_manifest(&manifest).await.unwrap();

        assert!(read(&to, Some(&identity)).await.unwrap() == snapshot);
        assert_eq!(to.what_is_there(&origin("one")).await.unwrap(), There::Whole(Box::new(manifest)));
        let object = directory.path().join(format!("prod/{number} of 4.db"));
        assert!(object.exists() && !object.with_extension("db.unfinished").exists());
    }
}

#[tokio::test]
async fn broken_stream_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (_, recipient) = new_keys();
    let whole = snapshot(9 * MIB);
    for (number, encoding) in encodings(&recipient).into_iter().enumerate() {
        // The long ones only once: they take their time.
        let lengths: &[usize] = &[0, 31, 4096, 4096 + 32, 8 * MIB, whole.len() - 1];
        for &length in &lengths[..if number == 0 { 6 } else { 4 }] {
            let store = Memory::default();
            let file = format!("file://{}/1.db", directory.path().display());
            for to in [store.destination(URL), Destination::open(&location(&file)).unwrap()] {
                let mut upload = Upload::begin(&to, &origin("one"), &encoding).await.unwrap();
                for piece in whole[..length].chunks(MIB) {
                    upload.write(Bytes::copy_from_slice(piece)).await.unwrap();
                }
                assert_eq!(upload.finish().await.unwrap_err().reason, Reason::BadStream, "{length} bytes");
            }
            assert_eq!((store.names().await, store.open_uploads()), (vec![], 0), "{length} bytes");
            assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "{length} bytes");
        }
    }
}

#[tokio::test]
async fn aborted_upload_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = Memory::default();
    let file = format!("file://{}/1.db", directory.path().display());
    for to in [store.destination(URL), Destination::open(&location(&file)).unwrap()] {
        let mut upload = Upload::begin(&to, &origin("one"), &Encoding::default()).await.unwrap();
        for piece in snapshot(9 * MIB).chunks(MIB) {
            upload.write(Bytes::copy_from_slice(piece)).await.unwrap();
        }
        upload.abort().await;
    }
    assert_eq!((store.names().await, store.open_uploads()), (vec![], 0));
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
}

/// A store may keep a part that arrives after its upload was aborted.
#[tokio::test]
async fn aborted_upload_waits_for_parts_on_their_way() {
    let store = Memory::default();
    store.slow_down_parts(300);
    let to = store.destination(URL);
    let mut upload = Upload::begin(&to, &origin("one"), &Encoding::default()).await.unwrap();
    for piece in snapshot(17 * MIB).chunks(MIB) {
        upload.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    while store.parts_sent() < 2 {
        tokio::task::yield_now().await;
    }
    upload.abort().await;
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    assert_eq!(store.late_parts(), 0);
    assert_eq!((store.names().await, store.open_uploads()), (vec![], 0));
}

#[tokio::test]
async fn upload_to_a_full_store_fails_and_leaves_nothing() {
    for part in [0, 1, 2] {
        let store = Memory::default();
        store.fail_at_part(part);
        let to = store.destination(URL);
        let mut upload = Upload::begin(&to, &origin("one"), &Encoding::default()).await.unwrap();
        let mut ended = Ok(());
        for piece in snapshot(40 * MIB).chunks(MIB) {
            ended = upload.write(Bytes::copy_from_slice(piece)).await;
            if ended.is_err() {
                break;
            }
        }
        let failure = ended.expect_err("five parts do not fit into three buffers");
        assert_eq!(failure.reason, Reason::NoSpace);
        assert!(failure.message.contains("the bucket backups is full"), "{failure:?}");
        assert_eq!((store.names().await, store.open_uploads()), (vec![], 0));
        upload.abort().await;

        let mut upload = Upload::begin(&to, &origin("one"), &Encoding::default()).await.unwrap();
        upload.write(snapshot(4096).into()).await.unwrap();
        let last = upload.finish().await;
        assert_eq!(last.is_err(), part == 0, "it is noticed at the end, too");
    }
}

/// What a pod that was killed has written.
const HALF: &str = "half of it";

/// A dropped upload removes its file later, in a thread of its own, and the next upload has a file of the same name. In a pod the next
/// one is in another process.
async fn until_nothing_is_staged(directory: &std::path::Path) {
    let is_staged = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        path.to_string_lossy().contains('#') && std::fs::read(path).is_ok_and(|content| content != HALF.as_bytes())
    };
    for _ in 0..1000 {
        if !std::fs::read_dir(directory).unwrap().any(is_staged) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("a dropped upload has not removed its file within 10 s");
}

#[tokio::test]
async fn leftovers_of_a_killed_pod_are_recognised_and_removed_by_the_next_attempt() {
    let directory = tempfile::tempdir().unwrap();
    let store = Memory::default();
    let file = format!("file://{}/1.db", directory.path().display());
    let snapshot = snapshot(9 * MIB);
    // A file that is being written, as a pod leaves it that cannot remove it any more.
    std::fs::write(directory.path().join("1.db#1"), HALF).unwrap();
    for to in [store.destination(URL), Destination::open(&location(&file)).unwrap()] {
        let mut upload = Upload::begin(&to, &origin("one"), &Encoding::default()).await.unwrap();
        upload.write(Bytes::copy_from_slice(&snapshot[..8 * MIB + 5])).await.unwrap();
        drop(upload);
        until_nothing_is_staged(directory.path()).await;
        assert_eq!(to.what_is_there(&origin("one")).await.unwrap(), There::Nothing);
        let There::Foreign(why) = to.what_is_there(&origin("two")).await.unwrap() else { panic!("it is taken") };
        assert!(why.contains("team/one") && why.contains("1.db.unfinished"), "{why}");

        let encoded = support::upload(&to, &snapshot, &Encoding::default()).await;
        assert!(read(&to, None).await.unwrap() == snapshot);
        to.write_manifest(&manifest(origin("one"), encoded, Timestamp::now())).await.unwrap();
    }
    assert_eq!(store.open_uploads(), 0);
    assert_eq!(store.names().await, [KEY.to_owned(), format!("{KEY}.manifest.json")]);
    let mut names: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["1.db", "1.db.manifest.json"]);
}

#[tokio::test]
async fn object_without_manifest_is_ours_only_with_our_marker() {
    let store = Memory::default();
    let to = store.destination(URL);
    upload(&to, &snapshot(4096), &Encoding::default()).await;
    assert_eq!(to.what_is_there(&origin("one")).await.unwrap(), There::Nothing, "killed before the manifest");
    assert!(matches!(to.what_is_there(&origin("two")).await.unwrap(), There::Foreign(_)));
    // The same name, but not the same EtcdBackup.
    let again = Origin { uid: "another".into(), ..origin("one") };
    assert!(matches!(to.what_is_there(&again).await.unwrap(), There::Foreign(_)));
    store.delete(&format!("{KEY}.unfinished")).await;
    assert!(matches!(to.what_is_there(&origin("one")).await.unwrap(), There::Foreign(_)));
}

#[tokio::test]
async fn object_of_an_upload_with_a_lost_response_is_still_ours() {
    let store = Memory::default();
    let to = store.destination(URL);
    store.lose_the_answer_to_complete();
    let mut upload = Upload::begin(&to, &origin("one"), &Encoding::default()).await.unwrap();
    upload.write(snapshot(4096).into()).await.unwrap();
    upload.finish().await.unwrap_err();
    assert_eq!(store.names().await, [KEY.to_owned(), format!("{KEY}.unfinished")]);
    assert_eq!(to.what_is_there(&origin("one")).await.unwrap(), There::Nothing);
}

#[tokio::test]
async fn backup_is_complete_with_its_own_manifest_and_an_object_of_that_size() {
    let store = Memory::default();
    let to = store.destination(URL);
    assert_eq!(to.what_is_there(&origin("one")).await.unwrap(), There::Nothing);
    let encoded = upload(&to, &snapshot(4096), &Encoding::default()).await;
    let manifest = manifest(origin("one"), encoded, Timestamp::now());
    to.write_manifest(&manifest).await.unwrap();
    assert_eq!(to.read_manifest().await.unwrap().as_ref(), Some(&manifest));
    assert_eq!(to.what_is_there(&origin("one")).await.unwrap(), There::Whole(Box::new(manifest)));
    let There::Foreign(why) = to.what_is_there(&origin("two")).await.unwrap() else { panic!("it is taken") };
    assert!(why.contains("team/one"), "{why}");

    store.write(KEY, "something else").await;
    assert_eq!(to.what_is_there(&origin("one")).await.unwrap(), There::Nothing);
    store.write(&format!("{KEY}.manifest.json"), "{}").await;
    assert!(matches!(to.what_is_there(&origin("one")).await.unwrap(), There::Foreign(_)));
    assert_eq!(to.read_manifest().await.unwrap_err().reason, Reason::HashMismatch);
}

#[tokio::test]
async fn encrypted_backup_is_decrypted_only_with_the_right_key() {
    let store = Memory::default();
    let (right, recipient) = new_keys();
    let (wrong, other_recipient) = new_keys();
    let to = store.destination(URL);
    let snapshot = snapshot(4096);
    for compress in [false, true] {
        upload(&to, &snapshot, &Encoding { compress, recipients: vec![recipient.clone()] }).await;
        assert_eq!(read(&to, None).await, Err(Reason::WrongKey));
        assert_eq!(read(&to, Some(&wrong)).await, Err(Reason::WrongKey));
        assert_eq!(read(&to, Some("no key")).await, Err(Reason::WrongKey));
        let whole_file = format!("# created: 2026-11-16\n# public key: {recipient}\n{right}\n\n{wrong}\n");
        assert!(read(&to, Some(&whole_file)).await.unwrap() == snapshot);
    }
    // Each of several recipients can open it.
    upload(&to, &snapshot, &Encoding { compress: true, recipients: vec![recipient, other_recipient] }).await;
    for identity in [&right, &wrong] {
        assert!(read(&to, Some(identity)).await.unwrap() == snapshot);
    }
    let no_key = Encoding { compress: false, recipients: vec!["age1nonsense".into()] };
    let failure = Upload::begin(&to, &origin("one"), &no_key).await.err().unwrap();
    assert_eq!(failure.reason, Reason::InvalidRequest);
}

#[tokio::test]
async fn download_of_a_missing_or_invalid_object_fails_with_a_message() {
    let store = Memory::default();
    let failure = download(&store.destination(URL), None, io::sink()).await.err().unwrap();
    assert_eq!(
        (failure.reason, failure.message.as_str()),
        (Reason::NoSuchObject, "reading s3://backups/prod/1.db: there is no such object")
    );
    for url in ["s3://backups/prod/", "s3://backups"] {
        let failure = download(&store.destination(url), None, io::sink()).await.err().unwrap();
        assert_eq!(failure.reason, Reason::InvalidRequest, "{failure:?}");
    }
    let directory = tempfile::tempdir().unwrap();
    let file = format!("file://{}/1.db", directory.path().display());
    let failure = download(&Destination::open(&location(&file)).unwrap(), None, io::sink()).await.err().unwrap();
    assert_eq!(failure.reason, Reason::NoSuchObject);
}

#[tokio::test]
async fn backup_with_another_size_or_hash_is_refused() {
    let store = Memory::default();
    let to = store.destination(URL);
    let encoded = upload(&to, &snapshot(4096), &Encoding::default()).await;
    let good = manifest(origin("one"), encoded, Timestamp::now());
    let (decoded, _) = download(&to, None, io::sink()).await.unwrap();
    let find = |sha256: Option<&str>| Find { from: location(URL), sha256: sha256.map(Into::into) };
    decoded.check(None, &find(None)).unwrap();
    decoded.check(None, &find(Some(&good.snapshot_sha256.to_uppercase()))).unwrap();
    assert_eq!(decoded.check(None, &find(Some("00"))).unwrap_err().reason, Reason::HashMismatch);
    let changes: [fn(&mut etcd_operator_protocol::manifest::Manifest); 4] = [
        |manifest| manifest.object_size += 1,
        |manifest| manifest.object_sha256 = "00".into(),
        |manifest| manifest.snapshot_size += 1,
        |manifest| manifest.snapshot_sha256 = "00".into(),
    ];
    for change in changes {
        let mut manifest = good.clone();
        change(&mut manifest);
        assert_eq!(decoded.check(Some(&manifest), &find(None)).unwrap_err().reason, Reason::HashMismatch);
    }
}

#[tokio::test]
async fn database_without_hash_and_empty_object_are_refused() {
    let store = Memory::default();
    let snapshot = snapshot(4096);
    for bare in [&snapshot[..4096], b""] {
        store.write(KEY, bare).await;
        assert_eq!(read(&store.destination(URL), None).await, Err(Reason::HashMismatch));
    }
    store.write(KEY, snapshot.clone()).await;
    assert!(read(&store.destination(URL), None).await.unwrap() == snapshot, "etcdctl's own is one");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever becomes of an object, what is read is either refused or what was written.
    #[test]
    fn damaged_object_is_never_decoded(
        kind in 0usize..4,
        place in 0.0..1.0,
        change in prop_oneof![(1u8..=255).prop_map(Some), Just(None)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (identity, recipient) = new_keys();
            let (store, snapshot) = (Memory::default(), snapshot(40 * 4096));
            let to = store.destination(URL);
            let encoded = upload(&to, &snapshot, &encodings(&recipient)[kind]).await;
            let mut object = store.read(KEY).await;
            let at = (object.len() as f64 * place) as usize;
            match change {
                Some(bits) => object[at] ^= bits,
                None => object.truncate(at),
            }
            store.write(KEY, object).await;
            let find = Find { from: Location { url: URL.into(), ..Location::default() }, sha256: None };
            let manifest = manifest(origin("one"), encoded, Timestamp::now());
            if let Ok((decoded, bytes)) = download(&to, Some(&identity), Vec::new()).await {
                assert!(bytes == snapshot);
                // Some bits mean nothing to who reads them. With the manifest that shows, too.
                assert!(decoded.check(Some(&manifest), &find).is_err());
            }
        });
    }
}
