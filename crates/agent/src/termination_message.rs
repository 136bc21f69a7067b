//! What the agent leaves for the operator when it ends: its termination message.

use std::path::PathBuf;
use std::{env, fs};

use etcd_operator_protocol::report::Report;
use tracing::warn;

/// Where the kubelet looks for it.
const TERMINATION_LOG: &str = "/dev/termination-log";

/// How it ended is told by the exit code too, so a message that can't be left changes nothing.
pub fn write_termination_message(report: Report) {
    let file: PathBuf = env::var_os("AGENT_TERMINATION_LOG").map_or_else(|| TERMINATION_LOG.into(), PathBuf::from);
    if let Err(error) = fs::write(&file, report.into_json()) {
        warn!("can't write {}: {error}", file.display());
    }
}
