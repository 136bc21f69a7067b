//! The version `v1alpha1` of the API: what users write and what they read back.
//!
//! Each resource has a file: [`cluster`], with [`cluster_status`], and [`peer`]; [`backup`], with [`backup_status`],
//! [`backup_schedule`] and [`restore`]. What clusters and peers contain is in [`storage`], [`pod_template`],
//! [`metadata`], [`image`] and [`etcd`], what the pods of backups are like in [`job_pod`]; how a cluster is looked
//! after is in [`maintenance`], how it is upgraded in [`upgrade`]. Where backups go is in [`destination`], where they
//! come from in [`restore_from`], how to get at them in [`object_store`], who can read them in [`encryption`], and
//! which of them are kept in [`retention`]. [`url_template`] fills the variables in URLs. [`reasons`] has the words of
//! conditions and events. `validation` holds the rules that the API server checks. Nothing here decides anything about a running cluster.

pub mod backup;
pub mod backup_schedule;
pub mod backup_status;
pub mod cluster;
pub mod cluster_status;
pub mod destination;
pub mod encryption;
pub mod etcd;
pub mod image;
pub mod job_pod;
pub mod maintenance;
pub mod metadata;
pub mod object_store;
pub mod peer;
pub mod pod_template;
pub mod reasons;
pub mod restore;
pub mod restore_from;
pub mod retention;
pub mod storage;
pub mod upgrade;
pub mod url_template;
pub(crate) mod validation;

pub use backup::{BackupSource, Compression, EtcdBackup, EtcdBackupSpec, Verify};
pub use backup_schedule::{
    BackupTemplate, ConcurrencyPolicy, EtcdBackupSchedule, EtcdBackupScheduleSpec, EtcdBackupScheduleStatus,
};
pub use backup_status::{BackupPhase, EtcdBackupStatus};
pub use cluster::{EtcdCluster, EtcdClusterSpec};
pub use cluster_status::{BootstrapRecord, EtcdClusterStatus, MemberRole, MemberStatus};
pub use destination::{ClaimDestination, Destination, GcsBucket, LocalDestination};
pub use encryption::{AgeDecryption, AgeEncryption, Decryption, Encryption};
pub use etcd::{AutoCompaction, CompactionMode, EtcdOptions};
pub use image::{Image, PullPolicy};
pub use job_pod::JobPodTemplate;
pub use maintenance::{CorruptionCheck, Maintenance, MemberReplacement, Recovery};
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
pub use reasons::{
    Announced, BackupEventReason, BackupReason, ConditionReason, EventReason, JobFailureReason, Pace, Reason,
    RestoreEventReason, RestoreReason, ScheduleEventReason, ScheduleReason, Severity, WaitReason,
};
pub use restore::{ClusterTemplate, EtcdRestore, EtcdRestoreSpec, EtcdRestoreStatus, RestorePhase};
pub use restore_from::{BucketSource, ClaimSource, ClusterBootstrap, RestoreFrom, RestoreSource};
pub use retention::{DaysOfMonth, Retention, RetentionResult};
pub use storage::{DeletionPolicy, Ephemeral, Medium, Storage};
pub use upgrade::Upgrade;
pub use url_template::{Variables, fill_template};
