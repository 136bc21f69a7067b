//! The lab's network: a namespace for the control plane that also holds the bridge, one for each node, and a single
//! cable to the machine itself. No port of the machine is used, and nothing has a default route, so the lab's
//! addresses can't leave the machine.
//!
//! ```text
//! machine 10.199.0.1 ── bridge in the namespace `control` 10.199.0.2 ──┬── namespace `node1` 10.199.0.11, pods 10.200.4.0/22
//!                       API server, DNS                                ├── namespace `node2` 10.199.0.12, pods 10.200.8.0/22
//!                                                                      └── namespace `node3` 10.199.0.13, pods 10.200.12.0/22
//! ```

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::node::Node;
use crate::{command, paths};

/// The machine's end of its cable to the lab.
pub const CABLE: &str = "etcdlab0";
pub const MACHINE_ADDRESS: &str = "10.199.0.1";
pub const CONTROL_ADDRESS: &str = "10.199.0.2";
const NODES: &str = "10.199.0.0/24";
pub const PODS: &str = "10.200.0.0/16";
pub const SERVICES: &str = "10.201.0.0/16";
/// The first address of the service range is always the API server's.
pub const API_SERVICE_ADDRESS: &str = "10.201.0.1";
const CONTROL: &str = "control";
const BRIDGE: &str = "bridge";

/// The file that keeps a namespace alive. Not under /run/netns: `ip netns` leaves a mount behind there.
pub fn namespace(name: &str) -> PathBuf {
    paths::run("netns").join(name)
}

pub fn control_namespace() -> PathBuf {
    namespace(CONTROL)
}

/// Refuses to start where the lab's addresses are in use already.
pub fn check_addresses_are_free() -> Result<()> {
    let routes = command::run_line("ip -json -4 route show table all")?;
    let routes: serde_json::Value = serde_json::from_str(&routes).context("reading the machine's routes")?;
    for route in routes.as_array().into_iter().flatten() {
        let destination = route["dst"].as_str().unwrap_or_default();
        let device = route["dev"].as_str().unwrap_or("a route of its own");
        if device == CABLE || route["type"].as_str() == Some("unreachable") {
            continue;
        }
        if let Some(range) = [NODES, PODS, SERVICES].into_iter().find(|range| overlap(range, destination)) {
            bail!("The lab needs the addresses {range}, but this machine already uses {destination} ({device}).");
        }
    }
    Ok(())
}

/// Lays the bridge and the cable to the machine.
pub fn create() -> Result<()> {
    create_namespace(CONTROL)?;
    let control = control_namespace();
    // With a hardware address of its own: else it takes one of its ports', changes it whenever a node comes or goes, and
    // nobody finds the API server for a while.
    inside(CONTROL, &format!("link add {BRIDGE} address 02:00:0a:c7:00:02 type bridge"))?;
    inside(CONTROL, &format!("address add {CONTROL_ADDRESS}/24 dev {BRIDGE}"))?;
    inside(CONTROL, &format!("link set {BRIDGE} up"))?;

    // The ranges are made unreachable first, so that no packet for them ever takes the machine's default route.
    for range in [PODS, SERVICES] {
        command::run_line(&format!("ip route replace unreachable {range}"))?;
    }
    let peer = format!("peer name machine netns {}", control.display());
    command::run_line(&format!("ip link add {CABLE} type veth {peer}"))?;
    command::run_line(&format!("ip address add {MACHINE_ADDRESS}/24 dev {CABLE}"))?;
    command::run_line(&format!("ip link set {CABLE} up"))?;
    plug_into_bridge("machine")
}

/// Gives a node its namespace, its cable and its routes.
pub fn add_node(node: &Node) -> Result<()> {
    let name = node.name();
    create_namespace(&name)?;
    let peer = format!("peer name eth0 netns {}", namespace(&name).display());
    inside(CONTROL, &format!("link add {name} type veth {peer}"))?;
    plug_into_bridge(&name)?;
    inside(&name, &format!("address add {}/24 dev eth0", node.address()))?;
    inside(&name, "link set eth0 up")?;
    let forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
    command::run("nsenter", [&net_option(&name), "sh", "-c", forward])?;
    // A process on the node itself needs some route for service addresses before they are translated.
    inside(&name, &format!("route add {SERVICES} dev eth0"))?;
    for other in Node::all().filter(|other| other != node) {
        inside(&name, &format!("route add {} via {}", other.pods(), other.address()))?;
    }
    let route = format!("route replace {} via {}", node.pods(), node.address());
    inside(CONTROL, &route)?;
    command::run_line(&format!("ip {route}")).map(drop)
}

