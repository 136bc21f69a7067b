//! Where backups are kept: [`task`] and [`report`] are what the operator and its pods tell each other, [`manifest`] is
//! what lies beside every backup, and [`retention`] says which of them may go.
//!
//! The rest moves backups, and is only there with the feature `transfer`, which the agent uses and the operator does
//! not: `destination` is a place for a backup, `upload` and `download` write and read one, `prune` deletes, `marker`
//! and `proof` lie beside it, `failure` says what a store's error means. Nothing here talks to Kubernetes or to etcd.

pub mod manifest;
pub mod report;
pub mod retention;
pub mod task;

#[cfg(feature = "transfer")]
mod address;
#[cfg(feature = "transfer")]
mod decode;
#[cfg(feature = "transfer")]
pub mod destination;
#[cfg(feature = "transfer")]
pub mod download;
#[cfg(feature = "transfer")]
mod encode;
#[cfg(feature = "transfer")]
mod failure;
#[cfg(feature = "transfer")]
mod files;
#[cfg(feature = "transfer")]
mod marker;
#[cfg(feature = "transfer")]
mod multipart;
#[cfg(feature = "transfer")]
mod parts;
#[cfg(feature = "transfer")]
mod proof;
#[cfg(feature = "transfer")]
pub mod prune;
#[cfg(feature = "transfer")]
mod stores;
#[cfg(feature = "transfer")]
pub mod trailer;
#[cfg(feature = "transfer")]
pub mod upload;

#[cfg(test)]
mod testing;
