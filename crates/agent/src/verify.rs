//! Compares what an etcd that was restored from a backup says with what the backup's manifest says.

use std::time::{Duration, Instant};

use etcd_operator_etcd::{Cause, Error, MemberClient, Status};
use etcd_operator_protocol::manifest::{KvHash, Manifest};
use etcd_operator_protocol::report::{Done, Failure, Reason};
use etcd_operator_protocol::task::Verify;
use etcd_operator_store::destination::Destination;
use tracing::info;

use crate::numbers::{signed, unsigned};

/// How long etcd may take to start.
const STARTING: Duration = Duration::from_secs(120);
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take to go through its keys, or to read and hash all of its data.
const READING: Duration = Duration::from_secs(600);

pub async fn verify(task: &Verify) -> Result<Done, Failure> {
    let from = Destination::open(&task.from.from)?;
    let manifest = from.read_manifest().await?.ok_or_else(|| Failure {
        reason: Reason::NoSuchObject,
        message: format!("beside {} there is no manifest to compare with", from.url()),
    })?;
    let mut etcd = MemberClient::new(&task.endpoint, REQUEST_TIMEOUT)
        .map_err(|e| Failure { reason: Reason::InvalidRequest, message: e.to_string() })?;
    let status = started(&mut etcd).await?;
    info!(endpoint = task.endpoint, version = status.version, revision = status.revision, "etcd has started");
    let remark = compare(&mut etcd.with_deadline(READING), &status, &manifest).await?;
    let compared = remark.as_deref().unwrap_or("revision, number of keys and hash");
    info!(revision = manifest.revision, keys = manifest.keys, compared, "the restored data matches");
    // What is not written down would be forgotten with the EtcdBackup, and the backup could go for one that is no good.
    from.write_proof(&manifest).await?;
    Ok(Done { manifest: Some(manifest), remark, ..Done::default() })
}

async fn started(etcd: &mut MemberClient) -> Result<Status, Failure> {
    let begin = Instant::now();
    loop {
        let why = match etcd.status().await {
            Ok(status) if status.leader != 0 => return Ok(status),
            Ok(_) => "it has no leader".to_owned(),
            Err(error) => error.to_string(),
        };
        if begin.elapsed() >= STARTING {
            let message = format!("the restored etcd did not start within {STARTING:?}: {why}");
            return Err(Failure { reason: Reason::EtcdUnreachable, message });
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

/// The words are about what could not be compared.
async fn compare(etcd: &mut MemberClient, status: &Status, manifest: &Manifest) -> Result<Option<String>, Failure> {
    let newest = signed(status.revision);
    if newest < manifest.revision {
        let expected = manifest.revision;
        return Err(not_the_same(format!("it has got to revision {newest}, and the backup holds revision {expected}")));
    }
    let revision = unsigned(manifest.revision);
    let keys = signed(etcd.count_keys(revision).await.map_err(refused)?);
    if keys != manifest.keys {
        let expected = manifest.keys;
        return Err(not_the_same(format!("it has {keys} keys at revision {revision}, and {expected} were backed up")));
    }
    let Some(expected) = manifest.kv_hash else {
        return Ok(Some("revision and number of keys are the same; there was no hash to compare with".into()));
    };
    let hash = etcd.hash_kv(revision).await.map_err(refused)?;
    compare_hashes(expected, KvHash { hash: hash.hash, compact_revision: signed(hash.compact_revision) })
}

fn compare_hashes(expected: KvHash, restored: KvHash) -> Result<Option<String>, Failure> {
    if expected.compact_revision != restored.compact_revision {
        let remark = format!(
            "revision and number of keys are the same; the hashes can't be compared, because one was made when history \
             was compacted up to revision {} and the other up to {}",
            expected.compact_revision, restored.compact_revision
        );
        return Ok(Some(remark));
    }
    if expected.hash != restored.hash {
        let (restored, expected) = (restored.hash, expected.hash);
        return Err(not_the_same(format!("the hash of its keys is {restored}, and that of the backup is {expected}")));
    }
    Ok(None)
}

fn not_the_same(how: String) -> Failure {
    Failure { reason: Reason::ContentMismatch, message: format!("what was restored is not what was backed up: {how}") }
}

/// A revision that was compacted away, or that is not there yet, is in the backup.
fn refused(error: Error) -> Failure {
    match error.cause {
        Cause::Compacted | Cause::FutureRevision => not_the_same(error.to_string()),
        _ => Failure { reason: Reason::EtcdUnreachable, message: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_compared_only_at_the_same_compact_revision() {
        let expected = KvHash { hash: 7, compact_revision: 3 };
        assert_eq!(compare_hashes(expected, expected), Ok(None));
        let other = compare_hashes(expected, KvHash { hash: 8, compact_revision: 3 }).unwrap_err();
        assert_eq!(other.reason, Reason::ContentMismatch);
        assert!(other.message.contains("keys is 8, and that of the backup is 7"), "{}", other.message);
        let remark = compare_hashes(expected, KvHash { hash: 8, compact_revision: 4 }).unwrap().unwrap();
        assert!(remark.contains("revision 3 and the other up to 4"), "{remark}");
    }
}
