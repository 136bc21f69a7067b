//! The decisions about an EtcdCluster: [`observed::Observed`] in, [`plan::Plan`] and status out.
//!
//! - Input and output: [`observed`], [`plan`], `messages` (what a step does, in words), [`status`].
//! - Life of a cluster: [`bootstrap`] and [`initial_members`], `members` (the objects of members), `scaling` with
//!   [`quorum`], `maintenance`.
//! - Unhealthy members: [`diagnosis`], `recovery`, [`health_history`], [`corruption`].
//! - Changes of the spec: [`spec_diff`], [`rollout`], `versions` with `flags`, [`volumes`], [`upgrade_backup`].
//! - [`cpu`] is a small helper.

pub mod bootstrap;
pub mod corruption;
pub mod cpu;
pub mod diagnosis;
mod flags;
pub mod health_history;
pub mod initial_members;
mod maintenance;
mod members;
mod messages;
pub mod observed;
pub mod plan;
pub mod quorum;
mod recovery;
pub mod rollout;
pub(crate) mod scaling;
pub mod spec_diff;
pub mod status;
pub mod upgrade_backup;
mod versions;
pub mod volumes;

#[cfg(test)]
pub(crate) mod tests;
