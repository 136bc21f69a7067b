//! The controllers, a folder for each kind: `cluster`, `backup`, `backup_schedule`, `restore`. `start` connects them to
//! the watches; `context` and `caches` (with `trim`) are what they share; an `agent_job` is a Job whose pod does one task
//! of backups and restores; `report` writes what a plan says about all but clusters, `identity` says whose stored backups are.
//!
//! Each has a `reconcile`, which goes one way: observe, plan (in `etcd_operator_core`), act, report. Decisions belong in
//! the core, and building objects in `objects`. Nothing here talks to an object store or reads a Secret: that is the
//! agent's part.

mod agent_job;
mod backup;
mod backup_schedule;
mod caches;
mod cluster;
mod context;
mod identity;
mod report;
mod restore;
pub mod start;
#[cfg(test)]
mod tests;
mod trim;
