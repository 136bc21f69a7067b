//! Mounts of the lab: finding and removing them. Containers, volumes and namespaces all leave some behind when their
//! processes are killed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command;

/// Everything that is mounted at or below a folder, the deepest first.
pub fn below(folder: &Path) -> Result<Vec<PathBuf>> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").context("reading the mount table")?;
    let mut found: Vec<PathBuf> =
        table.lines().filter_map(mount_point).filter(|point| point.starts_with(folder)).collect();
    // Later lines are mounted on top of earlier ones, so the reverse order is a safe one.
    found.reverse();
    found.sort_by_key(|point| std::cmp::Reverse(point.components().count()));
    Ok(found)
}

pub fn is_mounted(path: &Path) -> Result<bool> {
    Ok(below(path)?.iter().any(|point| point == path))
}

pub fn unmount(point: &Path) -> Result<()> {
    // Lazily: a process that was just killed may hold on for a moment, and nobody else uses these.
    command::run("umount", [Path::new("--lazy"), Path::new("--no-canonicalize"), point])
        .map(drop)
        .with_context(|| format!("unmounting {}", point.display()))
}

/// Unmounts everything at or below a folder.
pub fn sweep(folder: &Path) -> Result<()> {
    for point in below(folder)? {
        // Unmounting a shared mount also removes its copies, which were on the list too.
        if is_mounted(&point)? {
            unmount(&point)?;
        }
    }
    Ok(())
}

/// The fifth field of a line in mountinfo, with its escapes (\040 for a space) resolved.
fn mount_point(line: &str) -> Option<PathBuf> {
    let field = line.split(' ').nth(4)?;
    let mut text = String::new();
    let mut rest = field;
    while let Some(at) = rest.find('\\') {
        text += &rest[..at];
        let code = rest.get(at + 1..at + 4)?;
        text.push(u8::from_str_radix(code, 8).ok()? as char);
        rest = &rest[at + 4..];
    }
    Some(PathBuf::from(text + rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_with_their_escapes() {
        let line = r"36 35 98:0 /mnt1 /mnt\0402/a rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        assert_eq!(mount_point(line), Some(PathBuf::from("/mnt 2/a")));
        assert_eq!(mount_point("too short"), None);
    }

    #[test]
    fn root_is_a_mount_and_missing_folder_is_none() {
        assert!(is_mounted(Path::new("/")).unwrap());
        assert!(below(Path::new("/no/such/folder")).unwrap().is_empty());
    }
}
