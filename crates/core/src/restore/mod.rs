//! EtcdRestores: a Job reads the backup completely, and only then a new EtcdCluster is created that is bootstrapped
//! from it.
//!
//! `observed` is all that a decision may look at; `plan` decides what to do next; `source` says where the backup is,
//! `version` which etcd it is restored with, `cluster` what is created; `status` is what is reported.

mod cluster;
pub mod observed;
pub mod plan;
mod source;
mod status;
mod version;

#[cfg(test)]
mod tests;
