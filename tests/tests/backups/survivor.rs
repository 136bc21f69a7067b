//! The last copy of the data: a cluster that has lost its quorum for good is backed up and restored.

use std::time::Duration;

use e2e::backup::{Order, backup_manifest, condition, restore_manifest};
use e2e::stores::{Bucket, Store};
use e2e::writer::write;
use e2e::{Namespace, SAFETY, eventually, inject, is};

use crate::{cluster_of, made};

#[test]
fn last_surviving_member_of_three_is_backed_up_and_no_acknowledged_write_is_lost() {
    let namespace = Namespace::create("backups-survivor");
    let bucket = Bucket::create(Store::S3, "survivor", &namespace);
    let etcd = cluster_of(&namespace, "3.6.16", 3);
    let written = write(100, &etcd);
    let contents = etcd.contents();
    eventually("c-2 has everything", Duration::from_secs(20), || {
        is(etcd.value_on("c-2", "written/000099"), Ok("99".to_owned()))
    });
    let run = etcd.run_of("c-2");
    for lost in ["c-0", "c-1"] {
        inject::wipe_volume(&namespace.name, lost);
    }
    namespace.kubectl("delete pod c-0 c-1 --now");
    eventually("the quorum is lost", Duration::from_secs(120), || {
        etcd.says("Available", "False", "QuorumLost", &["c-0", "c-1"])
    });

    let status = Order::place(&namespace, &backup_manifest("b", "c", bucket.destination("b.db"))).complete();
    assert_eq!(status["withQuorum"], false, "{status}");
    assert!(status["member"].as_str().unwrap_or_default().contains("c-2"), "{status}");
    let told = condition(&status, "QuorumLost");
    assert_eq!(told["status"], "True", "{status}");
    println!("{}", told["message"]);
    bucket.assert_holds(&["b.db"]);
    assert_eq!(etcd.run_of("c-2"), run, "{SAFETY}the survivor was left alone");

    Order::place(&namespace, &restore_manifest("r", bucket.source("b.db"), "r", 3)).complete();
    let restored = made(&namespace, "r");
    restored.wait_until_whole(3);
    restored.assert_voters(3);
    written.assert_kept(&restored);
    assert_eq!(restored.contents(), contents, "{SAFETY}the data is as it was");
}
