//! Reading a backup from one end to the other.

use std::fs::File;
use std::io::{self, Read, Write};

use bytes::{Buf, Bytes};
use etcd_operator_protocol::manifest::Manifest;
use etcd_operator_protocol::report::{Failure, Reason};
use etcd_operator_protocol::task::Find;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::address::Store;
pub use crate::decode::Decoded;
use crate::decode::{decode, read_identities};
use crate::destination::Destination;
use crate::failure::of_io;
use crate::files;
use crate::trailer::Fingerprint;

/// As much is asked for at once: so every request is short, and has all tries to itself.
const RANGE: u64 = 16 * 1024 * 1024;
/// Pieces that wait to be decoded: they are as large as the client reads them, some 100 KiB at most.
const WAITING: usize = 8;

/// Writes the snapshot that is in an object, which is opened with what is in `identity` if it is encrypted. What was
/// written may only be used if this succeeds.
pub async fn download<W: Write + Send + 'static>(
    from: &Destination,
    identity: Option<&str>,
    mut into: W,
) -> Result<(Decoded, W), Failure> {
    let identities = read_identities(identity.unwrap_or_default())?;
    let (object, url) = (from.object()?, from.url().to_owned());
    let (reading, decoding) = match from.address.store {
        Store::Files => {
            let path = files::on_disk(object);
            let decoding = spawn_blocking(move || {
                let file = File::open(path).map_err(|e| of_io(&format!("reading {url}"), &e))?;
                decode(&url, file, &identities, &mut into).map(|decoded| (decoded, into))
            });
            (Ok(()), decoding)
        }
        _ => {
            let (pieces, waiting) = mpsc::channel(WAITING);
            let decoding = spawn_blocking(move || {
                let pieces = Pieces { waiting, current: Bytes::new() };
                decode(&url, pieces, &identities, &mut into).map(|decoded| (decoded, into))
            });
            (read_all(from, object, pieces).await, decoding)
        }
    };
    let broken = |e| Failure { reason: Reason::StoreFailed, message: format!("reading {}: {e}", from.url()) };
    let decoded = decoding.await.map_err(broken)?;
    // If reading failed, what the other side says is only what became of that.
    reading.and(decoded)
}

/// Gives all of an object to who is at the other end, or as much as is wanted there.
async fn read_all(
    from: &Destination,
    object: &Path,
    pieces: mpsc::Sender<Result<Bytes, io::Error>>,
) -> Result<(), Failure> {
    let read = read_ranges(from, object, &pieces).await;
    if read.is_err() {
        // It must not look like the end of the object.
        let _ = pieces.send(Err(io::ErrorKind::UnexpectedEof.into())).await;
    }
    read.map_err(|e| from.failure("reading", object, &e))
}

async fn read_ranges(
    from: &Destination,
    object: &Path,
    pieces: &mpsc::Sender<Result<Bytes, io::Error>>,
) -> object_store::Result<()> {
    let mut done = 0;
    let mut whole: Option<ObjectMeta> = None;
    // How much there is shows with the first range.
    while whole.as_ref().is_none_or(|meta| done < meta.size) {
        let end = whole.as_ref().map_or(RANGE, |meta| meta.size.min(done + RANGE));
        let options = GetOptions {
            range: Some(GetRange::Bounded(done..end)),
            // All ranges must be of the same object.
            if_match: whole.as_ref().and_then(|meta| meta.e_tag.clone()),
            ..GetOptions::default()
        };
        let found = from.store.get_opts(object, options).await?;
        whole.get_or_insert_with(|| found.meta.clone());
        let mut stream = found.into_stream();
        while let Some(piece) = stream.try_next().await? {
            done += piece.len() as u64;
            if pieces.send(Ok(piece)).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The pieces as one stream, for a thread.
struct Pieces {
    waiting: mpsc::Receiver<Result<Bytes, io::Error>>,
    current: Bytes,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.waiting.blocking_recv() {
                Some(piece) => self.current = piece?,
                None => return Ok(0),
            }
        }
        let length = self.current.len().min(buffer.len());
        self.current.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}

impl Decoded {
    /// Whether it is what it should be.
    pub fn check(&self, manifest: Option<&Manifest>, find: &Find) -> Result<(), Failure> {
        if let Some(manifest) = manifest {
            let same = |what: &str, is: &Fingerprint, size: u64, sha256: &str| {
                let says = "its manifest says";
                if is.size != size {
                    return Err(mismatch(find, format!("the {what} has {} bytes, {says} {size}", is.size)));
                }
                same_hash(find, what, &is.sha256, says, sha256)
            };
            same("object", &self.object, manifest.object_size, &manifest.object_sha256)?;
            same("snapshot", &self.snapshot, manifest.snapshot_size, &manifest.snapshot_sha256)?;
        }
        match &find.sha256 {
            Some(wanted) => same_hash(find, "snapshot", &self.snapshot.sha256, "it should be", wanted),
            None => Ok(()),
        }
    }
}

fn same_hash(find: &Find, what: &str, is: &str, who_says: &str, wanted: &str) -> Result<(), Failure> {
    if is.eq_ignore_ascii_case(wanted.trim()) {
        return Ok(());
    }
    Err(mismatch(find, format!("the SHA-256 of the {what} is {is}, {who_says} {wanted}")))
}

fn mismatch(find: &Find, why: String) -> Failure {
    Failure {
        reason: Reason::HashMismatch,
        message: format!("{} is not the backup that is wanted: {why}", find.from.url),
    }
}
