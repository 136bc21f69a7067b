//! The look at the data: what was told, what is there, and what follows from both.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use etcd_operator_core::gate::{Found, REFUSED, Verdict, read_told, verdict};
use etcd_operator_core::observed::{Identity, Told};
use etcd_operator_etcd::{archive, identity};

/// What is known before the look.
pub struct Settings {
    pub data_dir: PathBuf,
    pub told: Told,
    /// Where a backup is restored before it takes the place of the data, if there is one to restore.
    pub restore_dir: Option<PathBuf>,
}

impl Settings {
    /// The kubelet takes `GATE_DATA` and the IDs from the pod's annotations, anew whenever it starts a container, and
    /// leaves them empty if there is no such annotation.
    pub fn from_env() -> anyhow::Result<Self> {
        let text = |variable: &str| env::var_os(variable).unwrap_or_default().to_string_lossy().into_owned();
        let told = read_told(&text("GATE_DATA"), &text("GATE_MEMBER_ID"), &text("GATE_CLUSTER_ID"));
        let path = |variable: &str| env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
        Ok(Self {
            restore_dir: path("GATE_RESTORE_DIR"),
            data_dir: path("GATE_DATA_DIR").context("GATE_DATA_DIR does not say where the data is")?,
            told: told.map_err(|message| anyhow!(message))?,
        })
    }
}

/// Says what was found if etcd may start, after moving away what etcd must not find. The error says why it may not.
pub fn check(settings: &Settings) -> anyhow::Result<String> {
    let Settings { data_dir, told, .. } = settings;
    let found = look(data_dir)?;
    match verdict(*told, &found) {
        Verdict::Start => {
            clear_half_made(data_dir, &found)?;
            Ok(format!("may start: {}", describe(&found)))
        }
        Verdict::Archive(why) => {
            let label = told.identity.map_or("unknown".to_owned(), |identity| format!("{:x}", identity.member_id));
            let moved = archive(data_dir, &format!("before-{label}"));
            let moved = moved.with_context(|| format!("moving the stale data in {} aside", data_dir.display()))?;
            Ok(format!("may start with no data: {why}; it was moved to {}", moved.display()))
        }
        Verdict::Refuse(message) => bail!(message),
    }
}

/// The same, right before etcd starts. A backup that was to be restored must be there by now: without it etcd would found a
/// cluster without any data.
pub fn check_before_start(settings: &Settings) -> anyhow::Result<String> {
    if settings.restore_dir.is_some() && look(&settings.data_dir)? == Found::Nothing {
        bail!("{REFUSED}the backup was restored, but its data is gone");
    }
    check(settings)
}

pub fn look(data_dir: &Path) -> anyhow::Result<Found> {
    let found = identity::read(data_dir).with_context(|| format!("reading {}", data_dir.display()))?;
    Ok(match found {
        identity::Found::Nothing => Found::Nothing,
        identity::Found::Member(found) => {
            Found::Member(Identity { member_id: found.member_id, cluster_id: found.cluster_id })
        }
        identity::Found::Unreadable(why) => Found::Unreadable(why),
    })
}

/// A start that was cut short may leave a database without a log. etcd would take it for its own, so it is moved aside.
pub fn clear_half_made(data_dir: &Path, found: &Found) -> anyhow::Result<()> {
    if *found == Found::Nothing && data_dir.join("member").exists() {
        archive(data_dir, "half-made").with_context(|| format!("moving a half-made {} aside", data_dir.display()))?;
    }
    Ok(())
}

fn describe(found: &Found) -> String {
    match found {
        Found::Nothing => "there is no data".to_owned(),
        Found::Member(identity) => format!("the data is that of member {:x}", identity.member_id),
        Found::Unreadable(why) => format!("the data can't be read ({why})"),
    }
}
