//! A place for a backup, and what lies there.

use std::sync::Arc;

use etcd_operator_protocol::manifest::{Manifest, Origin, SUFFIX};
use etcd_operator_protocol::marker::{self, Marker};
use etcd_operator_protocol::proof::{self, Proof};
use etcd_operator_protocol::report::{Failure, Reason};
use etcd_operator_protocol::task::Location;
use futures::TryStreamExt;
use jiff::Timestamp;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};

use crate::address::{Address, Store, invalid_request, parse};
use crate::failure::{is_not_found, of_store};
use crate::{files, stores};

/// A manifest or a marker is a page of text. What is larger is neither, and must not fill the memory.
const MAX_TEXT: u64 = 1024 * 1024;

/// Where an object is or is to be, and how to get there. Opening one asks nobody.
#[derive(Clone)]
pub struct Destination {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// How large objects are written. Files are written in another way.
    pub(crate) multipart: Option<Arc<dyn MultipartStore>>,
    pub(crate) address: Address,
    url: String,
}

/// What is at a destination, as the backup sees it that is to be written there.
#[derive(Debug, PartialEq, Eq)]
pub enum There {
    /// Nothing, or what an earlier attempt at the same backup left behind: it may be written.
    Nothing,
    /// This very backup, complete: an earlier attempt succeeded.
    Whole(Box<Manifest>),
    /// Something else, in words. It must not be touched.
    Foreign(String),
}

impl Destination {
    pub fn open(location: &Location) -> Result<Self, Failure> {
        let address = parse(location)?;
        let opened = stores::open(&address).map_err(|e| Failure {
            reason: Reason::AccessDenied,
            message: format!("the credentials for {} cannot be used: {e}", address.url()),
        });
        Ok(Self::new(address, opened?))
    }

    /// For a store that no URL leads to.
    pub fn in_store(
        store: Arc<dyn ObjectStore>,
        multipart: Arc<dyn MultipartStore>,
        location: &Location,
    ) -> Result<Self, Failure> {
        Ok(Self::new(parse(location)?, (store, Some(multipart))))
    }

    fn new(address: Address, (store, multipart): stores::Opened) -> Self {
        Self { store, multipart, url: address.url(), address }
    }

    /// As messages name it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What the backup of this origin finds.
    pub async fn what_is_there(&self, origin: &Origin) -> Result<There, Failure> {
        let manifest = match self.read_manifest().await {
            Err(failure) if failure.reason == Reason::HashMismatch => return Ok(There::Foreign(failure.message)),
            manifest => manifest?,
        };
        if let Some(manifest) = manifest {
            if !manifest.origin.is_same_backup(origin) {
                let (other, at) = (&manifest.origin.backup, manifest.taken_at);
                return Ok(self.taken(format!("it is the backup that another EtcdBackup, {other}, made at {at}")));
            }
            let is_whole = self.size_of(self.object()?).await? == Some(manifest.object_size);
            return Ok(if is_whole { There::Whole(Box::new(manifest)) } else { There::Nothing });
        }
        let key = self.marker()?;
        match self.read_marker(&key).await? {
            Some(marker) if marker.origin.is_same_backup(origin) => return Ok(There::Nothing),
            Some(marker) => {
                let (other, at, name) = (&marker.origin.backup, marker.begun_at, self.name_of(&key));
                let since = format!("another EtcdBackup, {other}, writes there since {at}");
                return Ok(self.taken(format!("{since} (if it does so no longer, delete {name})")));
            }
            None => {}
        }
        match self.size_of(self.object()?).await? {
            Some(_) => Ok(self.taken("it is nothing that this EtcdBackup has written".into())),
            None => Ok(There::Nothing),
        }
    }

    fn taken(&self, why: String) -> There {
        There::Foreign(format!("{} is taken: {why}", self.url))
    }

    /// Fails with `HashMismatch` if what lies there is none.
    pub async fn read_manifest(&self) -> Result<Option<Manifest>, Failure> {
        self.read_manifest_of(self.object()?).await
    }

    pub(crate) async fn read_manifest_of(&self, object: &Path) -> Result<Option<Manifest>, Failure> {
        let key = self.beside(object, SUFFIX)?;
        let Some(text) = self.read_text(&key).await? else { return Ok(None) };
        serde_json::from_slice(&text).map(Some).map_err(|e| Failure {
            reason: Reason::HashMismatch,
            message: format!("{} is no manifest of a backup: {e}", self.name_of(&key)),
        })
    }

    /// With this the backup is complete.
    pub async fn write_manifest(&self, manifest: &Manifest) -> Result<(), Failure> {
        let key = self.beside(self.object()?, SUFFIX)?;
        let text =
            serde_json::to_vec_pretty(manifest).map_err(|e| invalid_request(format!("writing a manifest: {e}")))?;
        self.write_text(&key, text).await?;
        if let Err(failure) = self.delete(&self.marker()?).await {
            // The manifest beside it says that this backup is finished.
            tracing::warn!(url = self.url, "the marker stays: {}", failure.message);
        }
        Ok(())
    }

