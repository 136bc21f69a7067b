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

/// Where Debian's containernetworking-plugins puts its programs.
pub const CNI_PLUGINS: &str = "/usr/lib/cni";
/// Debian's busybox-static.
pub const BUSYBOX: &str = "/bin/busybox";

pub fn install_missing() -> Result<()> {
    let mut missing: Vec<&str> =
        PROGRAMS.iter().filter(|(program, _)| !command::exists(program)).map(|(_, package)| *package).collect();
    let files =
        [(Path::new(CNI_PLUGINS).join("ptp"), "containernetworking-plugins"), (BUSYBOX.into(), "busybox-static")];
    missing.extend(files.iter().filter(|(file, _)| !file.exists()).map(|(_, package)| *package));
    missing.dedup();
    let step = Step::start("Debian packages");
    if missing.is_empty() {
        step.done("all installed");
        return Ok(());
    }
    let list = missing.join(" ");
    if !command::exists("apt-get") {
        bail!("These packages are missing and there is no apt-get to install them with: {list}.");
    }
    step.progress(&format!("installing {list}"));
    apt_get(&["update", "-qq"])?;
    let mut install = vec!["install", "-y", "-qq", "--no-install-recommends"];
    install.extend(&missing);
    apt_get(&install)?;
    step.done(&format!("installed {list}"));
    Ok(())
}

fn apt_get(args: &[&str]) -> Result<()> {
    let mut apt = Command::new("apt-get");
    apt.args(args).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    command::finish(&mut apt).map(drop).context("installing Debian packages")
}
