//! The decisions about an EtcdCluster: [`observed::Observed`] in, [`plan::Plan`] and status out.
//!
//! - Input: [`observed`]. Output: [`step`] (what a plan consists of), `messages` (what a step does, in words),
//!   [`status`], [`requeue`] (when to look again).
//! - [`plan`] is on top and puts everything in order. No file here uses one that uses it.
//! - Life of a cluster: [`bootstrap`] and [`initial_members`], `members` (the objects of members), `scaling` with
//!   `removal` (may a voter go?), [`quorum`] and `leftovers` (what is deleted after it), `maintenance`,
//!   `shared_objects` (Services and PodDisruptionBudget).
//! - Unhealthy members: [`diagnosis`], `recovery`, [`health_history`], [`corruption`] with [`corruption_history`].
//! - Changes of the spec: [`spec_diff`], `acceptance` (of a version) with `versions`, `flags` and [`upgrade_backup`];
//!   `rollout` with `recreate`, `draining`, [`progress`] and [`rollout_slots`] (which clusters may restart members);
//!   [`volumes`].
//! - [`cpu`] is a small helper.

mod acceptance;
pub mod bootstrap;
pub mod corruption;
pub mod corruption_history;
pub mod cpu;
pub mod diagnosis;
mod draining;
mod flags;
pub mod health_history;
pub mod initial_members;
mod leftovers;
mod maintenance;
mod members;
mod messages;
pub mod observed;
pub mod plan;
pub mod progress;
pub mod quorum;
mod recovery;
mod recreate;
mod removal;
pub mod requeue;
mod rollout;
pub mod rollout_slots;
pub(crate) mod scaling;
mod shared_objects;
pub mod spec_diff;
pub mod status;
pub mod step;
pub mod upgrade_backup;
mod versions;
pub mod volumes;

#[cfg(test)]
pub(crate) mod tests;
