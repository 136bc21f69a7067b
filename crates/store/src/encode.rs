//! The way of a snapshot into an object: compressed and encrypted, if that is wanted, and cut into parts. All of this is
//! work for a thread of its own.

use std::io::{self, Write};

use age::stream::StreamWriter;
use age::x25519::Recipient;
use bytes::Bytes;
use etcd_operator_protocol::report::Failure;
use tokio::sync::mpsc::Receiver;

use crate::address::invalid_request;
use crate::parts::PartWriter;
use crate::trailer::{Fingerprint, TrailerCheck};

pub const ZSTD: &str = "zstd";
pub const AGE: &str = "age";

const LEVEL: i32 = 3;
/// 2 MiB: what the level takes anyway, and an upper bound for the memory of whoever reads it.
const WINDOW_LOG: u32 = 21;

/// What is to be done to a snapshot.
#[derive(Clone, Debug, Default)]
pub struct Encoding {
    pub compress: bool,
    /// Public age keys. With any of them, the object is encrypted.
    pub recipients: Vec<String>,
}

/// What was done to a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    pub snapshot: Fingerprint,
    pub object: Fingerprint,
    pub compression: Option<String>,
    pub encryption: Option<String>,
}

/// `Encoding`, understood.
pub struct Codecs {
    pub compress: bool,
    recipients: Vec<Recipient>,
}

impl Encoding {
    pub(crate) fn understand(&self) -> Result<Codecs, Failure> {
        let read = |recipient: &String| {
            recipient.trim().parse().map_err(|e| invalid_request(format!("{recipient:?} is no public age key: {e}")))
        };
        let recipients = self.recipients.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Codecs { compress: self.compress, recipients })
    }
}

impl Codecs {
    pub fn encrypt(&self) -> bool {
        !self.recipients.is_empty()
    }

    pub fn changes_anything(&self) -> bool {
        self.compress || self.encrypt()
    }
}

/// Encodes what comes until the other end is closed. Besides what was done, it says what is wrong with the snapshot, in words.
pub fn encode(
    mut input: Receiver<Bytes>,
    codecs: &Codecs,
    parts: PartWriter,
) -> io::Result<(Encoded, Result<(), String>)> {
    let mut snapshot = TrailerCheck::default();
    let mut output = Compressing::begin(codecs.compress, Encrypting::begin(&codecs.recipients, parts)?)?;
    while let Some(chunk) = input.blocking_recv() {
        snapshot.update(&chunk);
        output.write_all(&chunk)?;
    }
    let object = output.finish()?.finish()?.finish()?;
    let (snapshot, outcome) = snapshot.finish();
    let encoded = Encoded {
        object: object.unwrap_or_else(|| snapshot.clone()),
        snapshot,
        compression: codecs.compress.then(|| ZSTD.into()),
        encryption: codecs.encrypt().then(|| AGE.into()),
    };
    Ok((encoded, outcome))
}

enum Encrypting {
    No(PartWriter),
    Age(Box<StreamWriter<PartWriter>>),
}

impl Encrypting {
    fn begin(recipients: &[Recipient], parts: PartWriter) -> io::Result<Self> {
        if recipients.is_empty() {
            return Ok(Self::No(parts));
        }
        let recipients = recipients.iter().map(|recipient| recipient as &dyn age::Recipient);
        let encryptor = age::Encryptor::with_recipients(recipients).map_err(io::Error::other)?;
        Ok(Self::Age(Box::new(encryptor.wrap_output(parts)?)))
    }

    fn finish(self) -> io::Result<PartWriter> {
        match self {
            Self::No(parts) => Ok(parts),
            Self::Age(writer) => writer.finish(),
        }
    }
}

impl Write for Encrypting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::No(parts) => parts.write(bytes),
            Self::Age(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::No(parts) => parts.flush(),
            Self::Age(writer) => writer.flush(),
        }
    }
}

enum Compressing {
    No(Encrypting),
    Zstd(zstd::Encoder<'static, Encrypting>),
}

impl Compressing {
    fn begin(compress: bool, output: Encrypting) -> io::Result<Self> {
        if !compress {
            return Ok(Self::No(output));
        }
        let mut encoder = zstd::Encoder::new(output, LEVEL)?;
        encoder.window_log(WINDOW_LOG)?;
        encoder.include_checksum(true)?;
        Ok(Self::Zstd(encoder))
    }

    fn finish(self) -> io::Result<Encrypting> {
        match self {
            Self::No(output) => Ok(output),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

impl Write for Compressing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::No(output) => output.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::No(output) => output.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }
}
