//! Where backups are kept, and how they get there and back.
//!
//! [`destination`] is a place for a backup, [`upload`] and [`download`] write and read one, [`prune`] deletes, `failure`
//! says what a store's error means. What lies beside a backup, and which may go, is in `etcd_operator_protocol`. Nothing
//! here talks to Kubernetes or to etcd.

mod address;
mod decode;
pub mod destination;
pub mod download;
mod encode;
mod failure;
mod files;
mod multipart;
mod parts;
pub mod prune;
mod stores;
pub mod trailer;
pub mod upload;

#[cfg(test)]
mod testing;
