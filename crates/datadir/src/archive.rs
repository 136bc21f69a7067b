//! Moves a member's data aside, so that etcd starts as on an empty data dir and nothing is lost.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Renames `<data_dir>/member` to `<data_dir>/stale-<label>`, with a number behind it if that is taken, and says where
/// the data is now. The rename is atomic and on disk when this returns: after a crash the data is in one place or the
/// other. One caller at a time: nothing else may be writing to `data_dir`.
pub fn archive(data_dir: &Path, label: &str) -> io::Result<PathBuf> {
    if label.is_empty() || label.contains(['/', '\0']) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{label:?} cannot be part of a file name")));
    }
    let from = data_dir.join("member");
    let to = free_name(data_dir, label)?;
    let moved = fs::rename(&from, &to).and_then(|()| File::open(data_dir)?.sync_all());
    moved.map_err(|e| io::Error::new(e.kind(), format!("moving {} to {}: {e}", from.display(), to.display())))?;
    Ok(to)
}

fn free_name(data_dir: &Path, label: &str) -> io::Result<PathBuf> {
    let mut candidate = data_dir.join(format!("stale-{label}"));
    let mut number = 1u32;
    // Looked at first, because a rename would silently replace an empty directory.
    while is_taken(&candidate)? {
        number += 1;
        candidate = data_dir.join(format!("stale-{label}-{number}"));
    }
    Ok(candidate)
}

/// Also for a symbolic link that leads nowhere, and unlike `Path::exists` not "no" when it cannot be told.
fn is_taken(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(io::Error::new(e.kind(), format!("looking for {}: {e}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_member(data_dir: &Path, content: &str) {
        fs::create_dir_all(data_dir.join("member/wal")).unwrap();
        fs::write(data_dir.join("member/wal/x.wal"), content).unwrap();
    }

    #[test]
    fn earlier_archives_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        for (content, name) in [("a", "stale-gone"), ("b", "stale-gone-2"), ("c", "stale-gone-3")] {
            make_member(dir.path(), content);
            let to = archive(dir.path(), "gone").unwrap();
            assert_eq!(to, dir.path().join(name));
            assert_eq!(fs::read_to_string(to.join("wal/x.wal")).unwrap(), content);
            assert!(!dir.path().join("member").exists());
        }
    }

    #[test]
    fn archive_does_not_replace_an_empty_directory_or_a_dangling_link() {
        let dir = tempfile::tempdir().unwrap();
        make_member(dir.path(), "a");
        fs::create_dir(dir.path().join("stale-gone")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("stale-gone-2")).unwrap();
        assert_eq!(archive(dir.path(), "gone").unwrap(), dir.path().join("stale-gone-3"));
        assert!(dir.path().join("stale-gone").exists());
    }

    #[test]
    fn archive_without_data_or_with_a_bad_label_fails() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(archive(dir.path(), "gone").unwrap_err().kind(), io::ErrorKind::NotFound);
        make_member(dir.path(), "a");
        for label in ["", "../out", "a/b"] {
            assert_eq!(archive(dir.path(), label).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{label}");
        }
        assert!(dir.path().join("member").exists());
    }
}
