//! Puts a copy of this program where the etcd container finds it: etcd's image has none.

use std::path::Path;
use std::{env, fs};

use anyhow::Context;

/// Can be repeated, also after it was cut short: at its name there is a complete program or none.
pub fn install(directory: &Path) -> anyhow::Result<()> {
    let own = env::current_exe().context("finding out where this program is")?;
    let unfinished = directory.join(".gate.unfinished");
    let copied = fs::copy(&own, &unfinished).and_then(|_| fs::rename(&unfinished, directory.join("gate")));
    copied.with_context(|| format!("copying {} to {}", own.display(), directory.display()))
}
