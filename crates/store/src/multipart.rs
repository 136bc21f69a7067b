//! An object that is written in parts, and is there only when all of them are.

use std::sync::Arc;

use bytes::Bytes;
use etcd_operator_protocol::report::Failure;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesOrdered;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};
use tokio::sync::{mpsc, oneshot};

use crate::destination::Destination;
use crate::failure::is_not_found;
use crate::files;
use crate::parts::IN_FLIGHT;

pub struct Multipart {
    to: Destination,
    object: Path,
    way: Way,
}

enum Way {
    /// The store knows the upload by a name, under which it can be removed by somebody else later.
    Named { store: Arc<dyn MultipartStore>, id: String, begun: usize },
    /// A file with a number behind its name.
    File(Box<dyn MultipartUpload>),
}

impl Multipart {
    pub async fn begin(to: &Destination) -> Result<Self, Failure> {
        let object = to.object()?.clone();
        let begun = match &to.multipart {
            Some(store) => {
                let id = store.create_multipart(&object).await;
                id.map(|id| Way::Named { store: Arc::clone(store), id, begun: 0 })
            }
            None => to.store.put_multipart(&object).await.map(Way::File),
        };
        let way = begun.map_err(|e| to.failure("writing", &object, &e))?;
        Ok(Self { to: to.clone(), object, way })
    }

    /// The name under which `remove_named` can remove it.
    pub fn id(&self) -> Option<&str> {
        match &self.way {
            Way::Named { id, .. } => Some(id),
            Way::File(_) => None,
        }
    }

    /// Sends parts until there are no more of them, one fails, or it is told to stop. Those that are on their way then are
    /// waited for: a store may keep a part that arrives after its upload was removed, and nobody would ever remove it.
    pub async fn send_all(
        &mut self,
        parts: mpsc::Receiver<Bytes>,
        stop: oneshot::Receiver<()>,
    ) -> Result<Vec<PartId>, Failure> {
        self.send_each(parts, stop).await.map_err(|e| self.to.failure("writing", &self.object, &e))
    }

    async fn send_each(
        &mut self,
        mut parts: mpsc::Receiver<Bytes>,
        mut stop: oneshot::Receiver<()>,
    ) -> object_store::Result<Vec<PartId>> {
        let mut in_flight = FuturesOrdered::new();
        let (mut sent, mut failed) = (Vec::new(), None);
        while failed.is_none() {
            tokio::select! {
                Some(part) = in_flight.next() => match part {
                    Ok(part) => sent.push(part),
                    Err(error) => failed = Some(error),
                },
                part = parts.recv(), if in_flight.len() < IN_FLIGHT => match part {
                    Some(part) => in_flight.push_back(self.send(part)),
                    None => break,
                },
                _ = &mut stop => break,
            }
        }
        // Who fills the next part must not wait for a buffer that nobody gives back any more.
        drop(parts);
        while let Some(part) = in_flight.next().await {
            match part {
                Ok(part) => sent.push(part),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(sent), Err)
    }

    fn send(&mut self, part: Bytes) -> BoxFuture<'static, object_store::Result<PartId>> {
        let part = PutPayload::from(part);
        match &mut self.way {
            Way::Named { store, id, begun } => {
                let (store, object, id, index) = (Arc::clone(store), self.object.clone(), id.clone(), *begun);
                *begun += 1;
                Box::pin(async move { store.put_part(&object, &id, index, part).await })
            }
            Way::File(upload) => {
                let written = upload.put_part(part);
                Box::pin(async move { written.await.map(|()| PartId { content_id: String::new() }) })
            }
        }
    }

    /// The object appears with this.
    pub async fn complete(&mut self, parts: Vec<PartId>) -> Result<(), Failure> {
        let completed = match &mut self.way {
            Way::Named { store, id, .. } => store.complete_multipart(&self.object, id, parts).await.map(drop),
            Way::File(upload) => upload.complete().await.map(drop),
        };
        completed.map_err(|e| self.to.failure("completing", &self.object, &e))
    }

    /// Removes all parts.
    pub async fn abort(&mut self) -> Result<(), Failure> {
        match &mut self.way {
            Way::Named { id, .. } => remove_named(&self.to, &self.object, id).await,
            Way::File(upload) => {
                // It knows of nothing to remove if it failed while it was completed.
                let _ = upload.abort().await;
                files::remove_leftovers(&self.object).await
            }
        }
    }
}

/// Removes the parts of an upload that somebody else began. One that is gone already is as good as removed.
pub async fn remove_named(at: &Destination, object: &Path, id: &String) -> Result<(), Failure> {
    let Some(store) = &at.multipart else { return Ok(()) };
    match store.abort_multipart(object, id).await {
        Err(e) if !is_not_found(&e) => Err(at.failure("removing the parts of", object, &e)),
        _ => Ok(()),
    }
}
