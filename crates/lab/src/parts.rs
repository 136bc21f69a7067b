//! The third-party programs the lab runs, built from their published sources: which they are, and how they get into
//! the cache. A part is a Go module that holds nothing but pinned versions and a `tool` block; the client of the benchmarks
//! and the store that speaks Google's protocol are programs of our own, and CoreDNS is a list of its plugins.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::say::Step;
use crate::{command, paths};

/// A module to build, and what comes out of it.
pub struct Part {
    pub name: &'static str,
    pub version: &'static str,
    go_mod: &'static str,
    go_sum: &'static str,
    /// The files of the module's own program, if it is more than a list of others'.
    sources: &'static [(&'static str, &'static str)],
    /// How long it takes on two cores, so that a person knows whether to wait.
    about: &'static str,
}

macro_rules! part {
    ($name:literal, $version:literal, $folder:literal, $about:literal) => {
        Part {
            name: $name,
            version: $version,
            go_mod: include_str!(concat!("../parts/", $folder, "/go.mod")),
            go_sum: include_str!(concat!("../parts/", $folder, "/go.sum")),
            sources: &[],
            about: $about,
        }
    };
}

pub static KUBERNETES: Part = part!("kubernetes", "1.35.4", "kubernetes", "6 minutes");
/// With the few plugins that the lab needs. All of them would take three times as long.
pub static COREDNS: Part = Part {
    sources: &[("main.go", include_str!("../parts/coredns/main.go"))],
    ..part!("coredns", "1.14.7", "coredns", "a minute")
};
pub static ETCD_3_5_35: Part = part!("etcd", "3.5.35", "etcd-3.5.35", "half a minute");
pub static ETCD_3_6_12: Part = part!("etcd", "3.6.12", "etcd-3.6.12", "half a minute");
pub static ETCD_3_6_16: Part = part!("etcd", "3.6.16", "etcd-3.6.16", "half a minute");
pub static ETCD_3_7_3: Part = part!("etcd", "3.7.3", "etcd-3.7.3", "half a minute");
/// Built only when a benchmark asks for it.
pub static CLIENT: Part = Part {
    sources: &[("main.go", include_str!("../parts/client/main.go"))],
    ..part!("client", "3.6.16", "client", "half a minute")
};
/// Built only when somebody asks for the store.
pub static VERSITYGW: Part = part!("versitygw", "1.8.0", "versitygw", "a minute");
/// Built only when somebody asks for the store.
pub static FAKE_GCS_SERVER: Part = Part {
    sources: &[
        ("main.go", include_str!("../parts/fake-gcs-server/main.go")),
        ("key.go", include_str!("../parts/fake-gcs-server/key.go")),
        ("objects.go", include_str!("../parts/fake-gcs-server/objects.go")),
        ("uploads.go", include_str!("../parts/fake-gcs-server/uploads.go")),
    ],
    ..part!("fake-gcs-server", "1.56.1", "fake-gcs-server", "a minute")
};

/// The etcd versions that every node has an image of.
pub static ETCDS: [&Part; 4] = [&ETCD_3_5_35, &ETCD_3_6_12, &ETCD_3_6_16, &ETCD_3_7_3];

/// Every part, in the order of building: the quick ones first, so that a broken set-up is seen early.
pub fn all() -> impl Iterator<Item = &'static Part> {
    ETCDS.into_iter().chain([&COREDNS, &KUBERNETES])
}

impl Part {
    /// The folder that holds this part's programs, keyed by all that decides what they are.
    pub fn bin(&self) -> Result<PathBuf> {
        Ok(paths::cache()?.join("parts").join(self.key()))
    }

    pub fn key(&self) -> String {
        let mut hash = Sha256::new();
        let sources = self.sources.iter().map(|(_, text)| *text);
        for input in [self.go_mod, self.go_sum, &self.ldflags()].into_iter().chain(sources) {
            hash.update(input.as_bytes());
            hash.update([0]);
        }
        let digest: String = hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{}-{digest}", self.name, self.version)
    }

    fn is_built(&self) -> Result<bool> {
        Ok(self.bin()?.is_dir())
    }

    /// Stripped, and for Kubernetes with the version it shall report: without it a kubelet says v0.0.0.
    fn ldflags(&self) -> String {
        let mut flags = vec!["-s".to_owned(), "-w".to_owned()];
        if self.name == KUBERNETES.name {
            let mut numbers = self.version.split('.');
            let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
            for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
                flags.push(format!("-X {package}.gitVersion=v{}", self.version));
                flags.push(format!("-X {package}.gitMajor={major} -X {package}.gitMinor={minor}"));
                flags.push(format!("-X {package}.gitTreeState=clean"));
            }
        }
        flags.join(" ")
    }
}

/// Builds every part that the cache doesn't hold yet.
pub fn build_missing() -> Result<()> {
    let mut missing = Vec::new();
    for part in all() {
        if !part.is_built()? {
            missing.push(part);
        }
    }
    if missing.is_empty() {
        Step::start("programs").done("all in the cache");
        return Ok(());
    }
    missing.into_iter().try_for_each(build)
}

