//! The controller of EtcdClusters: keeps each cluster in the state that its spec desires.
//!
//! Every reconcile takes the same steps, which `reconcile` puts in order: observe, plan, ensure, act, report, requeue.
//! The plan is made in `etcd_operator_core::cluster`.
//!
//! - Observing: `observe`, with `member_objects` (from the caches or live), `probe` (queries etcd's members),
//!   `corruption_check` (compares their data), `spec_diff` and `volumes` (what does not match the spec), `node`, and
//!   `upgrade_backup` (the backup before an upgrade).
//! - Remembered by this process only: `memory`, `rollout_slots` (which clusters may restart members).
//! - Acting: `act`, with `membership`, `rollout`, `maintenance` and `upgrade_backup` for some kinds of steps; `ensure`
//!   repairs what every cluster has, whatever the plan; `patches` are the types of what is patched.
//! - Reporting: `report` writes the status.

mod act;
mod corruption_check;
mod ensure;
mod maintenance;
mod member_objects;
mod membership;
pub mod memory;
pub mod node;
mod observe;
mod patches;
mod probe;
pub mod reconcile;
mod report;
mod rollout;
pub mod rollout_slots;
mod spec_diff;
#[cfg(test)]
mod tests;
mod upgrade_backup;
mod volumes;
