//! The labels that every object of a cluster carries, how to select by them, and annotations with a meaning.

/// Which application an object belongs to. Always [`APP_NAME`] on objects of an etcd cluster.
pub const APP: &str = "app.kubernetes.io/name";

/// The value of [`APP`].
pub const APP_NAME: &str = "etcd";

/// Names of labels and annotations that begin like this belong to the operator; users cannot set them on pods.
pub const RESERVED_PREFIX: &str = "etcd.improbable.io/";

/// The name of the EtcdCluster that an object belongs to.
pub const CLUSTER_NAME: &str = "etcd.improbable.io/cluster-name";

/// The name of the EtcdPeer that an object belongs to.
pub const PEER_NAME: &str = "etcd.improbable.io/peer-name";

/// The name of the EtcdBackup that an object belongs to.
pub const BACKUP_NAME: &str = "etcd.improbable.io/backup-name";

/// The name of the EtcdBackupSchedule that made an EtcdBackup.
pub const BACKUP_SCHEDULE_NAME: &str = "etcd.improbable.io/backup-schedule-name";

/// The name of the EtcdRestore that made an EtcdCluster, or that an object belongs to.
pub const RESTORED_FROM: &str = "etcd.improbable.io/restored-from";

/// An annotation on an EtcdCluster. Setting it to any new value restarts all members, one by one.
pub const RESTART: &str = "etcd.improbable.io/restart";

/// The label selector that matches the objects of one cluster, in the form that `kubectl get --selector` takes.
pub fn selector_of_cluster(name: &str) -> String {
    format!("{APP}={APP_NAME},{CLUSTER_NAME}={name}")
}