/// Builds one part, unless the cache holds it.
pub fn build_if_missing(part: &Part) -> Result<()> {
    if part.is_built()? {
        return Ok(());
    }
    let _lock = build_lock()?;
    // Whoever held the lock before may have built it.
    if part.is_built()? { Ok(()) } else { build(part) }
}

/// Held by whoever puts something into the cache that others may want at the same time.
pub fn build_lock() -> Result<File> {
    let file = File::create(paths::BUILD_LOCK).with_context(|| format!("opening {}", paths::BUILD_LOCK))?;
    file.lock().with_context(|| format!("locking {}", paths::BUILD_LOCK))?;
    Ok(file)
}

fn build(part: &Part) -> Result<()> {
    if !command::exists("go") {
        bail!("Go is not installed (there is no `go` on the PATH), and the lab builds Kubernetes and etcd with it.");
    }
    let step = Step::start(format!("build {} {}", part.name, part.version));
    step.progress(&format!("takes about {}, once", part.about));
    let target = part.bin()?;
    let work = target.with_extension(format!("building-{}", std::process::id()));
    let module = work.join("module");
    let bin = work.join("bin");
    std::fs::create_dir_all(&module).with_context(|| format!("creating {}", module.display()))?;
    std::fs::write(module.join("go.mod"), part.go_mod)?;
    std::fs::write(module.join("go.sum"), part.go_sum)?;
    for (file, text) in part.sources {
        std::fs::write(module.join(file), text)?;
    }

    let wanted = if part.sources.is_empty() { "tool" } else { "." };
    let packages = go(&module, &bin).args(["list", "-deps", wanted]).output().context("listing Go packages")?;
    let total = packages.stdout.iter().filter(|byte| **byte == b'\n').count();
    let mut install = go(&module, &bin);
    install.args(["install", "-v", "-trimpath", "-ldflags", &part.ldflags(), wanted]);
    follow(install, &step, total).with_context(|| format!("building {} {}", part.name, part.version))?;

    // etcd's module calls its program `server`; everybody else calls it etcd.
    if bin.join("server").exists() {
        std::fs::rename(bin.join("server"), bin.join("etcd"))?;
    }
    // Renamed at the very end: a folder that exists is whole.
    std::fs::rename(&bin, &target).with_context(|| format!("moving the programs to {}", target.display()))?;
    std::fs::remove_dir_all(&work)?;
    step.done("built");
    Ok(())
}

fn go(module: &Path, bin: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(module).env("CGO_ENABLED", "0").env("GOBIN", bin).env_remove("GOFLAGS");
    command.stdin(Stdio::null());
    command
}

/// Follows a `go install -v`, which names each package as it compiles it, and says now and then how far it is.
fn follow(mut install: Command, step: &Step, total: usize) -> Result<()> {
    let mut child = install.stderr(Stdio::piped()).spawn().context("starting go")?;
    let output = child.stderr.take().context("go has no stderr")?;
    let (mut compiled, mut last_said, mut tail) = (0, Instant::now(), Vec::new());
    for line in BufReader::new(output).lines() {
        let line = line.context("reading what go says")?;
        if line.starts_with("go: downloading") {
            continue;
        }
        compiled += 1;
        tail.push(line);
        if tail.len() > 15 {
            tail.remove(0);
        }
        if last_said.elapsed() > Duration::from_secs(15) {
            step.progress(&format!("{compiled} of {total} packages"));
            last_said = Instant::now();
        }
    }
    let status = child.wait().context("waiting for go")?;
    if !status.success() {
        bail!("go failed ({status}):\n{}", tail.join("\n"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_pinned_to_the_version_it_claims() {
        for part in all().chain([&CLIENT, &VERSITYGW, &FAKE_GCS_SERVER]) {
            let module = match part.name {
                "client" => "go.etcd.io/etcd/client/v3",
                "kubernetes" => "k8s.io/kubernetes",
                "coredns" => "github.com/coredns/coredns",
                "fake-gcs-server" => "github.com/fsouza/fake-gcs-server",
                "versitygw" => "github.com/versity/versitygw",
                _ => "go.etcd.io/etcd/server/v3",
            };
            let pinned = format!("{module} v{}", part.version);
            assert!(part.go_mod.contains(&pinned), "{} {}: no `{pinned}` in go.mod", part.name, part.version);
            assert!(part.go_sum.contains(&pinned), "{} {}: no `{pinned}` in go.sum", part.name, part.version);
        }
    }

    #[test]
    fn cache_key_of_a_part_follows_its_version() {
        let keys: std::collections::BTreeSet<String> = all().map(Part::key).collect();
        assert_eq!(keys.len(), all().count());
    }

    #[test]
    fn kubernetes_is_built_with_its_version() {
        assert!(KUBERNETES.ldflags().contains("gitVersion=v1.35.4"));
        assert!(KUBERNETES.ldflags().contains("gitMinor=35"));
        assert_eq!(COREDNS.ldflags(), "-s -w");
    }
}
