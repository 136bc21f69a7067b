//! Azurite, the program of the Azure store: installed from npm as its lock file says, into the cache, and run with Debian's Node.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::Store;
use crate::process::Daemon;
use crate::say::Step;
use crate::{command, network, packages, parts, paths};

const VERSION: &str = "3.35.0";
const PACKAGE: &str = include_str!("../../parts/azurite/package.json");
const LOCK: &str = include_str!("../../parts/azurite/package-lock.json");

/// The folder that holds Azurite and all it needs, keyed by the lock file.
fn folder() -> Result<PathBuf> {
    let digest: String = Sha256::digest(LOCK).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    Ok(paths::cache()?.join("parts").join(format!("azurite-{VERSION}-{digest}")))
}

pub(super) fn install_if_missing() -> Result<()> {
    let target = folder()?;
    let _lock = parts::build_lock()?;
    packages::install_programs(&packages::NODE)?;
    if target.exists() {
        return Ok(());
    }
    let step = Step::start(format!("install azurite {VERSION}"));
    step.progress("takes about half a minute, once");
    let work = target.with_extension(format!("building-{}", std::process::id()));
    std::fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
    std::fs::write(work.join("package.json"), PACKAGE)?;
    std::fs::write(work.join("package-lock.json"), LOCK)?;
    let mut npm = Command::new("npm");
    npm.current_dir(&work).args(["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"]);
    command::finish(&mut npm)?;
    // Renamed at the very end: a folder that exists is whole.
    std::fs::rename(&work, &target).with_context(|| format!("moving Azurite to {}", target.display()))?;
    step.done("installed");
    Ok(())
}

pub(super) fn launch(daemon: &Daemon) -> Result<()> {
    let data = Store::Azure.folder();
    std::fs::create_dir_all(&data).with_context(|| format!("creating {}", data.display()))?;
    let program = folder()?.join("node_modules/azurite/dist/src/blob/main.js");
    let options = [
        ["--blobHost", network::CONTROL_ADDRESS],
        ["--blobPort", &Store::Azure.port().to_string()],
        ["--location", &data.display().to_string()],
        // Clients may be newer than it.
        ["--skipApiVersionCheck", "--disableTelemetry"],
    ];
    let program = program.display().to_string();
    daemon.start_once(Path::new("node"), [program.as_str()].into_iter().chain(options.into_iter().flatten()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn azurite_is_pinned_to_the_version_it_claims_and_to_no_registry() {
        let lock: serde_json::Value = serde_json::from_str(LOCK).unwrap();
        assert_eq!(lock["packages"]["node_modules/azurite"]["version"], VERSION);
        assert!(PACKAGE.contains(&format!("\"azurite\": \"{VERSION}\"")));
        for (name, package) in lock["packages"].as_object().unwrap().iter().filter(|(name, _)| !name.is_empty()) {
            assert!(package["integrity"].is_string(), "{name} could be anything");
            assert!(package["resolved"].is_null(), "{name} names a registry, and each machine has its own");
        }
    }
}
