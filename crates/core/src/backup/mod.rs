//! EtcdBackups: what to do next about one, and what its status says.
//!
//! `observed` is all that a decision may look at; `plan` decides what to do next; `task` is what the agent is told,
//! the retention of a schedule included; `status` words the conditions and events. Which stored backups may go is
//! decided in `etcd_operator_protocol::retention`, which the agent uses.

pub mod observed;
pub mod plan;
mod status;
pub mod task;

#[cfg(test)]
mod tests;
