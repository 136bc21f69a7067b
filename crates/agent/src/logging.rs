//! The log.

use std::io::IsTerminal;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

/// Starts logging to the standard output. What is logged follows RUST_LOG, and is `info` without it.
pub fn start() -> anyhow::Result<()> {
    let wanted = std::env::var("RUST_LOG").unwrap_or_default();
    let filter = if wanted.is_empty() { "info" } else { &wanted };
    let filter = EnvFilter::try_new(filter).with_context(|| format!("reading RUST_LOG={wanted}"))?;
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(std::io::stdout().is_terminal()).init();
    Ok(())
}
