//! Reads a backup from one end to the other.

use std::env;
use std::io::{self, Write};
use std::time::Instant;

use etcd_operator_protocol::manifest::Manifest;
use etcd_operator_protocol::report::{Done, Failure, SnapshotFile};
use etcd_operator_protocol::task::{AGE_IDENTITY, Find};
use etcd_operator_store::destination::Destination;
use etcd_operator_store::download::download;
use tracing::info;

pub async fn check(task: &Find) -> Result<Done, Failure> {
    let from = Destination::open(&task.from)?;
    let manifest = from.read_manifest().await?;
    let (done, _) = read(task, &from, manifest, io::sink()).await?;
    Ok(done)
}

/// Writes the snapshot as etcdutl reads it to `into`, and fails if it is not what it should be: what was written must not
/// be used then.
pub async fn read<W: Write + Send + 'static>(
    task: &Find,
    from: &Destination,
    manifest: Option<Manifest>,
    into: W,
) -> Result<(Done, W), Failure> {
    let identity = env::var(AGE_IDENTITY).ok().filter(|text| !text.is_empty());
    info!(url = from.url(), manifest = manifest.is_some(), "reading the backup");
    let begin = Instant::now();
    let (decoded, into) = download(from, identity.as_deref(), into).await?;
    decoded.check(manifest.as_ref(), task)?;
    let (object_size, snapshot_size) = (decoded.object.size, decoded.snapshot.size);
    info!(object_size, snapshot_size, seconds = begin.elapsed().as_secs_f32(), "the backup is complete");
    let found = SnapshotFile { snapshot_size, snapshot_sha256: decoded.snapshot.sha256 };
    let found = manifest.is_none().then_some(found);
    Ok((Done { manifest, found, ..Done::default() }, into))
}
