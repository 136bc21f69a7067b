//! A store in memory that can be told to fail, and snapshots to put into it.
#![allow(dead_code, reason = "not every test uses everything")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use age::secrecy::ExposeSecret;
use async_trait::async_trait;
use bytes::Bytes;
use etcd_operator_protocol::manifest::{Manifest, Origin};
use etcd_operator_protocol::task::Location;
use etcd_operator_store::destination::Destination;
use etcd_operator_store::upload::{Encoded, Encoding, Upload};
use futures::TryStreamExt;
use jiff::Timestamp;
use object_store::memory::InMemory;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{ObjectStore, PutPayload, PutResult, Result};
use sha2::{Digest, Sha256};

/// A private and its public key.
pub fn new_keys() -> (String, String) {
    let identity = age::x25519::Identity::generate();
    (identity.to_string().expose_secret().to_owned(), identity.to_public().to_string())
}

pub struct Memory {
    objects: Arc<InMemory>,
    uploads: Arc<Uploads>,
}

/// The parts are copied, as on the way to a server: their memory is needed again.
struct Uploads {
    objects: Arc<InMemory>,
    fails_at_part: AtomicUsize,
    fails_to_complete: AtomicUsize,
    /// How long a part is on its way, in milliseconds. It arrives also if nobody waits for it any more.
    part_takes: AtomicU64,
    parts_sent: AtomicUsize,
    begun: AtomicUsize,
    ended: AtomicUsize,
    /// Parts that are kept of uploads that were aborted before.
    late: Arc<AtomicUsize>,
}

impl Default for Memory {
    fn default() -> Self {
        let objects = Arc::new(InMemory::new());
        let uploads = Uploads {
            objects: Arc::clone(&objects),
            fails_at_part: AtomicUsize::new(usize::MAX),
            fails_to_complete: AtomicUsize::new(0),
            part_takes: AtomicU64::new(0),
            parts_sent: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            late: Arc::default(),
        };
        Self { objects, uploads: Arc::new(uploads) }
    }
}

impl Memory {
    pub fn destination(&self, url: &str) -> Destination {
        let location = Location { url: url.into(), ..Location::default() };
        Destination::in_store(Arc::clone(&self.objects) as _, Arc::clone(&self.uploads) as _, &location).unwrap()
    }

    pub fn fail_at_part(&self, part: usize) {
        self.uploads.fails_at_part.store(part, Ordering::SeqCst);
    }

    pub fn slow_down_parts(&self, milliseconds: u64) {
        self.uploads.part_takes.store(milliseconds, Ordering::SeqCst);
    }

    pub fn parts_sent(&self) -> usize {
        self.uploads.parts_sent.load(Ordering::SeqCst)
    }

    /// How many parts arrived after their upload was aborted. A store may keep them for ever.
    pub fn late_parts(&self) -> usize {
        self.uploads.late.load(Ordering::SeqCst)
    }

    /// The next one is completed, but nobody hears of it.
    pub fn lose_the_answer_to_complete(&self) {
        self.uploads.fails_to_complete.store(1, Ordering::SeqCst);
    }

    /// Those that were begun and neither completed nor aborted.
    pub fn open_uploads(&self) -> usize {
        self.uploads.begun.load(Ordering::SeqCst) - self.uploads.ended.load(Ordering::SeqCst)
    }

    pub async fn names(&self) -> Vec<String> {
        let all: Vec<_> = self.objects.list(None).try_collect().await.unwrap();
        let mut names: Vec<_> = all.into_iter().map(|meta| meta.location.to_string()).collect();
        names.sort();
        names
    }

    pub async fn read(&self, key: &str) -> Vec<u8> {
        let found = self.objects.get_opts(&Path::from(key), Default::default()).await.unwrap();
        found.bytes().await.unwrap().to_vec()
    }

    pub async fn write(&self, key: &str, bytes: impl Into<Vec<u8>>) {
        let payload = PutPayload::from(bytes.into());
        self.objects.put_opts(&Path::from(key), payload, Default::default()).await.unwrap();
    }

    pub async fn delete(&self, key: &str) {
        object_store::ObjectStoreExt::delete(&*self.objects, &Path::from(key)).await.unwrap();
    }
}

