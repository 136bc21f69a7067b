//! Talks to etcd.
//!
//! [`MemberClient`] asks one member, with a deadline on every call; nothing here retries or chooses a member, nor
//! decides what an answer means. What etcd left on disk is read by `etcd_operator_datadir`.

mod client;
mod error;
mod model;
mod snapshot;
mod version;
mod wire;

pub use client::MemberClient;
pub use error::{Cause, Error};
pub use model::{Alarm, AlarmKind, KvHash, Member, Membership, Status};
pub use snapshot::SnapshotStream;
