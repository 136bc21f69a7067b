//! How much memory and time it takes to encode and send a database, and to read it again: `cargo run --release -p
//! etcd-operator-store --example memory -- [MiB]`. The store takes 100 MB/s and forgets everything at once; what is read is
//! a file.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use age::secrecy::ExposeSecret;
use async_trait::async_trait;
use bytes::Bytes;
use etcd_operator_protocol::manifest::Origin;
use etcd_operator_protocol::task::Location;
use etcd_operator_store::destination::Destination;
use etcd_operator_store::download::download;
use etcd_operator_store::upload::{Encoding, Upload};
use object_store::memory::InMemory;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{PutPayload, PutResult, Result};
use sha2::{Digest, Sha256};

const PIECE: usize = 32 * 1024;
const BYTES_PER_SECOND: f64 = 100e6;

struct Nowhere;

#[async_trait]
impl MultipartStore for Nowhere {
    async fn create_multipart(&self, _: &Path) -> Result<String> {
        Ok(String::new())
    }

    async fn put_part(&self, _: &Path, _: &String, _: usize, data: PutPayload) -> Result<PartId> {
        tokio::time::sleep(Duration::from_secs_f64(data.content_length() as f64 / BYTES_PER_SECOND)).await;
        Ok(PartId { content_id: String::new() })
    }

    async fn complete_multipart(&self, _: &Path, _: &String, _: Vec<PartId>) -> Result<PutResult> {
        Ok(PutResult { e_tag: None, version: None, extensions: Default::default() })
    }

    async fn abort_multipart(&self, _: &Path, _: &String) -> Result<()> {
        Ok(())
    }
}

/// A database of half random and half repeated bytes, piece by piece, and its hash at the end.
struct Pieces {
    left: usize,
    state: u64,
    hasher: Option<Sha256>,
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.left == 0 {
            return self.hasher.take().map(|hasher| Bytes::copy_from_slice(&hasher.finalize()));
        }
        let mut piece = Vec::with_capacity(PIECE);
        while piece.len() < PIECE {
            self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            piece.extend_from_slice(&self.state.rotate_left(32).to_le_bytes());
            piece.extend_from_slice(b"the same");
        }
        self.hasher.as_mut()?.update(&piece);
        self.left -= PIECE;
        Some(piece.into())
    }
}

fn peak_memory() -> std::result::Result<String, io::Error> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    Ok(status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("unknown").trim().to_owned())
}

/// In seconds, of all threads. On a busy machine it says more than the clock.
fn processor_time() -> std::result::Result<f64, io::Error> {
    let all = std::fs::read_to_string("/proc/self/stat")?;
    let fields = all.rsplit(')').next().unwrap_or_default().split_whitespace();
    Ok(fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::result::Result<(), Box<dyn Error>> {
    let mib: usize = std::env::args().nth(1).map_or(Ok(1024), |argument| argument.parse())?;
    let failed = |failure: etcd_operator_protocol::report::Failure| failure.message;
    let identity = age::x25519::Identity::generate();
    let secret = identity.to_string().expose_secret().to_owned();
    let directory = tempfile::tempdir()?;
    for (compress, encrypt) in [(false, false), (true, false), (false, true), (true, true)] {
        let encoding =
            Encoding { compress, recipients: encrypt.then(|| identity.to_public().to_string()).into_iter().collect() };
        let nowhere = Location { url: "s3://nowhere/1.db".into(), ..Location::default() };
        let file = Location { url: format!("file://{}/1.db", directory.path().display()), ..Location::default() };
        let to_nowhere =
            Destination::in_store(Arc::new(InMemory::new()), Arc::new(Nowhere), &nowhere).map_err(failed)?;
        let to_file = Destination::open(&file).map_err(failed)?;
        for (name, to) in [("nowhere", &to_nowhere), ("file", &to_file)] {
            let began = (Instant::now(), processor_time()?);
            let mut upload = Upload::begin(to, &Origin::default(), &encoding).await.map_err(failed)?;
            for piece in (Pieces { left: mib << 20, state: 1, hasher: Some(Sha256::new()) }) {
                upload.write(piece).await.map_err(failed)?;
            }
            let encoded = upload.finish().await.map_err(failed)?;
            say(&format!("to {name}, {} MiB encoded", encoded.object.size >> 20), &encoding, mib, began)?;
        }
        let began = (Instant::now(), processor_time()?);
        download(&to_file, Some(&secret), io::sink()).await.map_err(failed)?;
        say("from file", &encoding, mib, began)?;
    }
    Ok(())
}

fn say(what: &str, encoding: &Encoding, mib: usize, began: (Instant, f64)) -> io::Result<()> {
    let megabytes = (mib << 20) as f64 / 1e6;
    let (speed, of_a_core) = (megabytes / began.0.elapsed().as_secs_f64(), megabytes / (processor_time()? - began.1));
    let (compress, encrypt) = (encoding.compress, !encoding.recipients.is_empty());
    let memory = peak_memory()?;
    println!(
        "compress {compress:5} encrypt {encrypt:5}: {speed:4.0} MB/s, {of_a_core:4.0} MB per second of a processor, \
         memory at most {memory} ({what})"
    );
    Ok(())
}
