//! Where everything of the lab lives. One lab per machine, so these are constants: whoever sweeps after a crash, from
//! any checkout, knows where to look.

use std::path::PathBuf;

use anyhow::{Context, Result};

/// Data that a machine keeps on disk: certificates, logs, containers, volumes. Removed by `down`.
pub const DATA: &str = "/var/lib/etcd-lab";
/// What a reboot would clear: sockets, network namespaces, container state. Short, because a socket's path is limited
/// to 108 bytes.
pub const RUN: &str = "/run/etcd-lab";
/// Held while `up`, `down` and `node` change something, so that two of them never mix.
pub const LOCK: &str = "/run/lock/etcd-lab";
/// Held while something that several may ask for at once is built into the cache.
pub const BUILD_LOCK: &str = "/run/lock/etcd-lab-build";

pub fn data(path: &str) -> PathBuf {
    PathBuf::from(DATA).join(path)
}

pub fn run(path: &str) -> PathBuf {
    PathBuf::from(RUN).join(path)
}

pub fn log(process: &str) -> PathBuf {
    data("log").join(format!("{process}.log"))
}

/// Third-party parts are built once and kept here, outside of every checkout.
pub fn cache() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set, so there is no cache folder to use")?)
            .join(".cache"),
    };
    Ok(base.join("etcd-operator-lab"))
}
