//! The decisions of the etcd operator.
//!
//! Everything here is a function from what was observed to what should be done or reported. Nothing here talks to
//! Kubernetes or to etcd, and nothing reads the clock: the time is a parameter. What needs a client belongs in the
//! operator.
//!
//! - Input and output: [`observed`], [`plan`], `messages` (what a step does, in words), [`status`] and [`conditions`].
//! - Life of a cluster: [`bootstrap`] and [`initial_members`], `members` (the objects of members), `scaling` with
//!   [`quorum`], `maintenance`.
//! - Unhealthy members: [`diagnosis`], `recovery`, [`health_history`], [`corruption`].
//! - Changes of the spec: [`spec_diff`], [`rollout`], `versions` with `flags`, [`volumes`], [`upgrade_backup`].
//! - [`schedule`]: EtcdBackupSchedules. [`gate`]: whether etcd may start on the data that is there.
//! - [`names`] and [`cpu`] are small helpers.

pub mod bootstrap;
pub mod conditions;
pub mod corruption;
pub mod cpu;
pub mod diagnosis;
mod flags;
pub mod gate;
pub mod health_history;
pub mod initial_members;
mod maintenance;
mod members;
mod messages;
pub mod names;
pub mod observed;
pub mod plan;
pub mod quorum;
mod recovery;
pub mod rollout;
mod scaling;
pub mod schedule;
pub mod spec_diff;
pub mod status;
pub mod upgrade_backup;
mod versions;
pub mod volumes;

#[cfg(test)]
mod tests;
