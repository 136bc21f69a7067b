//! Backups of an EtcdCluster, and new clusters from them: through every kind of store, with everything that can go
//! wrong in between. No fault here affects more than one cluster or one bucket, so these tests run side by side; a
//! store that dies is in `heal`, an operator that is away in `power`.

mod bootstrap;
mod edits;
mod encoded;
mod failed;
mod guide;
mod interrupted;
mod refused;
mod retention;
mod round_trip;
mod survivor;
mod upgrade;

use e2e::etcd::{Etcd, manifest};
use e2e::{Namespace, SAFETY};
use serde_json::{Value, json};

/// How far a restored cluster's revisions are above those of the backup, at least.
const BUMP: i64 = 1_000_000_000;

/// A cluster `c` that runs a given version, with room for what tests put into it.
fn cluster_of<'a>(namespace: &'a Namespace, version: &str, replicas: u32) -> Etcd<'a> {
    let mut cluster = manifest("c", replicas);
    cluster["spec"]["version"] = json!(version);
    cluster["spec"]["storage"]["volumeClaimTemplate"]["resources"]["requests"]["storage"] = json!("200Mi");
    Etcd::create(namespace, &cluster)
}

/// A cluster with just one member, for tests that are about something else.
fn small_cluster(namespace: &Namespace) -> Etcd<'_> {
    cluster_of(namespace, "3.6.16", 1)
}

/// What a cluster is like when it is backed up.
struct Known {
    contents: Vec<Value>,
    revision: i64,
    cluster_id: Value,
}

impl Known {
    fn of(etcd: &Etcd) -> Self {
        let (contents, revision) = (etcd.contents(), etcd.revision().unwrap());
        Known { contents, revision, cluster_id: etcd.status()["clusterID"].clone() }
    }

    /// A cluster that was made of a backup is another one, with the same data.
    fn assert_restored_to(&self, etcd: &Etcd, replicas: u32) {
        etcd.wait_until_whole(replicas);
        etcd.assert_voters(replicas);
        etcd.assert_objects(replicas);
        assert_ne!(etcd.status()["clusterID"], self.cluster_id, "the cluster is another one");
        let contents = etcd.contents();
        assert_eq!(contents.len(), self.contents.len(), "{SAFETY}the number of keys");
        let different = contents.iter().zip(&self.contents).find(|(restored, original)| restored != original);
        assert_eq!(different, None, "{SAFETY}every key has its value, its version and its revisions");
        let revision = etcd.revision().unwrap();
        assert!(revision >= self.revision + BUMP, "{revision} is not far above {}", self.revision);
        let old = etcd.etcdctl(&["get", "any", "--rev", &self.revision.to_string()]).unwrap_err();
        assert!(old.contains("compacted"), "{old}");
        etcd.put("after", "the restore");
        etcd.assert_same_data(replicas as usize);
    }
}

/// The cluster that an EtcdRestore or somebody else has made.
fn made<'a>(namespace: &'a Namespace, name: &str) -> Etcd<'a> {
    Etcd { namespace, name: name.to_owned() }
}
