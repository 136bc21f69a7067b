//! Control groups. Every process of the lab is in the group `etcd-lab`, each node's in a group of its own below it, so
//! that a node's processes, containers included, can be found and killed whatever became of whoever started them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

const MOUNT: &str = "/sys/fs/cgroup";
/// The lab's group, as a path below the root of every hierarchy.
pub const LAB: &str = "etcd-lab";

/// The hierarchies a group must exist in: one with version 2, one for each controller with version 1.
fn hierarchies() -> Result<Vec<PathBuf>> {
    let mount = Path::new(MOUNT);
    if mount.join("cgroup.controllers").exists() {
        return Ok(vec![mount.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(mount).with_context(|| format!("reading {MOUNT}"))? {
        let path = entry?.path();
        // `tasks` is there only with version 1; a hybrid machine has the version 2 hierarchy beside the others. Links
        // are second names of a hierarchy (cpu → cpu,cpuacct).
        if path.join("tasks").exists() && !path.is_symlink() {
            found.push(path);
        }
    }
    if found.is_empty() {
        bail!("No control groups are mounted at {MOUNT}, and Kubernetes needs them.");
    }
    Ok(found)
}

/// The hierarchy that tells which processes belong to a group.
fn tracking(group: &str) -> PathBuf {
    let one_for_all = Path::new(MOUNT).join("cgroup.controllers").exists();
    Path::new(MOUNT).join(if one_for_all { "" } else { "pids" }).join(group)
}

/// Creates a group, its parents included, ready to hold processes and further groups.
pub fn create(group: &str) -> Result<()> {
    for hierarchy in hierarchies()? {
        let mut path = hierarchy.clone();
        for part in Path::new(group).components() {
            pass_on_controllers(&path)?;
            path = path.join(part);
            if !path.is_dir() {
                std::fs::create_dir(&path).with_context(|| format!("creating the control group {}", path.display()))?;
            }
            // A cpuset starts empty, and no process may enter it then.
            for file in ["cpuset.cpus", "cpuset.mems"] {
                let (own, parent) = (path.join(file), path.with_file_name(file));
                if hierarchy.ends_with("cpuset") {
                    let value = std::fs::read_to_string(&parent)?;
                    std::fs::write(&own, value.trim()).with_context(|| format!("writing {}", own.display()))?;
                }
            }
        }
    }
    Ok(())
}

/// With version 2 a group has only the controllers that its parent passes on.
fn pass_on_controllers(group: &Path) -> Result<()> {
    let Ok(controllers) = std::fs::read_to_string(group.join("cgroup.controllers")) else {
        return Ok(());
    };
    let all: Vec<String> = controllers.split_whitespace().map(|controller| format!("+{controller}")).collect();
    let file = group.join("cgroup.subtree_control");
    std::fs::write(&file, all.join(" ")).with_context(|| format!("writing {}", file.display()))
}

/// The file to which a process writes its ID to enter the group.
pub fn entrance(group: &str) -> PathBuf {
    tracking(group).join("cgroup.procs")
}

/// The processes in a group and in all groups below it.
pub fn processes(group: &str) -> Result<Vec<i32>> {
    let mut found = Vec::new();
    for path in with_descendants(&tracking(group)) {
        // A group may vanish while we look; then nothing is in it.
        let ids = std::fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
        found.extend(ids.lines().filter_map(|id| id.parse::<i32>().ok()));
    }
    Ok(found)
}

/// The group of a container, found by its ID below another group.
pub fn of_container(group: &str, container: &str) -> Option<String> {
    let path = with_descendants(&tracking(group)).into_iter().find(|path| path.ends_with(container))?;
    Some(path.strip_prefix(tracking("")).ok()?.display().to_string())
}

/// Kills every process in a group at once, as a power cut does, and removes the group. Returns whom it killed.
pub fn destroy(group: &str) -> Result<BTreeSet<i32>> {
    let mut killed = BTreeSet::new();
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        // Again and again until none is left: one may have started another just before it died.
        let processes = processes(group)?;
        if processes.is_empty() {
            break;
        }
        if Instant::now() > deadline {
            bail!("these processes in the control group {group} don't die: {processes:?}");
        }
        signal(&processes, Signal::KILL)?;
        killed.extend(processes);
        std::thread::sleep(Duration::from_millis(20));
    }
    for hierarchy in hierarchies()? {
        remove(&hierarchy.join(group), deadline)?;
    }
    Ok(killed)
}

/// Waits until init has collected processes that were killed, so that `ps` shows them no more. Some are slow at it.
pub fn wait_until_collected(processes: &BTreeSet<i32>) {
    let deadline = Instant::now() + Duration::from_secs(10);
    let is_there = |id: &i32| Path::new("/proc").join(id.to_string()).exists();
    while processes.iter().any(is_there) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Sends a signal to processes. That some are gone already is no error.
pub fn signal(processes: &[i32], signal: Signal) -> Result<()> {
    for process in processes.iter().filter_map(|id| Pid::from_raw(*id)) {
        match kill_process(process, signal) {
            Err(error) if error != rustix::io::Errno::SRCH => {
                return Err(error).with_context(|| format!("sending {signal:?} to process {process:?}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Removes a group's folder and those below it. The kernel needs a moment after the last process is gone.
fn remove(path: &Path, deadline: Instant) -> Result<()> {
    for folder in with_descendants(path).into_iter().rev() {
        while let Err(error) = std::fs::remove_dir(&folder) {
            if error.kind() == std::io::ErrorKind::NotFound {
                break;
            }
            if Instant::now() > deadline {
                return Err(error).with_context(|| format!("removing the control group {}", folder.display()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}

/// A folder and all folders below it, parents before children. None if it doesn't exist.
fn with_descendants(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return Vec::new();
    }
    let mut found = vec![path.to_owned()];
    let mut next = 0;
    while next < found.len() {
        let entries = std::fs::read_dir(&found[next]).into_iter().flatten().flatten();
        found.extend(entries.map(|entry| entry.path()).filter(|path| path.is_dir()));
        next += 1;
    }
    found
}
