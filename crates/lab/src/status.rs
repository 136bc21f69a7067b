//! What `lab status` prints.

use anyhow::Result;

use crate::node::Node;
use crate::stores::Store;
use crate::{api, control, lifecycle, network, paths, process};

pub async fn print() -> Result<()> {
    lifecycle::require()?;
    let running = process::programs(control::GROUP)?;
    let missing: Vec<&str> =
        control::PROGRAMS.into_iter().filter(|program| !running.iter().any(|name| name == program)).collect();
    let answers = api::is_ready().await;
    println!("control plane  {}", describe(&missing, if answers { "answers" } else { "does not answer" }));
    let ready = if answers { api::nodes(&api::client().await?).await? } else { Vec::new() };
    for node in Node::all() {
        println!("{:<13}  {}", node.name(), describe_node(&node, &ready)?);
    }
    for store in Store::ALL.into_iter().filter(|store| store.was_ever_up()) {
        let state = if store.is_running()? { "runs" } else { "stopped" };
        println!("{:<13}  {state}", format!("store {}", store.name()));
    }
    println!("logs           {}", paths::data("log").display());
    Ok(())
}

fn describe_node(node: &Node, ready: &[(String, bool)]) -> Result<String> {
    if !node.is_on() {
        return Ok("powered off".to_owned());
    }
    if !network::is_connected(node)? {
        return Ok("cut from the network".to_owned());
    }
    let is_ready = ready.iter().any(|(name, ready)| *name == node.name() && *ready);
    Ok(describe(&node.missing_programs()?, if is_ready { "Ready" } else { "not Ready" }))
}

fn describe(missing: &[&str], state: &str) -> String {
    if missing.is_empty() { state.to_owned() } else { format!("{state}, not running: {}", missing.join(", ")) }
}
