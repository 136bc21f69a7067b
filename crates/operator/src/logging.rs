//! The log.

use std::io::IsTerminal;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::cli::LogFormat;

/// Starts logging to the standard output. RUST_LOG sets the level, which is `info` without it.
pub fn start(format: LogFormat) -> anyhow::Result<()> {
    let wanted = std::env::var("RUST_LOG").unwrap_or_default();
    let filter = if wanted.is_empty() { "info" } else { &wanted };
    let filter = EnvFilter::try_new(filter).with_context(|| format!("reading RUST_LOG={wanted}"))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(std::io::stdout().is_terminal());
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    Ok(())
}
