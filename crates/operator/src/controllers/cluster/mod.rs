//! The controller of EtcdClusters: keeps each cluster in the state that its spec desires.
//!
//! Every reconcile goes through the same stages, which `reconcile` puts in order: observe, remember, plan, throttle, act
//! (each step confirmed if it could do harm), report, requeue. What is planned, who may restart members and
//! when to look again is decided in `etcd_operator_core::cluster`.
//!
//! - Observing: `observe`, with `member_objects` (from the caches or live), `probe` (queries etcd's members),
//!   `corruption_check` (reads hashes of their data), `spec_diff`, `shared_objects` and `volumes` (what does not match the spec), `node`, and
//!   `upgrade_backup` (the backup before an upgrade).
//! - Remembered by this process only: `memory`, which `remember` brings up to date, `rollout_slots` (which clusters may restart members).
//! - Acting: `act` carries out a plan, and `confirm` confirms steps. How a step is taken is in `member_steps`,
//!   `membership`, `rollout`, `maintenance`, `shared_object_steps` (Services and PodDisruptionBudget) and `take_backup`, all by
//!   means of `actor`; `patches` are the types of what is patched, `errors` says why a step fails.
//! - Reporting: `report`.

mod act;
mod actor;
mod confirm;
mod corruption_check;
mod errors;
mod maintenance;
mod member_objects;
mod member_steps;
mod membership;
pub mod memory;
pub mod node;
mod observe;
mod patches;
mod probe;
pub mod reconcile;
mod remember;
mod report;
mod rollout;
pub mod rollout_slots;
mod shared_object_steps;
mod shared_objects;
mod spec_diff;
mod take_backup;
#[cfg(test)]
mod tests;
mod upgrade_backup;
mod volumes;
