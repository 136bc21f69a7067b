//! The look at the data: what was told, what is there, and what follows from both.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use etcd_operator_core::gate::{Found, Verdict, read_told, verdict};
use etcd_operator_core::observed::{Identity, Told};
use etcd_operator_etcd::{archive, identity};

/// What is known before the look.
pub struct Settings {
    data_dir: PathBuf,
    told: Told,
}

impl Settings {
    /// The kubelet takes `GATE_DATA` and the IDs from the pod's annotations, anew whenever it starts a container, and
    /// leaves them empty if there is no such annotation.
    pub fn from_env() -> anyhow::Result<Self> {
        let text = |variable: &str| env::var_os(variable).unwrap_or_default().to_string_lossy().into_owned();
        let told = read_told(&text("GATE_DATA"), &text("GATE_MEMBER_ID"), &text("GATE_CLUSTER_ID"));
        let data_dir = env::var_os("GATE_DATA_DIR").filter(|path| !path.is_empty());
        Ok(Self {
            data_dir: data_dir.context("GATE_DATA_DIR does not say where the data is")?.into(),
            told: told.map_err(|message| anyhow!(message))?,
        })
    }
}

/// Says what was found if etcd may start, after moving away what etcd must not find. The error says why it may not.
pub fn check(settings: &Settings) -> anyhow::Result<String> {
    let Settings { data_dir, told } = settings;
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

fn look(data_dir: &Path) -> anyhow::Result<Found> {
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
fn clear_half_made(data_dir: &Path, found: &Found) -> anyhow::Result<()> {
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
