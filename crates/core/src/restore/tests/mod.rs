//! Tests of EtcdRestores: `support` builds what is observed, `check` is about what comes before the cluster, `source`
//! about where the backup is, `cluster` about what is created and what follows.

mod check;
mod cluster;
mod source;
mod support;

pub use support::manifest;
