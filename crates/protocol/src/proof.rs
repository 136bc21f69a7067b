//! The proof stored next to a backup that was restored for a test and was complete. It is an object of its own, because
//! stored objects are never overwritten, and in some buckets cannot be.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::manifest::Origin;

/// The proof of the object `x` is `x.proof.json`.
pub const SUFFIX: &str = ".proof.json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proof {
    /// That of the backup: there may have been another one of the same name.
    #[serde(flatten)]
    pub origin: Origin,
    pub verified_at: Timestamp,
}
