//! The program itself, as the kubelet would start it, with real etcd and with directories in the place of buckets.
#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop right there")]

mod backups;
mod faults;
mod pod;
mod proxy;
mod reading_backups;
#[path = "../../etcd/tests/support/mod.rs"]
#[allow(dead_code, reason = "it is that of another crate, which uses the rest of it")]
mod support;
mod writer;
