//! Nodes that are off, cut from the network, cordoned or declared out of service. Each is brought back when its value
//! goes, whatever becomes of the test: the lab is not this test's alone.

use std::time::Duration;

use lab::api;
use lab::lifecycle::wait_for_ready_nodes;
use lab::node::Node;

use crate::{eventually, finish, get, is, kubectl, try_kubectl};

const BACK: Duration = Duration::from_secs(60);

/// A node without power or without network, until this is dropped.
pub struct Outage {
    node: Node,
    kind: Kind,
    over: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    PoweredOff,
    Cut,
}

impl Outage {
    pub fn power_off(node: Node) -> Self {
        let outage = Outage { node, kind: Kind::PoweredOff, over: false };
        node.stop().expect("the node is powered off");
        outage
    }

    pub fn cut(node: Node) -> Self {
        let outage = Outage { node, kind: Kind::Cut, over: false };
        node.cut().expect("the node is cut from the network");
        outage
    }

    /// Brings the node back and waits until it is Ready.
    pub fn end(mut self) {
        self.bring_back().expect("the node is back");
        self.over = true;
        wait_for_node(self.node, true);
    }

    fn bring_back(&self) -> Result<(), String> {
        let back = match self.kind {
            Kind::PoweredOff if self.node.is_on() => Ok(()),
            Kind::PoweredOff => finish(self.node.start()),
            Kind::Cut => self.node.heal(),
        };
        back.map_err(|error| format!("{error:#}"))
    }
}

impl Drop for Outage {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let ready = || async {
            let on: Vec<Node> = Node::all().filter(Node::is_on).collect();
            wait_for_ready_nodes(&api::client().await?, &on).await
        };
        let back = self.bring_back().and_then(|()| finish(ready()).map_err(|error| format!("{error:#}")));
        if let Err(complaint) = back {
            eprintln!("{} could not be brought back: {complaint}", self.node.name());
        }
    }
}

/// What somebody says of a node who knows that nothing runs on it any more, until this is dropped.
pub struct OutOfService(Node);

const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

impl OutOfService {
    pub fn declare(node: Node) -> Self {
        kubectl(&format!("taint node {} {OUT_OF_SERVICE}=nodeshutdown:NoExecute", node.name()));
        OutOfService(node)
    }
}

impl Drop for OutOfService {
    fn drop(&mut self) {
        let name = self.0.name();
        if let Err(complaint) = try_kubectl(&format!("taint node {name} {OUT_OF_SERVICE}-")) {
            eprintln!("{name} could not be put into service again: {complaint}");
        }
    }
}

/// A node that takes no new pods, until this is dropped.
pub struct Cordon(Node);

impl Cordon {
    pub fn begin(node: Node) -> Self {
        kubectl(&format!("cordon {}", node.name()));
        Cordon(node)
    }
}

impl Drop for Cordon {
    fn drop(&mut self) {
        let name = self.0.name();
        if let Err(complaint) = try_kubectl(&format!("uncordon {name}")) {
            eprintln!("{name} could not be made to take pods again: {complaint}");
        }
    }
}

pub fn wait_for_node(node: Node, ready: bool) {
    let what = format!("{} is {}Ready", node.name(), if ready { "" } else { "not " });
    eventually(&what, BACK, || is(is_ready(node), ready));
}

fn is_ready(node: Node) -> bool {
    let conditions = get(&format!("node {}", node.name()))["status"]["conditions"].clone();
    let conditions = conditions.as_array().expect("conditions");
    conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
