//! Writing a backup: a snapshot goes in piece by piece, and an object is there at the end or nothing at all.

use std::io;

use bytes::Bytes;
use etcd_operator_protocol::manifest::Origin;
use etcd_operator_protocol::marker::Marker;
use etcd_operator_protocol::report::{Failure, Reason};
use jiff::Timestamp;
use object_store::multipart::PartId;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::address::{Store, invalid_request};
use crate::destination::Destination;
use crate::encode::{Codecs, encode};
pub use crate::encode::{Encoded, Encoding};
use crate::failure::of_io;
use crate::files;
use crate::multipart::{Multipart, remove_named};
use crate::parts::PartWriter;

/// Pieces that wait to be encoded. etcd sends 32 KiB at a time.
const WAITING: usize = 8;

/// An upload under way. Dropping it stops it, but only `abort` also removes what is in the store already.
pub struct Upload {
    to: Destination,
    /// Until it has failed.
    work: Option<Work>,
}

/// The caller gives pieces to a thread that encodes them, which gives parts to a task that sends them.
struct Work {
    pieces: mpsc::Sender<Bytes>,
    encoding: JoinHandle<io::Result<(Encoded, Result<(), String>)>>,
    sending: JoinHandle<(Multipart, Result<Vec<PartId>, Failure>)>,
    /// Dropped, it says the same as used.
    stop_sending: oneshot::Sender<()>,
}

impl Upload {
    /// What an earlier attempt left behind goes. Whether the place may be written at all is to be asked before:
    /// [`Destination::what_is_there`].
    pub async fn begin(to: &Destination, origin: &Origin, encoding: &Encoding) -> Result<Self, Failure> {
        let codecs = encoding.understand()?;
        note_what_is_left(to, remove_leftovers(to, origin).await);
        let multipart = Multipart::begin(to).await?;
        if let Err(failure) = write_marker(to, origin, multipart.id()).await {
            remove(to, multipart).await;
            return Err(failure);
        }
        Ok(Self { to: to.clone(), work: Some(Work::start(codecs, multipart)) })
    }

    /// Waits while the store is slower than who writes. If it fails, nothing is left in the store.
    pub async fn write(&mut self, piece: Bytes) -> Result<(), Failure> {
        let Some(work) = &self.work else { return Err(self.ended()) };
        if work.pieces.send(piece).await.is_ok() {
            return Ok(());
        }
        // Nobody takes pieces any more: the encoding has ended before its time, because the sending has.
        let Some(work) = self.work.take() else { return Err(self.ended()) };
        drop((work.pieces, work.stop_sending));
        let encoded = work.encoding.await;
        let Ok((multipart, sent)) = work.sending.await else { return Err(self.ended()) };
        remove(&self.to, multipart).await;
        Err(match (sent, encoded) {
            (Err(failure), _) => failure,
            (_, Ok(Err(e))) => of_io(&format!("encoding {}", self.to.url()), &e),
            _ => self.ended(),
        })
    }

    /// The object appears with this, if the snapshot is good.
    pub async fn finish(mut self) -> Result<Encoded, Failure> {
        let Some(work) = self.work.take() else { return Err(self.ended()) };
        drop(work.pieces);
        let encoded = work.encoding.await;
        let Ok((mut multipart, sent)) = work.sending.await else { return Err(self.ended()) };
        let good = match (sent, encoded) {
            (Err(failure), _) => Err(failure),
            (Ok(parts), Ok(Ok((encoded, Ok(()))))) => Ok((encoded, parts)),
            (_, Ok(Ok((_, Err(why))))) => Err(Failure {
                reason: Reason::BadStream,
                message: format!("the snapshot that etcd sent is bad: {why}"),
            }),
            (_, Ok(Err(e))) => Err(of_io(&format!("encoding {}", self.to.url()), &e)),
            (_, Err(_)) => Err(self.ended()),
        };
        let (encoded, parts) = match good {
            Ok(good) => good,
            Err(failure) => {
                remove(&self.to, multipart).await;
                return Err(failure);
            }
        };
        if let Err(failure) = multipart.complete(parts).await {
            // The object may be there all the same. The marker stays, and says whose it is.
            note_what_is_left(&self.to, multipart.abort().await);
            return Err(failure);
        }
        Ok(encoded)
    }

    /// Leaves nothing in the store.
    pub async fn abort(mut self) {
        let Some(work) = self.work.take() else { return };
        drop((work.pieces, work.stop_sending));
        // It ends with an error, because nobody takes its parts any more.
        let _ = work.encoding.await;
        if let Ok((multipart, _)) = work.sending.await {
            remove(&self.to, multipart).await;
        }
    }

    fn ended(&self) -> Failure {
        Failure { reason: Reason::StoreFailed, message: format!("writing {}: it has ended already", self.to.url()) }
    }
}

impl Work {
    fn start(codecs: Codecs, mut multipart: Multipart) -> Self {
        let (pieces, waiting) = mpsc::channel(WAITING);
        let (to_parts, parts) = mpsc::channel(1);
        let (stop_sending, stop) = oneshot::channel();
        let sending = tokio::spawn(async move {
            let sent = multipart.send_all(parts, stop).await;
            (multipart, sent)
        });
        let writer = PartWriter::new(to_parts, codecs.changes_anything());
        let encoding = tokio::task::spawn_blocking(move || encode(waiting, &codecs, writer));
        Self { pieces, encoding, sending, stop_sending }
    }
}

/// Removes the parts that an earlier attempt at the same backup has sent, if it was killed.
async fn remove_leftovers(to: &Destination, origin: &Origin) -> Result<(), Failure> {
    let object = to.object()?;
    if to.address.store == Store::Files {
        return files::remove_leftovers(object).await;
    }
    match to.read_marker(&to.marker()?).await? {
        Some(Marker { origin: earlier, upload: Some(id), .. }) if earlier.is_same_backup(origin) => {
            remove_named(to, object, &id).await
        }
        _ => Ok(()),
    }
}

async fn write_marker(to: &Destination, origin: &Origin, upload: Option<&str>) -> Result<(), Failure> {
    let key = to.marker()?;
    let marker = Marker { origin: origin.clone(), begun_at: Timestamp::now(), upload: upload.map(Into::into) };
    let text =
        serde_json::to_vec(&marker).map_err(|e| invalid_request(format!("writing {}: {e}", to.name_of(&key))))?;
    to.write_text(&key, text).await
}

/// Removes the parts, and the marker when they are gone: it has the name under which they can be removed later.
async fn remove(to: &Destination, mut multipart: Multipart) {
    let removed = match (multipart.abort().await, to.marker()) {
        (Ok(()), Ok(marker)) => to.delete(&marker).await,
        (Err(failure), _) | (_, Err(failure)) => Err(failure),
    };
    note_what_is_left(to, removed);
}

/// It is not worth failing for: the next attempt and the pruning remove it.
fn note_what_is_left(to: &Destination, removed: Result<(), Failure>) {
    if let Err(failure) = removed {
        tracing::warn!(url = to.url(), "something is left of an attempt that failed: {}", failure.message);
    }
}
