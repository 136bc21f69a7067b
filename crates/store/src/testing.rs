//! What the tests of several modules use.

use sha2::{Digest, Sha256};

/// What etcd would send if this was its database.
pub fn snapshot_of(database: &[u8]) -> Vec<u8> {
    [database, &Sha256::digest(database)].concat()
}
