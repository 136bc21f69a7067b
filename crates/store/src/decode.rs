//! The way back from an object to the snapshot in it. What was done to it is seen from its first bytes, so that also
//! something without a manifest can be read. Work for a thread of its own.

use std::io::{self, BufReader, Cursor, Read, Write};

use age::x25519::Identity;
use age::{DecryptError, Decryptor};
use etcd_operator_protocol::report::{Failure, Reason};

use crate::failure::of_io;
use crate::trailer::{Fingerprint, Fingerprinting, TrailerCheck};

const AGE_MAGIC: &[u8] = b"age-encryption.org/v1";
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// 8 MiB: more than we ever write, and as much as others write by default.
const MAX_WINDOW_LOG: u32 = 23;
const BUFFER: usize = 64 * 1024;

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    pub snapshot: Fingerprint,
    pub object: Fingerprint,
}

/// The private keys in a text: one on each line, as `age-keygen` writes them, with comments.
pub fn read_identities(text: &str) -> Result<Vec<Identity>, Failure> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    // What was given instead must not be repeated: it is a secret.
    let read =
        |line: &str| line.parse().map_err(|_| wrong_key("what was given to open it is no private age key".into()));
    lines.map(read).collect()
}

/// Reads `object` to its end, writes the snapshot in it, and checks whether it is complete. What was written may only be used
/// if this succeeds. `url` is what messages call it.
pub fn decode(
    url: &str,
    object: impl Read,
    identities: &[Identity],
    into: &mut impl Write,
) -> Result<Decoded, Failure> {
    let mut object = Watched { inner: object, fingerprinting: Fingerprinting::default(), trouble: None };
    let mut check = TrailerCheck::default();
    let read = read_snapshot(&mut object, identities, &mut check, into);
    // What comes behind belongs to the object, too.
    let read = read.and_then(|()| io::copy(&mut object, &mut io::sink()).map(drop).map_err(damaged));
    if let Some(trouble) = object.trouble {
        return Err(of_io(&format!("reading {url}"), &trouble));
    }
    read.map_err(|problem| problem.of(url))?;
    let (snapshot, outcome) = check.finish();
    outcome.map_err(|why| Problem::Damaged(why).of(url))?;
    Ok(Decoded { snapshot, object: object.fingerprinting.finish() })
}

fn read_snapshot(
    object: impl Read,
    identities: &[Identity],
    check: &mut TrailerCheck,
    into: &mut impl Write,
) -> Result<(), Problem> {
    let mut snapshot = open(object, identities)?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let piece = match snapshot.read(&mut buffer) {
            Ok(0) => return into.flush().map_err(Problem::Writing),
            Ok(length) => &buffer[..length],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(damaged(e)),
        };
        check.update(piece);
        into.write_all(piece).map_err(Problem::Writing)?;
    }
}

enum Problem {
    Damaged(String),
    Key(String),
    Writing(io::Error),
}

fn damaged(e: io::Error) -> Problem {
    Problem::Damaged(e.to_string())
}

impl Problem {
    fn of(self, url: &str) -> Failure {
        match self {
            Self::Damaged(why) => {
                Failure { reason: Reason::HashMismatch, message: format!("{url} is not what was written there: {why}") }
            }
            Self::Key(why) => wrong_key(format!("{url} is encrypted, and {why}")),
            Self::Writing(e) => of_io("writing the snapshot", &e),
        }
    }
}

fn wrong_key(message: String) -> Failure {
    Failure { reason: Reason::WrongKey, message }
}

/// Undoes what was done, in the opposite order.
fn open<'a>(object: impl Read + 'a, identities: &[Identity]) -> Result<Box<dyn Read + 'a>, Problem> {
    let (is_encrypted, object) = begins_with(AGE_MAGIC, object)?;
    let decrypted: Box<dyn Read + 'a> = if is_encrypted { decrypt(object, identities)? } else { Box::new(object) };
    let (is_compressed, decrypted) = begins_with(ZSTD_MAGIC, decrypted)?;
    if !is_compressed {
        return Ok(Box::new(decrypted));
    }
    let mut decoder = zstd::Decoder::with_buffer(BufReader::with_capacity(BUFFER, decrypted)).map_err(damaged)?;
    decoder.window_log_max(MAX_WINDOW_LOG).map_err(damaged)?;
    Ok(Box::new(decoder))
}

fn decrypt<'a>(object: impl Read + 'a, identities: &[Identity]) -> Result<Box<dyn Read + 'a>, Problem> {
    if identities.is_empty() {
        return Err(Problem::Key("no private key was given to open it".into()));
    }
    let explain = |e: DecryptError| match e {
        DecryptError::NoMatchingKeys => Problem::Key("not for the private key that was given".into()),
        other => Problem::Damaged(other.to_string()),
    };
    let decryptor = Decryptor::new_buffered(BufReader::with_capacity(BUFFER, object)).map_err(explain)?;
    let identities = identities.iter().map(|identity| identity as &dyn age::Identity);
    Ok(Box::new(decryptor.decrypt(identities).map_err(explain)?))
}

/// Looks at the first bytes, and puts them back.
fn begins_with(magic: &[u8], mut stream: impl Read) -> Result<(bool, impl Read), Problem> {
    let mut first = Vec::with_capacity(magic.len());
    let looked = stream.by_ref().take(magic.len() as u64).read_to_end(&mut first);
    looked.map_err(damaged)?;
    Ok((first == magic, Cursor::new(first).chain(stream)))
}

/// Takes the fingerprint of what is read, and keeps what went wrong with it: who reads would say that it is damaged.
struct Watched<R> {
    inner: R,
    fingerprinting: Fingerprinting,
    trouble: Option<io::Error>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(buffer) {
            Ok(length) => {
                self.fingerprinting.update(&buffer[..length]);
                Ok(length)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Err(e),
            Err(e) => {
                let kind = e.kind();
                self.trouble = Some(e);
                Err(kind.into())
            }
        }
    }
}
