//! The rules that the API server checks before it stores an object, each with the sentence a user reads when it is
//! broken. Files have the names of the types' files that they are most about.
//!
//! They are written in CEL. A rule about a field that may be absent belongs to the object that holds the field. What
//! can only be known from a running cluster is refused by the planner, in `etcd_operator_core`.

mod backup;
mod backup_schedule;
mod cluster;
mod etcd;
mod image;
mod maintenance;
mod object_store;
mod pod_template;
mod restore;
mod storage;

/// One or more numbers with units of time. The numbers are short enough for their sum to be a duration.
const DURATION: &str = "^([0-9]{1,6}(h|m|s))+$";

/// The condition that nothing of these is other than it was, which may be absent, given by their paths.
///
/// It is not written with optional values, of which the API server cannot tell beforehand how much there is to compare.
fn unchanged<'a>(paths: impl IntoIterator<Item = &'a str>) -> String {
    let unchanged = paths.into_iter().map(|path| {
        let (is, was) = (is_there("self", path), is_there("oldSelf", path));
        format!("({is} ? ({was} && self.{path} == oldSelf.{path}) : !({was}))")
    });
    unchanged.collect::<Vec<_>>().join(" && ")
}

/// The condition that there is something at this path.
fn is_there(holder: &str, path: &str) -> String {
    let ends = path.match_indices('.').map(|(end, _)| end).chain([path.len()]);
    ends.map(|end| format!("has({holder}.{})", &path[..end])).collect::<Vec<_>>().join(" && ")
}

pub use backup::*;
pub use backup_schedule::*;
pub use cluster::*;
pub use etcd::*;
pub use image::*;
pub use maintenance::*;
pub use object_store::*;
pub use pod_template::*;
pub use restore::*;
pub use storage::*;
