//! The S3 store: versitygw, whose buckets are plain folders.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Credentials, DOMAIN, Store, files};
use crate::process::Daemon;
use crate::{command, mounts, parts};

const ACCESS_KEY: &str = "lab-access-key";
const SECRET_KEY: &str = "lab-secret-key";

/// Where versitygw keeps the parts of unfinished uploads, below a bucket: a folder for each object, and in it one for each upload.
const UPLOADS: &str = ".sgwtmp/multipart";

/// Makes a bucket that is full once it holds so many bytes, unfinished uploads included, or gives it another size: a file system
/// of its own in memory.
pub fn create_small_bucket(name: &str, size: u64) -> Result<()> {
    files::create_bucket(&buckets(), name)?;
    let folder = buckets().join(name);
    let again = if mounts::is_mounted(&folder)? { "remount," } else { "" };
    let options = format!("{again}size={size}");
    command::run(
        "mount",
        [Path::new("-t"), Path::new("tmpfs"), Path::new("-o"), Path::new(&options), Path::new("tmpfs"), &folder],
    )
    .map(drop)
    .with_context(|| format!("making the small bucket {name}"))
}

pub(super) fn build_if_missing() -> Result<()> {
    parts::build_if_missing(&parts::VERSITYGW)
}

pub(super) fn launch(daemon: &Daemon) -> Result<()> {
    let folder = Store::S3.folder();
    for subfolder in [buckets(), facts(), folder.join("users")] {
        std::fs::create_dir_all(&subfolder).with_context(|| format!("creating {}", subfolder.display()))?;
    }
    let text = |path: PathBuf| path.display().to_string();
    let options = [
        // With a folder for users, though there are none: without it a wrong access key is answered as no store would.
        ["--iam-dir", &text(folder.join("users"))],
        ["--access", ACCESS_KEY],
        ["--secret", SECRET_KEY],
        ["--port", &Store::S3.address()],
        ["--virtual-domain", &format!("{}.{DOMAIN}", Store::S3.name())],
    ];
    // What it must know of an object is in files of their own: not every file system, memory above all, has extended attributes.
    let backend = ["posix", "--sidecar", &text(facts()), &text(buckets())];
    daemon.start_once(&parts::VERSITYGW.bin()?.join("versitygw"), options.into_iter().flatten().chain(backend))
}

pub(super) fn credentials() -> Credentials {
    Credentials::S3 { access_key: ACCESS_KEY.to_owned(), secret_key: SECRET_KEY.to_owned() }
}

pub(super) fn buckets() -> PathBuf {
    Store::S3.folder().join("buckets")
}

/// What versitygw knows of buckets and objects beyond their bytes.
fn facts() -> PathBuf {
    Store::S3.folder().join("facts")
}

pub(super) fn unfinished_uploads(bucket: &str) -> Result<Vec<String>> {
    uploads_in(&buckets().join(bucket).join(UPLOADS), &facts().join(bucket).join(UPLOADS))
}

fn uploads_in(uploads: &Path, facts: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for object in files::entries_of(uploads)? {
        // The folder's name is a hash of the object's. Without the file the upload has hardly begun or is over.
        let file = facts.join(object.file_name().unwrap_or_default()).join("meta/objname");
        let name = files::text_of(&file)?;
        let folders = files::entries_of(&object)?.into_iter().filter(|path| path.is_dir());
        found.extend(folders.filter_map(|_| name.clone()));
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unfinished_upload_of_an_object_is_listed() {
        let folder = std::env::temp_dir().join(format!("lab-uploads-{}", std::process::id()));
        let (uploads, facts) = (folder.join("uploads"), folder.join("facts"));
        assert!(uploads_in(&uploads, &facts).unwrap().is_empty());
        for upload in ["5d41/first", "5d41/second"] {
            std::fs::create_dir_all(uploads.join(upload)).unwrap();
        }
        // One that was put together leaves the object's folder for a moment.
        std::fs::create_dir_all(uploads.join("7b1c")).unwrap();
        std::fs::create_dir_all(facts.join("5d41/meta")).unwrap();
        std::fs::write(facts.join("5d41/meta/objname"), "shop/a.db").unwrap();
        let found = uploads_in(&uploads, &facts).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, ["shop/a.db", "shop/a.db"]);
    }
}
