//! The marker stored next to an object while it is uploaded: which backup it belongs to, so that what a killed pod leaves
//! behind can be distinguished from objects of others.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::manifest::Origin;

/// The marker of the object `x` is `x.unfinished`.
pub const SUFFIX: &str = ".unfinished";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Marker {
    #[serde(flatten)]
    pub origin: Origin,
    pub begun_at: Timestamp,
    /// The store's name for the upload. Without it the parts could not be removed: they are not listed, but they are paid for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<String>,
}
