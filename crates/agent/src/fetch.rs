//! Brings a backup into a file.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use etcd_operator_protocol::manifest::Manifest;
use etcd_operator_protocol::report::{Done, Failure, Reason};
use etcd_operator_protocol::task::Fetch;
use etcd_operator_store::destination::Destination;
use tracing::info;

use crate::check;

pub async fn fetch(task: &Fetch) -> Result<Done, Failure> {
    let from = Destination::open(&task.from.from)?;
    let manifest = from.read_manifest().await?;
    if let (Some(manifest), Some(version)) = (&manifest, &task.for_version) {
        fits(manifest, version)?;
    }
    let file = Path::new(&task.file);
    let part = with_suffix(file, ".part");
    let begun = File::create(&part).map_err(|e| local("creating", &part, &e))?;
    let outcome = check::read(&task.from, &from, manifest, begun).await;
    let outcome = outcome.and_then(|(done, written)| keep(&written, &part, file).map(|()| done));
    if outcome.is_err() {
        // It is of no use to anybody, and may be what fills the volume. That the backup could not be had is what counts.
        let _ = fs::remove_file(&part);
    }
    outcome
}

/// Gives it its name, once it is on the disk.
fn keep(written: &File, part: &Path, file: &Path) -> Result<(), Failure> {
    written.sync_all().map_err(|e| local("writing", part, &e))?;
    fs::rename(part, file).map_err(|e| local("renaming", part, &e))?;
    let directory = file.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory).and_then(|d| d.sync_all()).map_err(|e| local("writing", directory, &e))?;
    info!(file = %file.display(), "the backup is there");
    Ok(())
}

/// May an etcd of this version be restored from this backup? etcd promises to read what its own minor version wrote.
fn fits(manifest: &Manifest, version: &str) -> Result<(), Failure> {
    let minor = |version: &str| version.split('.').take(2).map(str::to_owned).collect::<Vec<_>>();
    if minor(&manifest.etcd_version) == minor(version) {
        return Ok(());
    }
    let message = format!(
        "the backup is of etcd {}, and can't be restored with etcd {version}: the first two numbers must be the same",
        manifest.etcd_version
    );
    Err(Failure { reason: Reason::WrongVersion, message })
}

fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(suffix);
    name.into()
}

fn local(doing: &str, file: &Path, error: &io::Error) -> Failure {
    let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let reason = if full { Reason::NoSpace } else { Reason::StoreFailed };
    Failure { reason, message: format!("{doing} {}: {error}", file.display()) }
}
