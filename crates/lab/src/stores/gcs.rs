//! The store that speaks Google's protocol: a program of ours around the library of fake-gcs-server (parts/fake-gcs-server).

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Credentials, Store, files};
use crate::parts;
use crate::process::Daemon;

pub(super) fn build_if_missing() -> Result<()> {
    parts::build_if_missing(&parts::FAKE_GCS_SERVER)
}

pub(super) fn launch(daemon: &Daemon) -> Result<()> {
    std::fs::create_dir_all(buckets()).with_context(|| format!("creating {}", buckets().display()))?;
    let options = [Store::Gcs.address(), Store::Gcs.folder().display().to_string()];
    daemon.start_once(&parts::FAKE_GCS_SERVER.bin()?.join("fake-gcs-server"), options)
}

/// The store makes its key itself when it starts for the first time.
pub(super) fn credentials() -> Result<Credentials> {
    let path = Store::Gcs.folder().join("service-account.json");
    let service_account = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    Ok(Credentials::Gcs { service_account })
}

pub(super) fn buckets() -> PathBuf {
    Store::Gcs.folder().join("buckets")
}

/// Each upload has a folder with a file that tells what it is to become. One without it is about to go.
pub(super) fn unfinished_uploads(bucket: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for upload in files::entries_of(&Store::Gcs.folder().join("uploads"))? {
        let path = upload.join("target");
        let Some(text) = files::text_of(&path)? else { continue };
        let target: serde_json::Value =
            serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
        if target["bucket"] == bucket {
            found.push(target["object"].as_str().unwrap_or_default().to_owned());
        }
    }
    found.sort();
    Ok(found)
}
