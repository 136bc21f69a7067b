//! The EtcdRestore of the user guide, as it is written there.

use std::io::ErrorKind;
use std::path::Path;

use e2e::Namespace;
use e2e::backup::{Order, backup_manifest};
use e2e::stores::{Bucket, Store};
use serde_json::json;

use crate::{Known, cluster_of, made};

const RESTORE: &str = "
apiVersion: etcd.improbable.io/v1alpha1
kind: EtcdRestore
metadata:
  name: e2e-restore
spec:
  source:
    bucket:
      bucketURL: gs://etcd-backup-test
      objectPath: foo.db
      credentials:
        googleCloud:
          secretKeyRef:
            name: backup-gcs-cred
            key: gcp.json
            optional: false
  clusterTemplate:
    clusterName: e2e-backup-cluster
    spec:
      replicas: 3
      storage:
        volumeClaimTemplate:
          storageClassName: standard
          resources:
            requests:
              storage: 100Mi
";

/// The names are those of the guide, so an earlier run may have left an object there, and nothing overwrites one.
fn remove_leftovers() {
    let folder = Path::new("/var/lib/etcd-lab/stores/gcs/buckets/etcd-backup-test");
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => panic!("{}: {error}", folder.display()),
        _ => {}
    }
}

#[test]
fn restore_of_the_user_guide_works_as_written() {
    let namespace = Namespace::create("backups-guide");
    remove_leftovers();
    let bucket = Bucket::named(Store::Gcs, "etcd-backup-test", &namespace);
    bucket.write_secret("backup-gcs-cred", &namespace);
    bucket.assert_holds(&[]);
    // Not the version that is usual here: the new cluster gets that of the backup.
    let etcd = cluster_of(&namespace, "3.6.12", 1);
    etcd.fill(500);
    let known = Known::of(&etcd);
    let credentials = json!({"googleCloud": {"secretKeyRef": {"name": "backup-gcs-cred", "key": "gcp.json"}}});
    let destination = json!({"objectURL": "gs://etcd-backup-test/foo.db", "credentials": credentials});
    Order::place(&namespace, &backup_manifest("foo", "c", destination)).complete();
    bucket.assert_holds(&["foo.db"]);

    namespace.apply(RESTORE).unwrap();
    let restore = Order::found(&namespace, "EtcdRestore", "e2e-restore");
    let status = restore.complete();
    assert_eq!(status["objectURL"], "gs://etcd-backup-test/foo.db", "{status}");
    let restored = made(&namespace, "e2e-backup-cluster");
    assert_eq!(restored.object()["spec"]["version"], "3.6.12");
    known.assert_restored_to(&restored, 3);
}
