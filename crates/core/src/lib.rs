//! The decisions of the etcd operator.
//!
//! Everything here is a function from what was observed to what should be done or reported. Nothing here talks to
//! Kubernetes or to etcd, and nothing reads the clock: the time is a parameter. What needs a client belongs in the
//! operator.
//!
//! A folder per kind: [`cluster`] for EtcdClusters, [`backup`] for EtcdBackups, [`schedule`] for EtcdBackupSchedules,
//! [`restore`] for EtcdRestores. [`agent_job`] decides what a Job of an agent and its pods mean. [`conditions`],
//! [`notice`], [`names`], [`ordinal`] and [`locations`] serve all of them. `simulation`, which exists only in tests, executes plans in
//! a small world with faults. Decisions that are taken in the pods of members and backups are in
//! `etcd_operator_protocol`.

pub mod agent_job;
pub mod backup;
pub mod cluster;
pub mod conditions;
pub mod locations;
pub mod names;
pub mod notice;
pub mod ordinal;
pub mod restore;
pub mod schedule;

#[cfg(test)]
mod simulation;
