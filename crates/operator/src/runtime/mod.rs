//! What every controller stands on, whatever its kind: `scope` and `watch` (caches that are filled by watches, with an
//! `index` by cluster), `controller` (runs reconciles in turn, with a deadline, metrics and `backoff`), `events`,
//! `status` (writing one), `strict` (creating objects), `api_errors`, `metrics`, `readiness`, `shutdown`, and `leader` election.
//!
//! Nothing here knows what a cluster or a backup is for: that belongs in `controllers`.

pub mod api_errors;
pub mod backoff;
pub mod controller;
pub mod events;
mod index;
pub mod leader;
pub mod metrics;
pub mod readiness;
pub mod scope;
pub mod shutdown;
pub mod status;
pub mod strict;
pub mod watch;
