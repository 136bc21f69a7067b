//! Checks the data dir: compares what the operator expects with what is there, and decides whether etcd may start.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use etcd_operator_datadir::{archive, identity};
use etcd_operator_protocol::gate::{
    DataDirContents, ExpectedData, Identity, REFUSED, StartDecision, decide_start, read_expected_data,
};
use etcd_operator_protocol::ids::{ClusterId, MemberId};

/// The settings of the check, from the environment.
pub struct Settings {
    pub data_dir: PathBuf,
    pub expected: ExpectedData,
    /// Where a backup is restored before it takes the place of the data, if there is one to restore.
    pub restore_dir: Option<PathBuf>,
}

impl Settings {
    /// The kubelet takes `GATE_DATA` and the IDs from the pod's annotations whenever it starts a container, and
    /// leaves them empty if there is no such annotation.
    pub fn from_env() -> anyhow::Result<Self> {
        let text = |variable: &str| env::var_os(variable).unwrap_or_default().to_string_lossy().into_owned();
        let expected = read_expected_data(&text("GATE_DATA"), &text("GATE_MEMBER_ID"), &text("GATE_CLUSTER_ID"));
        let path = |variable: &str| env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
        Ok(Self {
            restore_dir: path("GATE_RESTORE_DIR"),
            data_dir: path("GATE_DATA_DIR").context("GATE_DATA_DIR does not say where the data is")?,
            expected: expected.map_err(|message| anyhow!(message))?,
        })
    }
}

/// Says what was found if etcd may start, after moving away what etcd must not find. The error says why it may not.
pub fn check(settings: &Settings) -> anyhow::Result<String> {
    let Settings { data_dir, expected, .. } = settings;
    let found = look(data_dir)?;
    match decide_start(*expected, &found) {
        StartDecision::Start => {
            clear_incomplete(data_dir, &found)?;
            Ok(format!("may start: {}", describe(&found)))
        }
        StartDecision::Archive(why) => {
            let label = expected.identity.map_or("unknown".to_owned(), |identity| identity.member_id.to_string());
            let moved = archive(data_dir, &format!("before-{label}"));
            let moved = moved.with_context(|| format!("moving the stale data in {} aside", data_dir.display()))?;
            Ok(format!("may start with no data: {why}; it was moved to {}", moved.display()))
        }
        StartDecision::Refuse(message) => bail!(message),
    }
}

/// The same, right before etcd starts. A backup that was to be restored must be there by now: without it etcd would found a
/// cluster without any data.
pub fn check_before_start(settings: &Settings) -> anyhow::Result<String> {
    if settings.restore_dir.is_some() && look(&settings.data_dir)? == DataDirContents::Nothing {
        bail!("{REFUSED}the backup was restored, but its data is gone");
    }
    check(settings)
}

pub fn look(data_dir: &Path) -> anyhow::Result<DataDirContents> {
    let found = identity::read(data_dir).with_context(|| format!("reading {}", data_dir.display()))?;
    Ok(match found {
        identity::DataDir::Nothing => DataDirContents::Nothing,
        identity::DataDir::Member(found) => DataDirContents::Member(Identity {
            member_id: MemberId(found.member_id),
            cluster_id: ClusterId(found.cluster_id),
        }),
        identity::DataDir::Unreadable(why) => DataDirContents::Unreadable(why),
    })
}

/// A start that was cut short may leave a database without a log. etcd would take it for its own, so it is moved aside.
pub fn clear_incomplete(data_dir: &Path, found: &DataDirContents) -> anyhow::Result<()> {
    if *found == DataDirContents::Nothing && data_dir.join("member").exists() {
        // The name is on volumes, so it stays.
        archive(data_dir, "half-made").with_context(|| format!("moving an incomplete {} aside", data_dir.display()))?;
    }
    Ok(())
}

fn describe(found: &DataDirContents) -> String {
    match found {
        DataDirContents::Nothing => "there is no data".to_owned(),
        DataDirContents::Member(identity) => format!("the data is that of member {}", identity.member_id),
        DataDirContents::Unreadable(why) => format!("the data can't be read ({why})"),
    }
}
