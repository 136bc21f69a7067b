//! etcd's snapshots check themselves: behind the database come 32 bytes, the SHA-256 of the database. This looks at a
//! snapshot while it passes by.

use sha2::{Digest, Sha256};

const TRAILER: usize = 32;
/// Every page of a database is a multiple of this. etcdutl, too, tells a snapshot from a bare database by what is left over.
const SECTOR: u64 = 512;

/// Size and SHA-256, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    pub size: u64,
    pub sha256: String,
}

/// Takes the fingerprint of what passes by.
#[derive(Default)]
pub struct Fingerprinting {
    hasher: Sha256,
    size: u64,
}

impl Fingerprinting {
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.size += bytes.len() as u64;
    }

    pub fn finish(self) -> Fingerprint {
        Fingerprint { size: self.size, sha256: in_hexadecimal(&self.hasher.finalize()) }
    }
}

/// Takes the fingerprint of a snapshot, and compares its trailer with what is before it.
#[derive(Default)]
pub struct TrailerCheck {
    /// Of all but the last bytes: they may be the trailer, and are hashed only when others come behind them. So that one
    /// hash is enough for both.
    before: Fingerprinting,
    last: [u8; TRAILER],
    held: usize,
}

impl TrailerCheck {
    pub fn update(&mut self, bytes: &[u8]) {
        let (early, late) = bytes.split_at(bytes.len() - bytes.len().min(TRAILER));
        let displaced = (self.held + late.len()).saturating_sub(TRAILER);
        self.before.update(&self.last[..displaced]);
        self.before.update(early);
        self.last.copy_within(displaced..self.held, 0);
        self.held -= displaced;
        self.last[self.held..self.held + late.len()].copy_from_slice(late);
        self.held += late.len();
    }

    /// The fingerprint of the whole snapshot, and what is wrong with it, for a message.
    pub fn finish(mut self) -> (Fingerprint, Result<(), String>) {
        let of_database = self.before.hasher.clone().finalize();
        let last = &self.last[..self.held];
        let matches = of_database.as_slice() == last;
        self.before.update(last);
        let whole = self.before.finish();
        let outcome = match whole.size {
            0 => Err("it is empty".into()),
            size if size % SECTOR != TRAILER as u64 => Err(format!(
                "with {size} bytes it is incomplete, or no snapshot that etcd made: a database and {TRAILER} bytes of \
                 hash are expected"
            )),
            _ if !matches => Err("the hash at its end is not the hash of what is before it".into()),
            _ => Ok(()),
        };
        (whole, outcome)
    }
}

pub fn in_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::snapshot_of;

    fn sha256(bytes: &[u8]) -> String {
        in_hexadecimal(&Sha256::digest(bytes))
    }

    fn check(pieces: &[&[u8]]) -> (Fingerprint, Result<(), String>) {
        let mut check = TrailerCheck::default();
        pieces.iter().for_each(|piece| check.update(piece));
        check.finish()
    }

    #[test]
    fn snapshot_is_valid_for_any_chunking() {
        let snapshot = snapshot_of(&[7; 1024]);
        for size in [1, 2, 31, 32, 33, 64, 100, 1024, 1055, 1056] {
            let pieces: Vec<_> = snapshot.chunks(size).collect();
            let (fingerprint, outcome) = check(&pieces);
            assert_eq!(fingerprint, Fingerprint { size: 1056, sha256: sha256(&snapshot) }, "in pieces of {size}");
            assert_eq!(outcome, Ok(()), "in pieces of {size}");
        }
    }

    #[test]
    fn invalid_snapshot_is_refused_with_a_reason() {
        let snapshot = snapshot_of(&[7; 1024]);
        let outcome = |bytes: &[u8]| check(&[bytes]).1.unwrap_err();
        assert!(outcome(b"").contains("empty"));
        assert!(outcome(&snapshot[..1024]).contains("1024 bytes"), "a bare database");
        assert!(outcome(&snapshot[..544]).contains("hash at its end"), "cut where it does not show by size");
        assert!(outcome(&snapshot[..31]).contains("31 bytes"));
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_hash_of_the_snapshot(bytes in proptest::collection::vec(any::<u8>(), 0..300), cuts in proptest::collection::vec(0usize..300, 0..8)) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut rest = &bytes[..];
            let mut done = 0;
            for cut in cuts {
                let (piece, after) = rest.split_at(cut - done);
                pieces.push(piece);
                rest = after;
                done = cut;
            }
            pieces.push(rest);
            prop_assert_eq!(check(&pieces).0, Fingerprint { size: bytes.len() as u64, sha256: sha256(&bytes) });
        }

        #[test]
        fn flipped_bit_is_detected(at in 0usize..1056, bit in 0u8..8) {
            let mut snapshot = snapshot_of(&[7; 1024]);
            snapshot[at] ^= 1 << bit;
            prop_assert!(check(&[&snapshot]).1.is_err());
        }
    }
}
