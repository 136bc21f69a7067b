//! The Kubernetes API of the etcd operator, group `etcd.improbable.io`.
//!
//! [`v1alpha1`] has the types of that version, so that a later version has room beside it. [`crds`] makes the
//! definitions that are installed, `schema` holds the corrections to the generated schemas. [`labels`] names what the
//! operator writes on objects; [`ids`], [`duration`] and [`quantity`] read and write values that are more than text.
//! Decisions about running clusters belong in `etcd_operator_core`, annotations that only the operator reads in the
//! operator.

pub mod crds;
pub mod duration;
pub mod labels;
pub mod quantity;
mod schema;
pub mod v1alpha1;

pub use crds::all_crds;
pub use etcd_operator_protocol::ids::{self, ClusterId, MemberId};
pub use v1alpha1::*;

#[cfg(test)]
mod tests;
