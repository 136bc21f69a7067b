//! A cluster whose database is large, with data that can't be compressed.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use e2e::Namespace;
use e2e::etcd::{Etcd, manifest};
use serde_json::json;

/// The database has a fifth more than these values, which makes 2 GB.
const VALUES: usize = 1600;
const VALUE: usize = 1 << 20;
/// As many as keep two cores busy.
const WRITERS: usize = 4;

/// A cluster with one member and a database of 2 GB.
pub fn large_cluster(namespace: &Namespace) -> Etcd<'_> {
    let mut cluster = manifest("c", 1);
    cluster["spec"]["storage"]["volumeClaimTemplate"]["resources"]["requests"]["storage"] = json!("6Gi");
    cluster["spec"]["etcd"] = json!({
        "quotaBackendBytes": "4Gi",
        // The log of large values would be kept in memory for much longer.
        "snapshotCount": 100,
        "extraArgs": {"snapshot-catchup-entries": "100"},
    });
    let etcd = Etcd::create(namespace, &cluster);
    let url = etcd.endpoints();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let url = &url;
            scope.spawn(move || (writer..VALUES).step_by(WRITERS).for_each(|number| put(url, number)));
        }
    });
    etcd
}

fn put(url: &str, number: usize) {
    let mut value = vec![0; VALUE];
    File::open("/dev/urandom").unwrap().read_exact(&mut value).unwrap();
    e2e::eventually("a large value is written", Duration::from_secs(60), || {
        let mut etcdctl = Command::new(e2e::checkout().join(".lab/bin/etcdctl"))
            .args(["--endpoints", url, "put", &format!("large/{number:04}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        etcdctl.stdin.take().unwrap().write_all(&value).unwrap();
        let output = etcdctl.wait_with_output().unwrap();
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
    });
}