/// Takes a node's namespace away, as a power cut does. Its cable goes with it.
pub fn remove_node(node: &Node) -> Result<()> {
    remove_namespace(&node.name())
}

/// Pulls or plugs a node's cable. Its pods still reach each other, and nothing else.
pub fn set_connected(node: &Node, connected: bool) -> Result<()> {
    let state = if connected { "up" } else { "down" };
    inside(CONTROL, &format!("link set {} {state}", node.name())).map(drop)
}

pub fn is_connected(node: &Node) -> Result<bool> {
    let link = inside(CONTROL, &format!("-json link show {}", node.name()))?;
    let link: serde_json::Value = serde_json::from_str(&link).context("reading a link's state")?;
    Ok(link[0]["flags"].as_array().is_some_and(|flags| flags.iter().any(|flag| flag == "UP")))
}

/// Removes every namespace, the cable and the routes, whatever is left of them.
pub fn sweep() -> Result<()> {
    let namespaces = paths::run("netns");
    if namespaces.is_dir() {
        for entry in std::fs::read_dir(&namespaces)? {
            remove_namespace(&entry?.file_name().to_string_lossy())?;
        }
    }
    if cable_is_there()? {
        let deleted = command::run_line(&format!("ip link delete {CABLE}"));
        // The kernel takes it away itself once the namespace of its other end is gone, maybe just now.
        if cable_is_there()? {
            deleted?;
        }
    }
    for range in [PODS, SERVICES] {
        let routes = command::run_line(&format!("ip route show type unreachable {range}"))?;
        if !routes.trim().is_empty() {
            command::run_line(&format!("ip route delete unreachable {range}"))?;
        }
    }
    Ok(())
}

fn cable_is_there() -> Result<bool> {
    Ok(command::run_line("ip -json link show")?.contains(&format!("\"{CABLE}\"")))
}

fn create_namespace(name: &str) -> Result<()> {
    let file = namespace(name);
    std::fs::create_dir_all(paths::run("netns"))?;
    std::fs::write(&file, "")?;
    command::run("unshare", [format!("--net={}", file.display()).as_str(), "true"])
        .with_context(|| format!("creating the network namespace {name}"))?;
    inside(name, "link set lo up").map(drop)
}

fn remove_namespace(name: &str) -> Result<()> {
    let file = namespace(name);
    if !file.exists() {
        return Ok(());
    }
    // A file that was never mounted, or was unmounted by an interrupted sweep, only needs removing.
    while crate::mounts::is_mounted(&file)? {
        crate::mounts::unmount(&file)?;
    }
    std::fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))
}

fn plug_into_bridge(port: &str) -> Result<()> {
    inside(CONTROL, &format!("link set {port} master {BRIDGE} up")).map(drop)
}

fn net_option(name: &str) -> String {
    format!("--net={}", namespace(name).display())
}

/// Runs `ip` inside a namespace.
fn inside(name: &str, words: &str) -> Result<String> {
    command::run_line(&format!("nsenter {} ip {words}", net_option(name)))
}

/// Whether two IPv4 ranges in CIDR notation share an address. What isn't a range shares none.
fn overlap(one: &str, other: &str) -> bool {
    let (Some((one, one_bits)), Some((other, other_bits))) = (range(one), range(other)) else {
        return false;
    };
    let shift = 32 - one_bits.min(other_bits);
    // A shift by all 32 bits means the range is everything: that is a default route, and every machine has one.
    shift < 32 && one >> shift == other >> shift
}

fn range(text: &str) -> Option<(u32, u32)> {
    let (address, bits) = text.split_once('/').unwrap_or((text, "32"));
    let address: std::net::Ipv4Addr = address.parse().ok()?;
    Some((address.into(), bits.parse().ok().filter(|bits| *bits <= 32)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_overlap_when_one_holds_the_other() {
        assert!(overlap("10.200.0.0/16", "10.200.3.0/24"));
        assert!(overlap("10.200.0.0/16", "10.0.0.0/8"));
        assert!(overlap("10.199.0.0/24", "10.199.0.7"));
        assert!(!overlap("10.200.0.0/16", "10.201.0.0/16"));
        assert!(!overlap("10.199.0.0/24", "10.199.1.1"));
    }

    #[test]
    fn default_route_is_no_conflict() {
        assert!(!overlap("10.200.0.0/16", "default"));
        assert!(!overlap("10.200.0.0/16", "0.0.0.0/0"));
    }
}
