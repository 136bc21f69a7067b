//! Tests of the decisions about clusters, one file for each kind of decision. `support` builds clusters to decide
//! about; `simulation` is a small world in which plans are executed. Tests of a single function are beside it, those of
//! schedules in `schedule/tests`.

mod adoption;
mod bootstrap;
mod maintenance;
mod members;
mod recovery;
mod rollout;
mod scaling_down;
mod scaling_up;
mod simulation;
mod status;
mod status_of_the_unhealthy;
pub mod support;
mod upgrade_backup;
mod versions;
