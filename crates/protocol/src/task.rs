//! What a pod of ours is to do. The operator writes it into the pod, the agent reads it there.

use serde::{Deserialize, Serialize};

use crate::manifest::Origin;

/// The environment variable that holds the task, as JSON.
pub const TASK: &str = "AGENT_TASK";
/// The environment variable that holds the identity which opens encrypted backups.
pub const AGE_IDENTITY: &str = "AGENT_AGE_IDENTITY";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase")]
pub enum Task {
    /// Take a snapshot and keep it.
    Backup(Box<Backup>),
    /// Read a backup from one end to the other, and tell what it is.
    Check(Find),
    /// Bring a backup into a file, as etcdutl reads it.
    Fetch(Fetch),
    /// Compare what an etcd that was restored from a backup says with what the backup's manifest says.
    Verify(Verify),
    /// Remove the backups that no rule keeps.
    Prune(Prune),
}

/// Where an object is: `s3://`, `gs://` or `az://`, or `file://` for a volume that is mounted in the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Location {
    pub url: String,
    /// The address of the server, if it is not the provider's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Whether the bucket is in the path rather than in the name of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force_path_style: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    pub to: Location,
    /// The members that may be asked: client URLs.
    pub endpoints: Vec<String>,
    #[serde(default)]
    pub compress: bool,
    /// Public age keys. Who has the private key of one of them can read the backup.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<String>,
    /// Whether the backup will be verified, which takes a hash of the keys to compare with.
    #[serde(default)]
    pub hash_keys: bool,
    pub origin: Origin,
    /// What goes after the backup is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// The folder that has all backups of the schedule in it, if it is not the one that this backup goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_below: Option<Location>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Find {
    pub from: Location,
    /// The SHA-256 that the snapshot must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fetch {
    pub from: Find,
    /// The file to write. It is there only when it is complete.
    pub file: String,
    /// The version of etcd that will read it: the minor must be that of the backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_version: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verify {
    pub from: Find,
    /// The client URL of the etcd that was restored.
    pub endpoint: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prune {
    /// Where the backups are: an object's URL, or the beginning of several.
    pub below: Location,
    /// Whose backups: those of this schedule, as their manifests name it.
    pub schedule: String,
    /// Nothing of these is kept if there are no rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
}

/// Which backups are kept: those that any of the rules keeps. The newest is always kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Retention {
    /// What agents go by that know nothing of proofs.
    pub keep_last: u32,
    /// What the others go by, if it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_last_with_proofs: Option<u32>,
    pub keep_days: u32,
    pub keep_weeks: u32,
    pub keep_months: u32,
    pub keep_daily: u32,
    pub keep_weekly: u32,
    pub keep_monthly: u32,
    pub days_of_month: Vec<u8>,
    /// How many months before this one `days_of_month` is about.
    pub months: u32,
    /// Where a day begins and ends: an IANA time zone.
    pub time_zone: String,
    pub dry_run: bool,
}

impl Retention {
    /// How many of the newest are kept.
    pub fn newest(&self) -> u32 {
        self.keep_last_with_proofs.unwrap_or(self.keep_last)
    }

    /// Whether there is no rule. Then nothing is ever deleted.
    pub fn says_nothing(&self) -> bool {
        let numbers = [self.newest(), self.keep_days, self.keep_weeks, self.keep_months];
        let newest_of = [self.keep_daily, self.keep_weekly, self.keep_monthly];
        numbers.iter().chain(&newest_of).all(|&number| number == 0) && self.days_of_month.is_empty()
    }
}