fn refused() -> object_store::Error {
    let answer = "status code: 507 Insufficient Storage: <Code>InsufficientStorage</Code><Message>No room</Message>";
    object_store::Error::Generic { store: "memory", source: answer.into() }
}

#[async_trait]
impl MultipartStore for Uploads {
    async fn create_multipart(&self, path: &Path) -> Result<String> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.objects.create_multipart(path).await
    }

    async fn put_part(&self, path: &Path, id: &String, index: usize, data: PutPayload) -> Result<PartId> {
        if index >= self.fails_at_part.load(Ordering::SeqCst) {
            return Err(refused());
        }
        let copy = Bytes::from(data).to_vec();
        let (objects, path, id, late) = (Arc::clone(&self.objects), path.clone(), id.clone(), Arc::clone(&self.late));
        let takes = Duration::from_millis(self.part_takes.load(Ordering::SeqCst));
        let arrival = tokio::spawn(async move {
            tokio::time::sleep(takes).await;
            let put = objects.put_part(&path, &id, index, PutPayload::from(copy)).await;
            // This store refuses them, others don't.
            late.fetch_add(usize::from(put.is_err()), Ordering::SeqCst);
            put
        });
        self.parts_sent.fetch_add(1, Ordering::SeqCst);
        arrival.await.map_err(|source| object_store::Error::Generic { store: "memory", source: source.into() })?
    }

    async fn complete_multipart(&self, path: &Path, id: &String, parts: Vec<PartId>) -> Result<PutResult> {
        let completed = self.objects.complete_multipart(path, id, parts).await;
        self.ended.fetch_add(1, Ordering::SeqCst);
        match self.fails_to_complete.swap(0, Ordering::SeqCst) {
            0 => completed,
            _ => Err(refused()),
        }
    }

    async fn abort_multipart(&self, path: &Path, id: &String) -> Result<()> {
        let unknown = |source: object_store::Error| object_store::Error::NotFound {
            path: path.to_string(),
            source: Box::new(source),
        };
        self.objects.abort_multipart(path, id).await.map_err(unknown)?;
        self.ended.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// What etcd would send if its database was as large as this: partly the same all over, partly not.
pub fn snapshot(size: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut database = Vec::with_capacity(size + 32);
    while database.len() < size {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let random = (state >> 32).to_le_bytes();
        database.extend_from_slice(if state >> 63 == 0 { &random } else { b"the same" });
    }
    database.truncate(size);
    let hash = Sha256::digest(&database);
    database.extend_from_slice(&hash);
    database
}

/// All that can be done to a snapshot.
pub fn encodings(recipient: &str) -> [Encoding; 4] {
    let encoding = |compress, recipients| Encoding { compress, recipients };
    let recipients = vec![recipient.to_owned()];
    [encoding(false, vec![]), encoding(true, vec![]), encoding(false, recipients.clone()), encoding(true, recipients)]
}

pub fn origin(name: &str) -> Origin {
    Origin {
        backup: format!("team/{name}"),
        uid: format!("uid-of-{name}"),
        cluster: Some("team/etcd".into()),
        schedule: Some("team/nightly".into()),
    }
}

pub async fn upload(to: &Destination, snapshot: &[u8], encoding: &Encoding) -> Encoded {
    let mut upload = Upload::begin(to, &origin("one"), encoding).await.unwrap();
    for piece in snapshot.chunks(32 * 1024) {
        upload.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    upload.finish().await.unwrap()
}

pub fn manifest(origin: Origin, encoded: Encoded, taken_at: Timestamp) -> Manifest {
    Manifest {
        origin,
        cluster_id: "cdf818194e3a8c32".into(),
        revision: 7,
        keys: 5,
        etcd_version: "3.6.16".into(),
        member: "http://10.0.0.1:2379".into(),
        with_quorum: true,
        taken_at,
        snapshot_size: encoded.snapshot.size,
        snapshot_sha256: encoded.snapshot.sha256,
        object_size: encoded.object.size,
        object_sha256: encoded.object.sha256,
        compression: encoded.compression,
        encryption: encoded.encryption,
        kv_hash: None,
        to_verify: false,
    }
}
