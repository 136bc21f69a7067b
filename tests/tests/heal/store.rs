//! The store dies in the middle of a backup. There is one for all tests, and no other test of this program needs it.

use std::time::Duration;

use e2e::backup::{Order, slow_backup_manifest};
use e2e::etcd::{Etcd, manifest};
use e2e::stores::{Bucket, Store};
use e2e::{Namespace, eventually, finish, is, stays};

/// The S3 store is dead until this is dropped.
struct Dead;

impl Dead {
    fn kill() -> Self {
        Store::S3.kill().expect("the store is killed");
        Dead
    }
}

impl Drop for Dead {
    fn drop(&mut self) {
        if let Err(error) = finish(Store::S3.start()) {
            eprintln!("the S3 store could not be started again: {error:#}");
        }
    }
}

#[test]
fn backup_completes_when_its_killed_store_is_back() {
    let namespace = Namespace::create("heal-store");
    let bucket = Bucket::create(Store::S3, "dies", &namespace);
    let etcd = Etcd::create(&namespace, &manifest("c", 1));
    etcd.enlarge(64);
    let backup = Order::place(&namespace, &slow_backup_manifest("b", "c", bucket.destination("b.db")));
    eventually("the backup is half there", Duration::from_secs(60), || {
        let unfinished = bucket.unfinished();
        if unfinished.contains(&"b.db".to_owned()) { Ok(()) } else { Err(format!("{unfinished:?}")) }
    });
    let dead = Dead::kill();
    assert_eq!(bucket.unfinished(), ["b.db"], "it was killed in the middle");
    stays("the backup is neither given up nor taken for whole", Duration::from_secs(10), || {
        is(backup.status()["phase"].as_str(), Some("Running"))
    });
    drop(dead);
    let status = backup.complete();
    assert_eq!(status["verified"], true, "{status}");
    bucket.assert_holds(&["b.db"]);
}
