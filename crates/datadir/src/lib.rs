//! What etcd left on disk, with no etcd running: [`identity`] says whose data a data dir holds (`wal` decodes it), and
//! [`archive()`] moves such data aside.
//!
//! This is apart from the client of etcd because the gate, which is in every member's pod, needs only this and no
//! network. What follows from what is found is decided elsewhere.

mod archive;
pub mod identity;
mod wal;

pub use archive::archive;
