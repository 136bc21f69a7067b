//! Scheduled backups: when one is due, and what happens to a schedule.
//!
//! `cron` parses the schedule (`cron_error` says what is wrong with it), `times` computes its times; `scheduled_backup` is what is known of an EtcdBackup of a
//! schedule, and `tally` adds them up; `due` decides which time is due, `overdue` whether too many have failed,
//! `history` which EtcdBackup objects are deleted, `cluster` what follows if the cluster is gone, `deletion` how far
//! the deletion of its stored backups is; `evaluation` combines them from what is `observed`. From that follow the `plan`,
//! with `requeue`, and the `status`.
//! Which stored backups are deleted by age or number is not decided here but in `etcd_operator_protocol::retention`, which
//! the agent uses.
//!
//! A backup is named after its time and numbered, so that everything can be derived again from the existing
//! EtcdBackups: a crash between creating one and recording it neither duplicates nor skips anything.

mod cluster;
pub mod cron;
pub mod cron_error;
mod deletion;
mod due;
mod evaluation;
mod history;
mod observed;
mod overdue;
pub mod plan;
mod requeue;
pub mod scheduled_backup;
mod status;
mod tally;
mod times;

#[cfg(test)]
mod tests;
