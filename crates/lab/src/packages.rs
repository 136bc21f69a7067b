//! The Debian packages the lab needs, installed when a program of theirs is missing.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::command;
use crate::say::Step;

/// A program, and the package that brings it.
const PROGRAMS: [(&str, &str); 11] = [
    ("buildah", "buildah"),
    ("conntrack", "conntrack"),
    ("containerd", "containerd"),
    ("ctr", "containerd"),
    ("ethtool", "ethtool"),
    ("ip", "iproute2"),
    ("iptables", "iptables"),
    ("mount", "mount"),
    ("nsenter", "util-linux"),
    ("runc", "runc"),
    ("socat", "socat"),
];

/// What Azurite runs on and is installed with, needed only by those who ask for it.
pub const NODE: [(&str, &str); 2] = [("node", "nodejs"), ("npm", "npm")];

/// Where Debian's containernetworking-plugins puts its programs.
pub const CNI_PLUGINS: &str = "/usr/lib/cni";
/// Debian's busybox-static.
pub const BUSYBOX: &str = "/bin/busybox";

pub fn install_missing() -> Result<()> {
    let files =
        [(Path::new(CNI_PLUGINS).join("ptp"), "containernetworking-plugins"), (BUSYBOX.into(), "busybox-static")];
    let mut missing = missing(&PROGRAMS);
    missing.extend(files.iter().filter(|(file, _)| !file.exists()).map(|(_, package)| *package));
    let step = Step::start("Debian packages");
    if missing.is_empty() {
        step.done("all installed");
        return Ok(());
    }
    install(step, missing)
}

/// Installs what brings some programs, unless they are there.
pub fn install_programs(programs: &[(&str, &'static str)]) -> Result<()> {
    let missing = missing(programs);
    if missing.is_empty() { Ok(()) } else { install(Step::start("Debian packages"), missing) }
}

/// The packages of the programs that aren't there.
fn missing(programs: &[(&str, &'static str)]) -> Vec<&'static str> {
    programs.iter().filter(|(program, _)| !command::exists(program)).map(|(_, package)| *package).collect()
}

fn install(step: Step, mut packages: Vec<&str>) -> Result<()> {
    packages.dedup();
    let list = packages.join(" ");
    if !command::exists("apt-get") {
        bail!("These packages are missing and there is no apt-get to install them with: {list}.");
    }
    step.progress(&format!("installing {list}"));
    apt_get(&["update", "-qq"])?;
    let mut install = vec!["install", "-y", "-qq", "--no-install-recommends"];
    install.extend(&packages);
    apt_get(&install)?;
    step.done(&format!("installed {list}"));
    Ok(())
}

fn apt_get(args: &[&str]) -> Result<()> {
    let mut apt = Command::new("apt-get");
    apt.args(args).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    command::finish(&mut apt).map(drop).context("installing Debian packages")
}
