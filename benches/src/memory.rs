//! How much memory a pod takes at most, as the kernel counts it when it decides whom to kill: by its control group, which
//! is on this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Where groups are, and what the files with the limit and with the peak are called: versions 2 and 1.
const HIERARCHIES: [(&str, &str, &str); 2] = [
    ("/sys/fs/cgroup/etcd-lab", "memory.max", "memory.peak"),
    ("/sys/fs/cgroup/memory/etcd-lab", "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
];

/// In bytes.
pub struct Memory {
    pub peak: u64,
    pub limit: u64,
}

/// A look at a pod for as long as it runs: its group goes with it.
pub struct Watch {
    enough: Arc<AtomicBool>,
    watching: JoinHandle<Option<Memory>>,
}

impl Watch {
    pub fn begin(uid: &str) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let (group, is_enough) = (format!("pod{uid}"), Arc::clone(&enough));
        let watching = thread::spawn(move || {
            let mut last = None;
            while !is_enough.load(Ordering::Relaxed) {
                last = HIERARCHIES.iter().find_map(|hierarchy| read(hierarchy, &group)).or(last);
                thread::sleep(Duration::from_millis(50));
            }
            last
        });
        Self { enough, watching }
    }

    pub fn end(self) -> Memory {
        self.enough.store(true, Ordering::Relaxed);
        self.watching.join().unwrap().expect("the pod's control group is found")
    }
}

fn read((root, limit, peak): &(&str, &str, &str), group: &str) -> Option<Memory> {
    let group = find(Path::new(root), group)?;
    let number = |file: &str| fs::read_to_string(group.join(file)).ok()?.trim().parse().ok();
    Some(Memory { peak: number(peak)?, limit: number(limit)? })
}

/// Finds a folder by its name.
fn find(below: &Path, name: &str) -> Option<PathBuf> {
    let folders = fs::read_dir(below).ok()?.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    folders.filter_map(|path| if path.ends_with(name) { Some(path) } else { find(&path, name) }).next()
}
