//! Deletes the backups of a schedule that no retention rule keeps, and what its killed pods have left behind.

use std::collections::HashSet;

use etcd_operator_protocol::manifest::{self, Manifest};
use etcd_operator_protocol::report::{Failure, Pruned};
use etcd_operator_protocol::retention::{Proof, Stored, backups_to_delete};
use etcd_operator_protocol::task::Retention;
use etcd_operator_protocol::{marker, proof};
use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use object_store::path::Path;

use crate::address::Store;
use crate::destination::Destination;
use crate::files;
use crate::multipart::remove_named;

/// Manifests and markers that are read at the same time.
const AT_ONCE: usize = 8;
/// A backup that was begun so long ago and is still unfinished will never be finished: its pod is gone.
const ABANDONED_AFTER: SignedDuration = SignedDuration::from_hours(24);
/// As much room as there is in a report for the names of what would be deleted.
const ROOM_FOR_NAMES: usize = 2000;

struct Backup {
    object: Path,
    stored: Stored,
}

/// Looks at everything in the directory of `below` and the directories in it, and removes of what belongs to the schedule
/// what may go: all of it, if there is no retention. Fails only if it cannot look; what could not be removed is in the
/// report.
pub async fn prune(
    below: &Destination,
    schedule: &str,
    retention: Option<&Retention>,
    now: Timestamp,
) -> Result<Pruned, Failure> {
    let names: HashSet<Path> = below.list().await?.into_iter().collect();
    let mut problems = Vec::new();
    let (backups, orphans) = find_backups(below, schedule, &names, &mut problems).await;
    let stored: Vec<_> = backups.iter().map(|backup| backup.stored).collect();
    let may_go = match retention {
        Some(rules) => backups_to_delete(rules, &stored, now)?,
        None => (0..backups.len()).collect(),
    };
    let kept = count(backups.len() - may_go.len());
    let may_go = may_go.iter().map(|&index| &backups[index].object);
    if retention.is_some_and(|rules| rules.dry_run) {
        let would_delete = truncated(may_go.map(|object| below.name_of(object)));
        return Ok(Pruned { kept, would_delete, problem: summary(&problems), ..Pruned::default() });
    }

    let mut deleted = 0;
    for object in may_go {
        match delete(below, object).await {
            Ok(()) => deleted += 1,
            Err(failure) => problems.push(failure.message),
        }
    }
    for object in &orphans {
        problems.extend(delete(below, object).await.err().map(|failure| failure.message));
    }
    remove_orphaned_proofs(below, schedule, &names, &mut problems).await;
    let begun_before = if retention.is_some() { now - ABANDONED_AFTER } else { Timestamp::MAX };
    remove_abandoned(below, schedule, &names, begun_before, &mut problems).await;
    Ok(Pruned { kept, deleted, problem: summary(&problems), ..Pruned::default() })
}

/// The backups of a schedule, and those of which only the manifest is left. What cannot be read is passed over: rules keep
/// what they keep also if they do not see everything.
async fn find_backups(
    below: &Destination,
    schedule: &str,
    names: &HashSet<Path>,
    problems: &mut Vec<String>,
) -> (Vec<Backup>, Vec<Path>) {
    let objects = names.iter().filter_map(|name| without_suffix(name, manifest::SUFFIX));
    let reads = objects.map(|object| async {
        let found = look_at(below, &object, schedule, names).await;
        (object, found)
    });
    let mut reads = futures::stream::iter(reads).buffer_unordered(AT_ONCE);
    let (mut backups, mut orphans) = (Vec::new(), Vec::new());
    while let Some((object, found)) = reads.next().await {
        match found {
            Ok(ObjectKind::Backup(stored)) => backups.push(Backup { object, stored }),
            Ok(ObjectKind::Orphan) => orphans.push(object),
            Ok(ObjectKind::Foreign) => {}
            Err(failure) => problems.push(failure.message),
        }
    }
    // Of two with the same time the same one goes first, whatever the order in which they were read.
    backups.sort_by(|a, b| (a.stored.taken_at, &a.object).cmp(&(b.stored.taken_at, &b.object)));
    (backups, orphans)
}

/// What a manifest turns out to belong to.
enum ObjectKind {
    Backup(Stored),
    /// Its object is not there.
    Orphan,
    Foreign,
}

async fn look_at(
    below: &Destination,
    object: &Path,
    schedule: &str,
    names: &HashSet<Path>,
) -> Result<ObjectKind, Failure> {
    let manifest = below.read_manifest_of(object).await?;
    let Some(manifest) = manifest.filter(|it| it.origin.schedule.as_deref() == Some(schedule)) else {
        return Ok(ObjectKind::Foreign);
    };
    // Names that appear while a list is made may be in it or not, so one that is not there is asked for.
    if !names.contains(object) && below.size_of(object).await?.is_none() {
        return Ok(ObjectKind::Orphan);
    }
    let proof = proof_of(below, object, &manifest, names).await?;
    Ok(ObjectKind::Backup(Stored { taken_at: manifest.taken_at, proof }))
}

