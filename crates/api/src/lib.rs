//! The Kubernetes API of the etcd operator, group `etcd.improbable.io`, version `v1alpha1`.
//!
//! Each resource has a file: [`cluster`], with [`cluster_status`], and [`peer`]. What both contain is in [`storage`],
//! [`pod_template`], [`image`] and [`etcd`]; how a cluster is looked after is in [`care`], how it is upgraded in
//! [`upgrade`]. `rules` holds the validation that the API server does, `schema` the corrections to the generated
//! schemas. [`ids`], [`duration`] and [`quantity`] read and write values that are more than text.

pub mod care;
pub mod cluster;
pub mod cluster_status;
pub mod crds;
pub mod duration;
pub mod etcd;
pub mod ids;
pub mod image;
pub mod labels;
pub mod peer;
pub mod pod_template;
pub mod quantity;
mod rules;
mod schema;
pub mod storage;
pub mod upgrade;

pub use care::{CorruptionCheck, Maintenance, MemberReplacement, Recovery};
pub use cluster::{EtcdCluster, EtcdClusterSpec};
pub use cluster_status::{Birth, EtcdClusterStatus, Member, MemberRole};
pub use crds::all_crds;
pub use etcd::{AutoCompaction, CompactionMode, EtcdOptions};
pub use ids::{format_id, parse_id};
pub use image::{Image, PullPolicy};
pub use peer::{
    Bootstrap, Defragmentation, EtcdPeer, EtcdPeerSpec, EtcdPeerStatus, InitialClusterState, InitialMember,
    Replacement, StaticBootstrap,
};
pub use pod_template::{PodMetadata, PodTemplate};
pub use storage::{DeletionPolicy, Ephemeral, Medium, Storage};
pub use upgrade::Upgrade;

#[cfg(test)]
mod tests;
