//! The rules that the API server checks before it stores an object, each with the sentence a user reads when it is broken.
//!
//! They are written in CEL. A rule about a field that may be absent belongs to the object that holds the field.

mod care;
mod cluster;
mod etcd;
mod image;
mod pod_template;
mod storage;

/// One or more numbers with units of time. The numbers are short enough for their sum to be a duration.
const DURATION: &str = "^([0-9]{1,6}(h|m|s))+$";

pub use care::*;
pub use cluster::*;
pub use etcd::*;
pub use image::*;
pub use pod_template::*;
pub use storage::*;
