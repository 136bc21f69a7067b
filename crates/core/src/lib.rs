//! The decisions of the etcd operator.
//!
//! Everything here is a function from what was observed to what should be done or reported. Nothing here talks to
//! Kubernetes or to etcd, and nothing reads the clock: the time is a parameter. What needs a client belongs in the
//! operator.
//!
//! A folder per kind: [`cluster`] for EtcdClusters, [`schedule`] for EtcdBackupSchedules. [`gate`] decides whether etcd
//! may start on the data that is there. [`conditions`] and [`names`] serve all of them. `simulation`, which exists only
//! in tests, executes plans in a small world with faults.

pub mod cluster;
pub mod conditions;
pub mod gate;
pub mod names;
pub mod schedule;

#[cfg(test)]
mod simulation;
