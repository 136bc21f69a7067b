//! Takes a snapshot of one member and keeps it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use etcd_operator_etcd::{Cause, Error, MemberClient, SnapshotStream, Status};
use etcd_operator_protocol::manifest::{KvHash, Manifest};
use etcd_operator_protocol::report::{Done, Failure, Pruned, Reason};
use etcd_operator_protocol::task::Backup;
use etcd_operator_store::destination::{Destination, There};
use etcd_operator_store::upload::{Encoded, Encoding, Upload};
use jiff::Timestamp;
use tracing::{info, warn};

use crate::members::{self, ReachableMember};
use crate::numbers::signed;
use crate::prune;
use crate::shutdown::Shutdown;

/// How long the next piece of a snapshot may take.
const PIECE: Duration = Duration::from_secs(30);
/// How long a member may take to go through its keys, and how long to read and hash all of its data.
const COUNTING: Duration = Duration::from_secs(60);
const HASHING: Duration = Duration::from_secs(600);
/// How often a snapshot is begun if history is compacted away at that very moment.
const BEGINNINGS: u32 = 10;
/// How long tidying up may take: the kubelet gives a pod half a minute to end.
const TIDYING: Duration = Duration::from_secs(10);

pub async fn take(task: &Backup, shutdown: &Shutdown) -> Result<Done, Failure> {
    let to = Destination::open(&task.to)?;
    let manifest = match shutdown.before(to.what_is_there(&task.origin)).await? {
        There::Nothing => take_new(task, &to, shutdown).await?,
        There::Whole(manifest) => {
            info!(url = to.url(), revision = manifest.revision, "an earlier attempt has done this already");
            *manifest
        }
        There::Foreign(why) => return Err(Failure { reason: Reason::ObjectExists, message: why }),
    };
    let pruned = match (&task.retention, &task.origin.schedule) {
        (Some(retention), Some(schedule)) => {
            let all = task.all_below.as_ref().map(Destination::open).transpose()?.unwrap_or(to);
            let pruned = shutdown.before(prune::of_schedule(&all, schedule, Some(retention))).await;
            Some(pruned.unwrap_or_else(not_pruned))
        }
        _ => None,
    };
    Ok(Done { manifest: Some(manifest), pruned, ..Done::default() })
}

/// The backup is there, whatever becomes of older ones.
fn not_pruned(failure: Failure) -> Pruned {
    warn!(reason = ?failure.reason, "older backups were not pruned: {}", failure.message);
    Pruned { problem: Some(failure.message), ..Pruned::default() }
}

/// Asks one member after the other until one gives its snapshot.
async fn take_new(task: &Backup, to: &Destination, shutdown: &Shutdown) -> Result<Manifest, Failure> {
    let mut failures = Vec::new();
    for member in shutdown.before(members::reachable(&task.endpoints)).await? {
        match take_from(member, task, to, shutdown).await {
            Err(failure) if matches!(failure.reason, Reason::EtcdUnreachable | Reason::BadStream) => {
                warn!(reason = ?failure.reason, "this member gives no snapshot: {}", failure.message);
                failures.push(failure);
            }
            outcome => return outcome,
        }
    }
    let reason = failures.first().map_or(Reason::EtcdUnreachable, |failure| failure.reason);
    let messages: Vec<String> = failures.into_iter().map(|failure| failure.message).collect();
    Err(Failure { reason, message: messages.join("; ") })
}

async fn take_from(
    member: ReachableMember,
    task: &Backup,
    to: &Destination,
    shutdown: &Shutdown,
) -> Result<Manifest, Failure> {
    let mut begun = shutdown.before(begin(&member)).await?;
    let (revision, keys, db_size) = (begun.status.revision, begun.keys, begun.status.db_size);
    info!(
        member = member.probed.url,
        version = begun.status.version,
        revision,
        keys,
        db_size,
        "streaming the snapshot"
    );

    let start = Instant::now();
    let encoding = Encoding { compress: task.compress, recipients: task.recipients.clone() };
    // This is not dropped in the middle: parts that nobody has written down would stay in the store for ever.
    let mut upload = Upload::begin(to, &task.origin, &encoding).await?;
    let hash = async { if task.hash_keys { hash(&member.client, revision).await } else { None } };
    let carried = async { tokio::try_join!(carry(&mut begun, &mut upload), async { Ok(hash.await) }) };
    let kv_hash = match shutdown.before(carried).await {
        Ok(((), hash)) => hash,
        Err(failure) => {
            if tokio::time::timeout(TIDYING, upload.abort()).await.is_err() {
                warn!("what was uploaded so far could not be removed in time; the next attempt will do that");
            }
            return Err(failure);
        }
    };
    let encoded = shutdown.before(upload.finish()).await.map_err(|failure| Failure {
        message: match failure.reason {
            Reason::BadStream => format!("the snapshot of {}: {}", member.probed.url, failure.message),
            _ => failure.message,
        },
        ..failure
    })?;
    let (snapshot_size, object_size) = (encoded.snapshot.size, encoded.object.size);
    info!(url = to.url(), snapshot_size, object_size, seconds = start.elapsed().as_secs_f32(), "the snapshot is there");

    let manifest = manifest(task, &member, begun, encoded, kv_hash);
    shutdown.before(to.write_manifest(&manifest)).await?;
    info!(url = to.url(), kv_hash = ?kv_hash.map(|hash| hash.hash), "the manifest is there");
    Ok(manifest)
}

