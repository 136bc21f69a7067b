//! The Kubernetes API of the etcd operator, group `etcd.improbable.io`, version `v1alpha1`.
//!
//! Each resource has a file: [`cluster`], with [`cluster_status`], and [`peer`]; [`backup`], with [`backup_status`],
//! [`backup_schedule`] and [`restore`]. What clusters and peers contain is in [`storage`], [`pod_template`], [`image`] and
//! [`etcd`]; how a cluster is looked after is in [`care`], how it is upgraded in [`upgrade`]. Where backups go is in
//! [`destination`], where they come from in [`restore_from`], how to get at them in [`object_store`], who can read them in
//! [`secrecy`], and which of them are kept in [`retention`]. `rules` holds the validation that the API server does,
//! `schema` the corrections to the generated schemas. [`ids`], [`duration`], [`quantity`] and [`template`] read and write
//! values that are more than text.

pub mod backup;
pub mod backup_schedule;
pub mod backup_status;
pub mod care;
pub mod cluster;
pub mod cluster_status;
pub mod crds;
pub mod destination;
pub mod duration;
pub mod etcd;
pub mod ids;
pub mod image;
pub mod job_pod;
pub mod labels;
pub mod metadata;
pub mod object_store;
pub mod peer;
pub mod pod_template;
pub mod quantity;
pub mod restore;
pub mod restore_from;
pub mod retention;
mod rules;
mod schema;
pub mod secrecy;
pub mod storage;
pub mod template;
pub mod upgrade;

pub use backup::{BackupSource, Compression, EtcdBackup, EtcdBackupSpec, Verify};
pub use backup_schedule::{
    BackupTemplate, ConcurrencyPolicy, EtcdBackupSchedule, EtcdBackupScheduleSpec, EtcdBackupScheduleStatus,
};
pub use backup_status::{BackupPhase, EtcdBackupStatus};
pub use care::{CorruptionCheck, Maintenance, MemberReplacement, Recovery};
pub use cluster::{EtcdCluster, EtcdClusterSpec};
pub use cluster_status::{BootstrapRecord, EtcdClusterStatus, Member, MemberRole};
pub use crds::all_crds;
pub use destination::{ClaimDestination, Destination, GcsBucket, LocalDestination};
pub use etcd::{AutoCompaction, CompactionMode, EtcdOptions};
pub use ids::{format_id, parse_id};
pub use image::{Image, PullPolicy};
pub use job_pod::JobPodTemplate;
pub use metadata::TemplateMetadata;
pub use object_store::{
    AzureCredentials, AzureOptions, Credentials, GoogleCloudCredentials, GoogleCloudOptions, S3Credentials, S3Options,
    StoreAccess,
};
pub use peer::{
    Bootstrap, Defragmentation, EtcdPeer, EtcdPeerSpec, EtcdPeerStatus, InitialClusterState, InitialMember,
    Replacement, StaticBootstrap,
};
pub use pod_template::{PodMetadata, PodTemplate};
pub use restore::{ClusterTemplate, EtcdRestore, EtcdRestoreSpec, EtcdRestoreStatus, RestorePhase};
pub use restore_from::{BucketSource, ClaimSource, ClusterBootstrap, RestoreFrom, RestoreSource};
pub use retention::{DaysOfMonth, Retention, RetentionResult};
pub use secrecy::{AgeDecryption, AgeEncryption, Decryption, Encryption};
pub use storage::{DeletionPolicy, Ephemeral, Medium, Storage};
pub use template::{Variables, fill_template};
pub use upgrade::Upgrade;

#[cfg(test)]
mod tests;
