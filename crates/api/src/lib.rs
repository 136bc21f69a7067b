//! The Kubernetes API of the etcd operator, group `etcd.improbable.io`, version `v1alpha1`.
//!
//! Each resource has a file: [`cluster`] and [`peer`]. What both contain is in [`storage`] and [`pod_template`].
//! `rules` holds the validation that the API server does, `schema` the corrections to the generated schemas.

pub mod cluster;
pub mod crds;
pub mod labels;
pub mod peer;
pub mod pod_template;
mod rules;
mod schema;
pub mod storage;

pub use cluster::{EtcdCluster, EtcdClusterSpec, EtcdClusterStatus, Member};
pub use crds::all_crds;
pub use peer::{EtcdPeer, EtcdPeerSpec, EtcdPeerStatus};
pub use pod_template::PodTemplate;
pub use storage::Storage;

#[cfg(test)]
mod tests;
