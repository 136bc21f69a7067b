//! What a store holds, where its buckets are folders and its objects are files in them.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

pub fn create_bucket(buckets: &Path, name: &str) -> Result<()> {
    let folder = buckets.join(name);
    std::fs::create_dir_all(&folder).with_context(|| format!("making the bucket {}", folder.display()))
}

pub fn objects(buckets: &Path, bucket: &str) -> Result<Vec<(String, u64)>> {
    let folder = bucket_folder(buckets, bucket)?;
    let mut found = Vec::new();
    let mut unread = vec![folder.clone()];
    while let Some(next) = unread.pop() {
        for path in entries_of(&next)? {
            let name = path.strip_prefix(&folder)?.to_string_lossy().into_owned();
            match path.metadata() {
                Ok(file) if file.is_file() => found.push((name, file.len())),
                // A folder with such a name at the top is the store's own.
                Ok(_) if !name.starts_with('.') => unread.push(path),
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("looking at {}", path.display()));
                }
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

/// What is in a folder. In none that isn't there: the store may have removed it a moment ago, or never have made it.
pub fn entries_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("reading {}", folder.display()))?,
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    paths.collect::<std::io::Result<_>>().with_context(|| format!("reading {}", folder.display()))
}

/// The text of a file, if it is there.
pub fn text_of(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        text => text.map(Some).with_context(|| format!("reading {}", path.display())),
    }
}

pub fn read(buckets: &Path, bucket: &str, object: &str) -> Result<Vec<u8>> {
    let path = bucket_folder(buckets, bucket)?.join(object);
    std::fs::read(&path).with_context(|| format!("reading {}", path.display()))
}

pub fn corrupt_byte(buckets: &Path, bucket: &str, object: &str, offset: u64) -> Result<()> {
    let path = bucket_folder(buckets, bucket)?.join(object);
    let file = File::options().read(true).write(true).open(&path);
    let file = file.with_context(|| format!("opening {}", path.display()))?;
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).with_context(|| format!("reading byte {offset} of {}", path.display()))?;
    file.write_all_at(&[byte[0] ^ 1], offset).with_context(|| format!("writing byte {offset} of {}", path.display()))
}

fn bucket_folder(buckets: &Path, bucket: &str) -> Result<PathBuf> {
    let folder = buckets.join(bucket);
    if !folder.is_dir() {
        bail!("There is no bucket `{bucket}` in {}.", buckets.display());
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with the bucket `backups`, removed when the test ends.
    struct Buckets(PathBuf);

    impl Buckets {
        fn of(test: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("lab-stores-{test}-{}", std::process::id()));
            create_bucket(&folder, "backups").unwrap();
            Buckets(folder)
        }

        fn put(&self, object: &str, content: &[u8]) {
            let path = self.0.join("backups").join(object);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }

    impl Drop for Buckets {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn objects_are_listed_by_full_name_without_upload_parts() {
        let buckets = Buckets::of("list");
        buckets.put("shop/b.db", b"12345");
        buckets.put("shop/a.db", b"123");
        buckets.put("top", b"");
        buckets.put(".sgwtmp/multipart/abc/1", b"a part");
        let names = [("shop/a.db".to_owned(), 3), ("shop/b.db".to_owned(), 5), ("top".to_owned(), 0)];
        assert_eq!(objects(&buckets.0, "backups").unwrap(), names);
    }

    #[test]
    fn corruption_changes_exactly_one_byte() {
        let buckets = Buckets::of("corrupt");
        buckets.put("a.db", b"abc");
        corrupt_byte(&buckets.0, "backups", "a.db", 1).unwrap();
        assert_eq!(read(&buckets.0, "backups", "a.db").unwrap(), b"acc");
        let error = corrupt_byte(&buckets.0, "backups", "a.db", 3).unwrap_err().to_string();
        assert!(error.contains("byte 3"), "{error}");
        assert_eq!(read(&buckets.0, "backups", "a.db").unwrap(), b"acc");
    }

    #[test]
    fn missing_bucket_is_an_error() {
        let buckets = Buckets::of("missing");
        assert!(objects(&buckets.0, "backups").unwrap().is_empty());
        let error = objects(&buckets.0, "others").unwrap_err().to_string();
        assert!(error.contains("no bucket `others`"), "{error}");
    }
}