async fn proof_of(
    below: &Destination,
    object: &Path,
    manifest: &Manifest,
    names: &HashSet<Path>,
) -> Result<Proof, Failure> {
    let may_be_there = manifest.to_verify || names.contains(&below.beside(object, proof::SUFFIX)?);
    Ok(match may_be_there && below.is_proven(object, manifest).await? {
        true => Proof::Given,
        false if manifest.to_verify => Proof::Missing,
        // Only what is to be verified gets a hash, and earlier versions said so nowhere else.
        false if manifest.kv_hash.is_some() => Proof::Unrecorded,
        false => Proof::NotAsked,
    })
}

/// The object goes first. If this ends in between, the manifest is still there to say what there was: the next time it
/// is found to be without its object, which makes it no backup, and is removed. The other way round there would be an
/// object that nobody knows, for ever.
async fn delete(below: &Destination, object: &Path) -> Result<(), Failure> {
    below.delete(object).await?;
    below.delete(&below.beside(object, proof::SUFFIX)?).await?;
    below.delete(&below.beside(object, manifest::SUFFIX)?).await
}

/// Removes proofs without a backup: a pod was still verifying a backup of this schedule when it was deleted.
async fn remove_orphaned_proofs(
    below: &Destination,
    schedule: &str,
    names: &HashSet<Path>,
    problems: &mut Vec<String>,
) {
    for object in names.iter().filter_map(|name| without_suffix(name, proof::SUFFIX)) {
        let removed = remove_proof_if_orphaned(below, schedule, &object, names).await;
        problems.extend(removed.err().map(|failure| failure.message));
    }
}

async fn remove_proof_if_orphaned(
    below: &Destination,
    schedule: &str,
    object: &Path,
    names: &HashSet<Path>,
) -> Result<(), Failure> {
    let (key, manifest) = (below.beside(object, proof::SUFFIX)?, below.beside(object, manifest::SUFFIX)?);
    if names.contains(object) || names.contains(&manifest) {
        return Ok(());
    }
    let proof = below.read_proof(&key).await?;
    let is_ours = proof.is_some_and(|proof| proof.origin.schedule.as_deref() == Some(schedule));
    // A list may lack what is there.
    if is_ours && below.size_of(object).await?.is_none() && below.size_of(&manifest).await?.is_none() {
        below.delete(&key).await?;
    }
    Ok(())
}

/// Removes what pods of this schedule have begun and will never finish. The marker goes last, because it is what is found.
async fn remove_abandoned(
    below: &Destination,
    schedule: &str,
    names: &HashSet<Path>,
    begun_before: Timestamp,
    problems: &mut Vec<String>,
) {
    for object in names.iter().filter_map(|name| without_suffix(name, marker::SUFFIX)) {
        let removed = remove_if_abandoned(below, schedule, &object, begun_before).await;
        problems.extend(removed.err().map(|failure| failure.message));
    }
}

async fn remove_if_abandoned(
    below: &Destination,
    schedule: &str,
    object: &Path,
    begun_before: Timestamp,
) -> Result<(), Failure> {
    let key = below.beside(object, marker::SUFFIX)?;
    let marker = match below.read_marker(&key).await? {
        Some(marker) if marker.origin.schedule.as_deref() == Some(schedule) && marker.begun_at < begun_before => marker,
        _ => return Ok(()),
    };
    if below.size_of(&below.beside(object, manifest::SUFFIX)?).await?.is_none() {
        match (below.address.store, &marker.upload) {
            (Store::Files, _) => files::remove_leftovers(object).await?,
            (_, Some(id)) => remove_named(below, object, id).await?,
            (_, None) => {}
        }
        below.delete(object).await?;
    }
    below.delete(&key).await
}

fn without_suffix(name: &Path, suffix: &str) -> Option<Path> {
    name.as_ref().strip_suffix(suffix).and_then(|object| Path::parse(object).ok())
}

fn truncated(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut said = Vec::new();
    let mut room = ROOM_FOR_NAMES;
    let mut others = 0;
    for name in names {
        match room.checked_sub(name.len()) {
            Some(rest) if others == 0 => {
                room = rest;
                said.push(name);
            }
            _ => others += 1,
        }
    }
    if others > 0 {
        said.push(format!("and {others} more"));
    }
    said
}

fn summary(problems: &[String]) -> Option<String> {
    match problems {
        [] => None,
        [only] => Some(only.clone()),
        [first, others @ ..] => Some(format!("{first} (and {} more)", others.len())),
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
