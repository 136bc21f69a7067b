//! The stream of a member's snapshot.

use std::time::Duration;

use prost::bytes::Bytes;
use tonic::Streaming;

use crate::error::{Cause, Error, cause_of};
use crate::wire::SnapshotResponse;

/// Bytes that may be on their way to us and not be read yet. With HTTP/2's own 64 KiB a member would wait for us after
/// every second piece; without a limit a slow reader would have to keep the whole database in memory.
pub(crate) const STREAM_WINDOW: u32 = 2 << 20;
/// The same for all that comes over a connection: what a snapshot that nobody reads leaves is for the other answers.
pub(crate) const CONNECTION_WINDOW: u32 = 4 << 20;
/// Bytes. etcd sends pieces of 32 KiB.
pub(crate) const LARGEST_PIECE: usize = 4 << 20;
pub(crate) const DOING: &str = "taking a snapshot";

/// A snapshot on its way: the member's database as it was at one moment, and behind it the 32 bytes of its SHA-256. Whether
/// all of it came is for the reader to check, by that hash: a broken connection is an error, but a member may also end
/// the stream early.
#[derive(Debug)]
pub struct SnapshotStream {
    url: String,
    deadline: Duration,
    answers: Streaming<SnapshotResponse>,
}

impl SnapshotStream {
    pub(crate) fn new(url: String, deadline: Duration, answers: Streaming<SnapshotResponse>) -> Self {
        Self { url, deadline, answers }
    }

    /// The next piece, `None` after the last one. A member that sends nothing within the deadline has failed; the time
    /// between two calls of this does not count.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let outcome = match tokio::time::timeout(self.deadline, self.answers.message()).await {
            Ok(answer) => answer.map_err(|status| cause_of(&status, self.deadline)),
            Err(_) => Err(Cause::TimedOut(self.deadline)),
        };
        let error = |cause| Error { endpoint: self.url.clone(), doing: DOING.into(), cause };
        let answer = outcome.map_err(error)?;
        Ok(answer.map(|answer| answer.blob))
    }
}
