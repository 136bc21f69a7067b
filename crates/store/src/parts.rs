//! A stream cut into parts for a store, in memory that does not grow: there are only so many buffers, and who needs one
//! waits until the store has taken what is in it.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};

use bytes::Bytes;

use crate::trailer::{Fingerprint, Fingerprinting};

/// All parts but the last have this size: some stores want at least 5 MiB, some want them equal, and most take 10,000.
pub const PART: usize = 8 * 1024 * 1024;
/// One is being filled while the others are on their way.
const BUFFERS: usize = 3;
pub const IN_FLIGHT: usize = BUFFERS - 1;

/// Cuts what is written into it. The other end of `parts` must drop what it has used, or nothing can be written any more.
pub struct PartWriter {
    parts: tokio::sync::mpsc::Sender<Bytes>,
    filling: Option<Buffer>,
    free: Receiver<Vec<u8>>,
    home: Sender<Vec<u8>>,
    fingerprinting: Option<Fingerprinting>,
}

/// Goes back to where it came from when nobody needs it any more.
struct Buffer {
    bytes: Vec<u8>,
    home: Sender<Vec<u8>>,
}

impl PartWriter {
    pub fn new(parts: tokio::sync::mpsc::Sender<Bytes>, takes_fingerprint: bool) -> Self {
        let (home, free) = channel();
        for _ in 0..BUFFERS {
            // Made here and not by who fills them: the allocator keeps what one thread gave back from the others, and who
            // fills them is a new thread each time. Sending cannot fail: the other end is here.
            let _ = home.send(Vec::with_capacity(PART));
        }
        Self { parts, filling: None, free, home, fingerprinting: takes_fingerprint.then(Fingerprinting::default) }
    }

    /// Sends what is left, and returns the fingerprint of everything if it was to be taken.
    pub fn finish(mut self) -> io::Result<Option<Fingerprint>> {
        if let Some(last) = self.filling.take() {
            self.send(last)?;
        }
        Ok(self.fingerprinting.map(Fingerprinting::finish))
    }

    fn next_buffer(&self) -> io::Result<Buffer> {
        let mut bytes = self.free.recv().map_err(io::Error::other)?;
        bytes.clear();
        Ok(Buffer { bytes, home: self.home.clone() })
    }

    fn send(&self, buffer: Buffer) -> io::Result<()> {
        self.parts.blocking_send(Bytes::from_owner(buffer)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for PartWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut buffer = match self.filling.take() {
            Some(buffer) => buffer,
            None => self.next_buffer()?,
        };
        let taken = &bytes[..bytes.len().min(PART - buffer.bytes.len())];
        buffer.bytes.extend_from_slice(taken);
        if let Some(fingerprinting) = &mut self.fingerprinting {
            fingerprinting.update(taken);
        }
        if buffer.bytes.len() == PART {
            self.send(buffer)?;
        } else {
            self.filling = Some(buffer);
        }
        Ok(taken.len())
    }

    /// Parts are sent when they are full.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // Nobody is at home when everything is written: then it is not needed any more.
        let _ = self.home.send(std::mem::take(&mut self.bytes));
    }
}
