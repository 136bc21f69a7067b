//! A real three-node Kubernetes on one machine: for people through the `lab` command, for tests as a library.
//!
//! A test finds the running lab with [`api::client`], causes faults with [`node::Node`] and [`faults`], keeps backups
//! in [`stores::Store`], and uses the programs in `.lab/bin` as a person would. The lab knows nothing of the operator:
//! what tests share about that is in `tests/src`.

pub mod api;
mod cgroup;
mod command;
mod control;
pub mod faults;
pub mod images;
pub mod lifecycle;
mod mounts;
mod network;
pub mod node;
mod packages;
mod parts;
mod paths;
mod pki;
mod preflight;
mod process;
mod say;
pub mod status;
pub mod storage;
pub mod stores;
