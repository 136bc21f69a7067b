//! What must be true of a machine before the lab touches it. Each problem is one sentence.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::{network, parts, paths};

const GIB: u64 = 1 << 30;

pub fn check() -> Result<()> {
    check_root()?;
    network_tools_are_there_or_will_be()?;
    check_disk()
}

pub fn check_root() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("The lab makes network namespaces, mounts and control groups: run it as root.");
    }
    Ok(())
}

/// Without `ip` nothing of the lab can be there, and the address check waits until it is installed.
fn network_tools_are_there_or_will_be() -> Result<()> {
    if crate::command::exists("ip") { network::check_addresses_are_free() } else { Ok(()) }
}

fn check_disk() -> Result<()> {
    let cache = paths::cache()?;
    let all_built = parts::all().all(|part| part.bin().is_ok_and(|bin| bin.is_dir()));
    // Kubernetes and etcd from source take this much at the peak, most of it Go's own caches.
    let cache_needs = if all_built { GIB / 4 } else { 8 * GIB };
    for (folder, needs) in [(cache.as_path(), cache_needs), (Path::new(paths::DATA), 3 * GIB)] {
        if let Some(problem) = disk_problem(folder, free_space(folder)?, needs) {
            bail!(problem);
        }
    }
    Ok(())
}

fn disk_problem(folder: &Path, free: u64, needs: u64) -> Option<String> {
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / GIB as f64);
    (free < needs).then(|| {
        format!("The lab needs {} of free disk in {}, and there are only {}.", gib(needs), folder.display(), gib(free))
    })
}

/// The free space where a folder is, or will be.
fn free_space(folder: &Path) -> Result<u64> {
    let there = folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let stat =
        rustix::fs::statvfs(there).with_context(|| format!("asking for the free space of {}", there.display()))?;
    Ok(stat.f_bavail * stat.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_disk_space_is_reported_with_numbers() {
        let problem = disk_problem(Path::new("/cache"), 300 << 20, 8 * GIB).unwrap();
        assert_eq!(problem, "The lab needs 8.0 GiB of free disk in /cache, and there are only 0.3 GiB.");
        assert_eq!(disk_problem(Path::new("/cache"), 8 * GIB, 8 * GIB), None);
    }

    #[test]
    fn free_space_is_that_of_the_nearest_folder_that_exists() {
        assert!(free_space(Path::new("/no/such/folder")).unwrap() > 0);
    }
}
