//! What must be true of the decisions. `support` builds clusters to decide about; `simulation` is a small world that plans
//! are carried out in.

mod adopting;
mod bootstrap;
mod growing;
mod keeping;
mod maintaining;
mod recovery;
mod rolling;
mod shrinking;
mod simulation;
mod status;
mod status_of_the_unhealthy;
pub mod support;
mod upgrade_backup;
mod versions;