/// A snapshot of which the first piece is there, and what is known to be in it.
struct Begun {
    taken_at: Timestamp,
    /// From before the snapshot: all that the member had then is in it.
    status: Status,
    keys: u64,
    first: Bytes,
    rest: SnapshotStream,
}

/// The keys are counted when the snapshot has been made: at a revision that can still be read then, it can be read in the
/// snapshot too.
async fn begin(member: &ReachableMember) -> Result<Begun, Failure> {
    let mut compacted = 0;
    loop {
        let taken_at = Timestamp::now();
        let mut client = member.client.with_deadline(PIECE);
        let status = client.status().await.map_err(unreachable)?;
        let mut rest = client.snapshot().await.map_err(unreachable)?;
        let first = rest.next().await.map_err(broken)?;
        let first = first.ok_or_else(|| bad_stream(format!("the snapshot of {} is empty", member.probed.url)))?;
        // An address may stand for several members, and the connection may have been lost in between.
        let after = client.status().await.map_err(unreachable)?;
        if [status.member_id, after.member_id] != [member.probed.status.member_id; 2] {
            let message = format!("behind {} there is another member from one call to the next", member.probed.url);
            return Err(Failure { reason: Reason::EtcdUnreachable, message });
        }
        match client.with_deadline(COUNTING).count_keys(status.revision).await {
            Ok(keys) => return Ok(Begun { taken_at, status, keys, first, rest }),
            Err(error) if error.cause == Cause::Compacted && compacted < BEGINNINGS => {
                compacted += 1;
                info!(revision = status.revision, "compacted away while the snapshot began: beginning again");
            }
            Err(error) => return Err(unreachable(error)),
        }
    }
}

async fn carry(begun: &mut Begun, upload: &mut Upload) -> Result<(), Failure> {
    upload.write(std::mem::take(&mut begun.first)).await?;
    while let Some(piece) = begun.rest.next().await.map_err(broken)? {
        upload.write(piece).await?;
    }
    Ok(())
}

/// Without a hash the backup is as good, just less of it can be verified.
async fn hash(client: &MemberClient, revision: u64) -> Option<KvHash> {
    match client.with_deadline(HASHING).hash_kv(revision).await {
        Ok(hash) => Some(KvHash { hash: hash.hash, compact_revision: signed(hash.compact_revision) }),
        Err(error) => {
            warn!("there will be no hash of the keys: {error}");
            None
        }
    }
}

fn manifest(
    task: &Backup,
    member: &ReachableMember,
    begun: Begun,
    encoded: Encoded,
    kv_hash: Option<KvHash>,
) -> Manifest {
    Manifest {
        origin: task.origin.clone(),
        cluster_id: format!("{:x}", begun.status.cluster_id),
        revision: signed(begun.status.revision),
        keys: signed(begun.keys),
        etcd_version: begun.status.version,
        member: member.probed.url.clone(),
        with_quorum: member.with_quorum,
        taken_at: begun.taken_at,
        snapshot_size: encoded.snapshot.size,
        snapshot_sha256: encoded.snapshot.sha256,
        object_size: encoded.object.size,
        object_sha256: encoded.object.sha256,
        compression: encoded.compression,
        encryption: encoded.encryption,
        kv_hash,
        to_verify: task.hash_keys,
    }
}

fn unreachable(error: Error) -> Failure {
    Failure { reason: Reason::EtcdUnreachable, message: error.to_string() }
}

fn broken(error: Error) -> Failure {
    bad_stream(error.to_string())
}

fn bad_stream(message: String) -> Failure {
    Failure { reason: Reason::BadStream, message }
}
