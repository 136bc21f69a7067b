//! Tests of EtcdBackups: `support` builds what is observed, `begin` is about what comes before the Job, `take` about its
//! end, `verify` about the second Job.

mod begin;
mod support;
mod take;
mod verify;
