//! Backups that are not what they should be, and backups from elsewhere.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use etcd_operator_protocol::report::Reason;
use etcd_operator_protocol::task::{Fetch, Find, Task};

use crate::backups::a_member;
use crate::pod::{backup, check, fetch, find, manifest_file, names_in, run, take, verify};
use crate::support::{Etcd, binaries};

/// What somebody took with etcdctl.
fn taken_by_hand(etcd: &Etcd, dir: &Path) -> PathBuf {
    let file = dir.join("by-hand.db");
    let mut command = Command::new(binaries("3.6.16").join("etcdctl"));
    let output = command.args(["--endpoints", &etcd.client_url, "snapshot", "save"]).arg(&file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    file
}

#[tokio::test]
async fn snapshot_without_manifest_is_accepted_if_it_has_its_hash() {
    let dir = tempfile::tempdir().unwrap();
    let mut etcd = a_member("3.6.16", dir.path()).await;
    let file = taken_by_hand(&etcd, dir.path());
    let done = run(&check(&file)).done();
    assert_eq!((done.manifest, done.found.as_ref().unwrap().snapshot_size), (None, fs::metadata(&file).unwrap().len()));
    let sha256 = done.found.unwrap().snapshot_sha256;
    run(&Task::Check(Find { sha256: Some(sha256), ..find(&file) })).done();
    let failure = run(&Task::Check(Find { sha256: Some("0".repeat(64)), ..find(&file) })).failed(2);
    assert_eq!(failure.reason, Reason::HashMismatch);
    let failure = run(&verify(&file, &etcd.client_url)).failed(2);
    assert_eq!(failure.reason, Reason::NoSuchObject);
    assert!(failure.message.contains("no manifest"), "{}", failure.message);

    // A copy of the database itself has none.
    etcd.stop();
    let failure = run(&check(&etcd.data_dir.join("member/snap/db"))).failed(2);
    assert_eq!(failure.reason, Reason::HashMismatch);
}

#[tokio::test]
async fn modified_backup_is_not_fetched() {
    let dir = tempfile::tempdir().unwrap();
    let etcd = a_member("3.6.16", dir.path()).await;
    let object = dir.path().join("bucket/x.db");
    take(&backup(&[&etcd.client_url], &object)).done();
    let good = fs::read(&object).unwrap();
    let flipped = {
        let mut bytes = good.clone();
        bytes[good.len() / 2] ^= 1;
        bytes
    };
    // Whole in itself, but another one than the manifest is about.
    assert!(etcd.etcdctl(&["put", "another", "value"]));
    let other = fs::read(taken_by_hand(&etcd, dir.path())).unwrap();
    let target = dir.path().join("restore");
    fs::create_dir(&target).unwrap();
    for bytes in [&flipped[..], &good[..good.len() - 512], &good[..good.len() - 1], &other] {
        fs::write(&object, bytes).unwrap();
        let failure = run(&fetch(&object, &target.join("x.db"))).failed(2);
        assert_eq!(failure.reason, Reason::HashMismatch, "{}", failure.message);
        assert_eq!(names_in(&target), [""; 0]);
    }
    fs::remove_file(&object).unwrap();
    assert_eq!(run(&fetch(&object, &target.join("x.db"))).failed(2).reason, Reason::NoSuchObject);
    fs::write(&object, &good).unwrap();
    run(&fetch(&object, &target.join("x.db"))).done();
    assert_eq!(names_in(&target), ["x.db"]);
}

#[tokio::test]
async fn backup_is_not_fetched_for_another_minor_version() {
    let dir = tempfile::tempdir().unwrap();
    let etcd = a_member("3.6.16", dir.path()).await;
    let object = dir.path().join("bucket/x.db");
    take(&backup(&[&etcd.client_url], &object)).done();
    let file = dir.path().join("fetched.db");
    let fetch_for = |version: &str| {
        let task = Fetch { from: find(&object), file: file.display().to_string(), for_version: Some(version.into()) };
        run(&Task::Fetch(task))
    };
    for version in ["3.5.35", "3.7.3", "3.60.0"] {
        let failure = fetch_for(version).failed(2);
        assert_eq!(failure.reason, Reason::WrongVersion);
        assert!(failure.message.contains("3.6.16") && failure.message.contains(version), "{}", failure.message);
        assert!(!file.exists());
    }
    fetch_for("3.6.12").done();
    // Nothing is known of one without a manifest.
    fs::remove_file(manifest_file(&object)).unwrap();
    fetch_for("3.7.3").done();
}

#[tokio::test]
async fn fetch_to_a_full_volume_fails_with_a_message() {
    let dir = tempfile::tempdir().unwrap();
    let etcd = a_member("3.6.16", dir.path()).await;
    let object = dir.path().join("bucket/x.db");
    take(&backup(&[&etcd.client_url], &object)).done();
    let target = dir.path().join("restore");
    fs::create_dir(&target).unwrap();
    symlink("/dev/full", target.join("x.db.part")).unwrap();
    let failure = run(&fetch(&object, &target.join("x.db"))).failed(1);
    assert_eq!(failure.reason, Reason::NoSpace);
    assert!(failure.message.contains("No space left"), "{}", failure.message);
    assert_eq!(names_in(&target), [""; 0]);
}
