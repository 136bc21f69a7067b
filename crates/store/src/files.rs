//! What is different about files on a volume.

use std::path::PathBuf;
use std::{fs, io};

use etcd_operator_protocol::report::{Failure, Reason};
use object_store::path::Path;

use crate::failure::of_io;

/// All files in a directory and the directories in it. Directories that must not be read are passed over: a volume has a
/// `lost+found`, and the store's own client gives up there.
pub async fn list(directory: &Path) -> Result<Vec<Path>, Failure> {
    let root = on_disk(directory);
    blocking(move || {
        let mut found = Vec::new();
        let mut open = vec![root];
        while let Some(directory) = open.pop() {
            let doing = || format!("listing {}", directory.display());
            let entries = match fs::read_dir(&directory) {
                Err(e) if matches!(e.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound) => continue,
                entries => entries.map_err(|e| of_io(&doing(), &e))?,
            };
            for entry in entries {
                let entry = entry.map_err(|e| of_io(&doing(), &e))?;
                let kind = entry.file_type().map_err(|e| of_io(&doing(), &e))?;
                if kind.is_dir() {
                    open.push(entry.path());
                } else if let Ok(path) = Path::from_absolute_path(entry.path()) {
                    // What has a name that the store's client cannot say is none of ours.
                    found.push(path);
                }
            }
        }
        Ok(found)
    })
    .await
}

/// Removes what killed pods have left of an object: it is written under a name with a number behind it until it is complete.
pub async fn remove_leftovers(object: &Path) -> Result<(), Failure> {
    let path = on_disk(object);
    blocking(move || {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
            return Ok(());
        };
        let entries = match fs::read_dir(directory) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(|e| of_io(&format!("listing {}", directory.display()), &e))?,
        };
        for entry in entries.flatten() {
            if entry.file_name().to_str().is_some_and(|entry| is_leftover(entry, name)) {
                let doing = || format!("deleting {}", entry.path().display());
                fs::remove_file(entry.path()).map_err(|e| of_io(&doing(), &e))?;
            }
        }
        Ok(())
    })
    .await
}

fn is_leftover(file: &str, object: &str) -> bool {
    let number = file.strip_prefix(object).and_then(|rest| rest.strip_prefix('#'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

pub fn on_disk(path: &Path) -> PathBuf {
    PathBuf::from(format!("/{path}"))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Result<T, Failure> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or_else(|e| Err(Failure { reason: Reason::StoreFailed, message: format!("working with files: {e}") }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_temporary_files_of_the_store_are_leftovers() {
        for (file, leftover) in [
            ("a.db#1", true),
            ("a.db#23", true),
            ("a.db", false),
            ("a.db#", false),
            ("a.db#1x", false),
            ("a.db.manifest.json", false),
            ("aa.db#1", false),
        ] {
            assert_eq!(is_leftover(file, "a.db"), leftover, "{file}");
        }
    }

    #[tokio::test]
    async fn files_in_nested_directories_are_listed() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("a/b")).unwrap();
        fs::create_dir(directory.path().join("lost+found")).unwrap();
        fs::set_permissions(directory.path().join("lost+found"), fs::Permissions::from_mode(0o000)).unwrap();
        for name in ["1", "a/2", "a/b/3", "a/b/4#1"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let root = Path::from_absolute_path(directory.path()).unwrap();
        let mut found: Vec<_> = list(&root).await.unwrap().iter().map(|path| path.to_string()).collect();
        found.sort_unstable();
        assert_eq!(found, ["1", "a/2", "a/b/3", "a/b/4#1"].map(|name| format!("{root}/{name}")));
        assert_eq!(list(&root.join("nowhere")).await.unwrap(), []);
    }
}