    /// Records that this backup was restored for a test and was complete, unless that was done before.
    pub async fn write_proof(&self, manifest: &Manifest) -> Result<(), Failure> {
        let object = self.object()?;
        if self.is_proven(object, manifest).await? {
            return Ok(());
        }
        let proof = Proof { origin: manifest.origin.clone(), verified_at: Timestamp::now() };
        let text = serde_json::to_vec_pretty(&proof).map_err(|e| invalid_request(format!("writing a proof: {e}")))?;
        self.write_text(&self.beside(object, proof::SUFFIX)?, text).await
    }

    /// Whether the proof of just this backup lies beside it. What is no proof proves nothing.
    pub(crate) async fn is_proven(&self, object: &Path, manifest: &Manifest) -> Result<bool, Failure> {
        let proof = self.read_proof(&self.beside(object, proof::SUFFIX)?).await?;
        Ok(proof.is_some_and(|proof| proof.origin.is_same_backup(&manifest.origin)))
    }

    /// `None` also for what is no proof.
    pub(crate) async fn read_proof(&self, key: &Path) -> Result<Option<Proof>, Failure> {
        let text = self.read_text(key).await?;
        Ok(text.and_then(|text| serde_json::from_slice(&text).ok()))
    }

    /// The name of the object, if it is one and not just the beginning of several.
    pub(crate) fn object(&self) -> Result<&Path, Failure> {
        if self.address.key == self.address.directory {
            return Err(invalid_request(format!("the URL {:?} names no object", self.url)));
        }
        Ok(&self.address.key)
    }

    pub(crate) fn marker(&self) -> Result<Path, Failure> {
        self.beside(self.object()?, marker::SUFFIX)
    }

    pub(crate) fn beside(&self, object: &Path, suffix: &str) -> Result<Path, Failure> {
        Path::parse(format!("{object}{suffix}"))
            .map_err(|e| invalid_request(format!("naming what lies beside {object}: {e}")))
    }

    /// `None` also for what is no marker: then nobody knows whose it is.
    pub(crate) async fn read_marker(&self, key: &Path) -> Result<Option<Marker>, Failure> {
        let text = self.read_text(key).await?;
        Ok(text.and_then(|text| serde_json::from_slice(&text).ok()))
    }

    pub(crate) async fn size_of(&self, key: &Path) -> Result<Option<u64>, Failure> {
        match self.store.head(key).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(e) if is_not_found(&e) => Ok(None),
            Err(e) => Err(self.failure("looking for", key, &e)),
        }
    }

    pub(crate) async fn read_text(&self, key: &Path) -> Result<Option<Vec<u8>>, Failure> {
        let failure = |e: object_store::Error| self.failure("reading", key, &e);
        let found = match self.store.get(key).await.map_err(failure) {
            // A bucket that does not exist has no objects either, but that is a failure.
            Err(failure) if failure.reason == Reason::NoSuchObject => return Ok(None),
            found => found?,
        };
        if found.meta.size > MAX_TEXT {
            let message = format!("{} has {} bytes, too many for a page of text", self.name_of(key), found.meta.size);
            return Err(Failure { reason: Reason::HashMismatch, message });
        }
        Ok(Some(found.bytes().await.map_err(failure)?.to_vec()))
    }

    pub(crate) async fn write_text(&self, key: &Path, text: Vec<u8>) -> Result<(), Failure> {
        let written = self.store.put(key, PutPayload::from(text)).await;
        written.map(drop).map_err(|e| self.failure("writing", key, &e))
    }

    /// What is gone already is as good as deleted.
    pub(crate) async fn delete(&self, key: &Path) -> Result<(), Failure> {
        match self.store.delete(key).await {
            Err(e) if !is_not_found(&e) => Err(self.failure("deleting", key, &e)),
            _ => Ok(()),
        }
    }

    /// Everything in the directory and the directories in it.
    pub(crate) async fn list(&self) -> Result<Vec<Path>, Failure> {
        let directory = &self.address.directory;
        match self.address.store {
            Store::Files => files::list(directory).await,
            _ => {
                let found = self.store.list(Some(directory)).map_ok(|meta| meta.location).try_collect().await;
                found.map_err(|e| self.failure("listing", directory, &e))
            }
        }
    }

    pub(crate) fn failure(&self, doing: &str, key: &Path, error: &object_store::Error) -> Failure {
        of_store(&format!("{doing} {}", self.name_of(key)), &self.bucket_in_words(), error)
    }

    /// The URL of another object in the same bucket.
    pub(crate) fn name_of(&self, key: &Path) -> String {
        Address { key: key.clone(), ..self.address.clone() }.url()
    }

    fn bucket_in_words(&self) -> String {
        match self.address.store {
            Store::S3 | Store::Gcs => format!("the bucket {}", self.address.bucket),
            Store::Azure => format!("the container {}", self.address.bucket),
            Store::Files => "the volume".into(),
        }
    }
}
