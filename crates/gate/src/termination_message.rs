//! What a container leaves for people and for the operator when it ends: its termination message.

use std::path::PathBuf;
use std::{env, fs};

use etcd_operator_protocol::report::Report;

/// Where the kubelet looks for it.
const TERMINATION_LOG: &str = "/dev/termination-log";

/// Whether etcd may start is decided already, so a message that can't be left changes nothing.
pub fn write_termination_message(report: Report) {
    let file: PathBuf = env::var_os("GATE_TERMINATION_LOG").map_or_else(|| TERMINATION_LOG.into(), PathBuf::from);
    if let Err(error) = fs::write(&file, report.into_json()) {
        eprintln!("can't write {}: {error}", file.display());
    }
}
