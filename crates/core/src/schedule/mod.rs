//! Backups at certain times: when one is due, and what becomes of a schedule.
//!
//! `cron` reads what the user wrote, `times` finds the times of it; `scheduled_backup` is what is known of an
//! EtcdBackup of a schedule, and `tally` adds them up; `due` decides which time is due, `overdue` whether too many have
//! failed, `history` which EtcdBackup objects go, `cluster` what follows if the cluster is gone; `plan` puts it all
//! together, and `status` says it. Which stored backups go by age or number is not decided here but in
//! `etcd_operator_store::retention`, where the agent asks it.
//!
//! A backup is named after its time and numbered, so that everything can be found out again from the EtcdBackups that
//! are there: a crash between making one and writing that down neither doubles nor skips anything.

mod cluster;
pub mod cron;
mod due;
mod history;
mod overdue;
pub mod plan;
pub mod scheduled_backup;
mod status;
mod tally;
mod times;

#[cfg(test)]
mod tests;
