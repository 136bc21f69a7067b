//! Whether the members of a cluster have the same data, as etcd itself computes it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use crate::etcd::Etcd;
use crate::{SAFETY, eventually, is};

/// The hash of what a member has up to a revision, and the revision before which its history is forgotten: hashes of
/// different stretches of history can't be compared.
pub type Hash = (u64, i64);

impl Etcd<'_> {
    /// The last revision that a quorum knows.
    pub fn revision(&self) -> Result<i64, String> {
        let answer = self.etcdctl(&["get", "any", "-w", "json"])?;
        let answer: Value = serde_json::from_str(&answer).map_err(|error| format!("{error}: {answer}"))?;
        answer["header"]["revision"].as_i64().ok_or_else(|| format!("no revision in {answer}"))
    }

    /// What each member says of its own data, all at one revision: name → hash.
    pub fn hashes(&self) -> Result<BTreeMap<String, Hash>, String> {
        let (urls, revision) = (self.urls(), self.revision()?.to_string());
        let answers = self.etcdctl(&["endpoint", "hashkv", "--rev", &revision, "-w", "json"])?;
        let answers: Value = serde_json::from_str(&answers).map_err(|error| format!("{error}: {answers}"))?;
        let hash = |url: &String| {
            let answer = answers.as_array()?.iter().find(|answer| answer["Endpoint"] == url.as_str())?;
            Some((answer["HashKV"]["hash"].as_u64()?, answer["HashKV"]["compact_revision"].as_i64()?))
        };
        let found = urls.into_iter().map(|(name, url)| match hash(&url) {
            Some(hash) => Ok((name, hash)),
            None => Err(format!("no hash of {name} in {answers}")),
        });
        found.collect()
    }

    /// For `eventually`: a member's data is not that of any other, at the same revision.
    pub fn has_other_data(&self, member: &str) -> Result<(), String> {
        let hashes = self.hashes()?;
        let own = hashes.get(member).ok_or_else(|| format!("no hash of {member} in {hashes:?}"))?;
        // Only hashes of the same stretch of history can be compared.
        let differs = |other: &Hash| other.0 != own.0 && other.1 == own.1;
        let mut others = hashes.iter().filter(|(name, _)| *name != member);
        if others.all(|(_, other)| differs(other)) { Ok(()) } else { Err(format!("{hashes:?}")) }
    }

    /// Members that lag a little behind may catch up; those whose data is wrong never agree.
    pub fn assert_same_data(&self, count: usize) {
        eventually("all members have the same data", Duration::from_secs(30), || {
            let hashes = self.hashes()?;
            let different: BTreeSet<&Hash> = hashes.values().collect();
            is(hashes.len(), count)?;
            if different.len() == 1 { Ok(()) } else { Err(format!("{SAFETY}{hashes:?}")) }
        });
    }
}
