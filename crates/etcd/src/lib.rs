//! Talks to etcd, and reads what it left on disk.
//!
//! [`MemberClient`] asks one member, with a deadline on every call; nothing here retries or chooses a member, nor
//! decides what an answer means. [`identity`] says, with no etcd running, whose data a data dir holds (`wal` decodes
//! it); [`archive()`] moves such data aside.

mod archive;
mod client;
mod error;
pub mod identity;
mod model;
mod snapshot;
mod version;
mod wal;
mod wire;

pub use archive::archive;
pub use client::MemberClient;
pub use error::{Cause, Error};
pub use model::{Alarm, AlarmKind, KvHash, Member, Membership, Status};
pub use snapshot::SnapshotStream;
