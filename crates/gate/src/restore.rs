//! Restores the backup that was fetched: next to the data dir, so that the data dir is complete or empty, whenever the pod is
//! stopped in between.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use etcd_operator_protocol::gate::{DataDirContents, DataState};

use crate::arguments::Program;
use crate::check::{Settings, clear_incomplete, look};

/// Whether the backup still has to be restored. Not if the member ran already: whatever became of its data since, it is not
/// what the backup holds.
pub fn is_to_do(settings: &Settings) -> anyhow::Result<bool> {
    let has_run = settings.expected.data == DataState::Existing;
    Ok(settings.restore_dir.is_some() && !has_run && look(&settings.data_dir)? == DataDirContents::Nothing)
}

/// Makes the folder that the backup is fetched into.
pub fn make_room(settings: &Settings) -> anyhow::Result<()> {
    let Some(folder) = &settings.restore_dir else { return Ok(()) };
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))
}

/// Lets the program restore the backup into the folder `data` below the one that is set aside for it, and puts that in place.
pub fn restore(settings: &Settings, program: &Program) -> anyhow::Result<()> {
    let restore_dir = settings.restore_dir.as_deref().context("GATE_RESTORE_DIR does not say where to restore")?;
    let restored = restore_dir.join("data");
    remove(&restored)?;
    let path = program.path.display();
    let ended = Command::new(&program.path).args(&program.arguments).output();
    let ended = ended.with_context(|| format!("starting {path}"))?;
    let words = String::from_utf8_lossy(&ended.stderr);
    print!("{words}");
    if !ended.status.success() {
        let last = words.trim().lines().last().unwrap_or("it said nothing").to_owned();
        bail!("{path} could not restore the backup ({}): {last}", ended.status);
    }
    match (look(&restored)?, settings.expected.identity) {
        (DataDirContents::Member(found), Some(expected)) if found == expected => {}
        (found, expected) => bail!("{path} restored unexpected data: {found:?} instead of {expected:?}"),
    }
    clear_incomplete(&settings.data_dir, &DataDirContents::Nothing)?;
    put_in_place(&restored, &settings.data_dir)?;
    remove(restore_dir)?;
    println!("the backup is restored");
    Ok(())
}

/// What was moved aside in the place of the data stays there.
fn put_in_place(restored: &Path, data_dir: &Path) -> anyhow::Result<()> {
    let moved = fs::create_dir_all(data_dir)
        .and_then(|()| fs::rename(restored.join("member"), data_dir.join("member")))
        .and_then(|()| fs::File::open(data_dir)?.sync_all());
    moved.with_context(|| format!("moving what is in {} to {}", restored.display(), data_dir.display()))
}

/// Removes a folder and what is in it, if it is there.
fn remove(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done.with_context(|| format!("removing {}", folder.display())),
    }
}
