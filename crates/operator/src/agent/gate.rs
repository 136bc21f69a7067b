//! The gate: an init container that looks at a member's data before etcd does. It lets the member start, moves stale data
//! aside first, or refuses, and tells what it found in the container's termination message.

use std::path::Path;

use anyhow::{Context, bail};
use etcd_operator_api::parse_id;
use etcd_operator_core::gate::{Found, Verdict, verdict};
use etcd_operator_core::observed::{Identity, Told};
use etcd_operator_etcd::{archive, identity};

use crate::cli::GateOptions;
use crate::objects::annotations::read_data;

/// Where the kubelet looks for a container's last words.
const TERMINATION_MESSAGE: &str = "/dev/termination-log";

pub fn run(options: &GateOptions) -> anyhow::Result<()> {
    let told = told(options)?;
    let found = look(&options.data_dir)?;
    match verdict(told, &found) {
        Verdict::Start => {
            clear_half_made(&options.data_dir, &found)?;
            say(&format!("may start: {}", describe(&found)))
        }
        Verdict::Archive(why) => {
            let label = options.member_id.as_deref().unwrap_or("unknown");
            let moved = archive(&options.data_dir, &format!("before-{label}"));
            let moved =
                moved.with_context(|| format!("moving the stale data in {} aside", options.data_dir.display()))?;
            say(&format!("may start with no data: {why}; it was moved to {}", moved.display()))
        }
        Verdict::Refuse(message) => {
            say(&message)?;
            bail!("this member may not start: {message}")
        }
    }
}

fn told(options: &GateOptions) -> anyhow::Result<Told> {
    let data = read_data(&options.data).with_context(|| format!("not a way to start: {}", options.data))?;
    let id = |text: &Option<String>| match text.as_deref().filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => parse_id(text).map(Some).with_context(|| format!("not an ID: {text}")),
    };
    let identity = match (id(&options.member_id)?, id(&options.cluster_id)?) {
        (Some(member_id), Some(cluster_id)) => Some(Identity { member_id, cluster_id }),
        _ => None,
    };
    Ok(Told { data, identity })
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

fn say(message: &str) -> anyhow::Result<()> {
    println!("{message}");
    std::fs::write(TERMINATION_MESSAGE, message).with_context(|| format!("writing {TERMINATION_MESSAGE}"))
}
