//! Tests of the decisions about clusters, one file for each kind of decision. `support` builds clusters to decide
//! about. Tests of a single function are beside it.

mod adoption;
mod bootstrap;
mod maintenance;
mod members;
mod recovery;
mod rollout;
mod scaling_down;
mod scaling_up;
mod status;
mod status_of_the_unhealthy;
pub mod support;
mod unreachable;
mod upgrade_backup;
mod versions;
