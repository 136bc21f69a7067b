//! The EtcdCluster that an EtcdRestore creates.

use etcd_operator_api::{ClusterBootstrap, EtcdCluster, EtcdClusterSpec, EtcdRestore, RestoreFrom, labels};
use etcd_operator_protocol::report::Done;

/// Identifies the EtcdRestore that created an EtcdCluster, whatever its name.
const MADE_BY: &str = "etcd.improbable.io/restore-uid";

pub fn is_made_by(cluster: &EtcdCluster, restore: &EtcdRestore) -> bool {
    let annotations = cluster.metadata.annotations.as_ref();
    annotations.and_then(|annotations| annotations.get(MADE_BY)) == restore.metadata.uid.as_ref()
}

/// The cluster that is bootstrapped from a backup that was checked, with this result.
pub fn cluster_to_create(restore: &EtcdRestore, from: RestoreFrom, version: String, done: &Done) -> EtcdCluster {
    let template = &restore.spec.cluster_template;
    // Pins the restore to the backup that was checked.
    let sha256 = sha256_of(done).or(from.sha256.clone());
    let bootstrap = Some(ClusterBootstrap { restore: Some(RestoreFrom { sha256, ..from }) });
    let spec = EtcdClusterSpec { version, bootstrap, ..template.spec.clone() };
    let mut metadata = template.metadata.clone().unwrap_or_default();
    let name = restore.metadata.name.clone().unwrap_or_default();
    metadata.labels.insert(labels::RESTORED_FROM.to_owned(), name);
    metadata.annotations.insert(MADE_BY.to_owned(), restore.metadata.uid.clone().unwrap_or_default());
    let mut cluster = EtcdCluster::new(&template.cluster_name, spec);
    cluster.metadata.namespace = restore.metadata.namespace.clone();
    cluster.metadata.labels = Some(metadata.labels);
    cluster.metadata.annotations = Some(metadata.annotations);
    cluster
}

fn sha256_of(done: &Done) -> Option<String> {
    let of_manifest = done.manifest.as_ref().map(|manifest| manifest.snapshot_sha256.clone());
    of_manifest.or_else(|| done.found.as_ref().map(|found| found.snapshot_sha256.clone()))
}
