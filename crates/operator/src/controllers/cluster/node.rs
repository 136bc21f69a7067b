//! Nodes, as far as they matter for the members on them.

use etcd_operator_core::cluster::observed::Node as SeenNode;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeStatus};

/// The taint with which an administrator confirms that nothing runs on a node any more.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The state of a node. One that does not exist has always been down: its machine was removed from the cluster.
pub fn see(node: Option<&Node>) -> SeenNode {
    let Some(node) = node else { return SeenNode { down_since: Some(Timestamp::UNIX_EPOCH), fenced: false } };
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.into_iter().find(|condition| condition.type_ == "Ready");
    let down = ready.filter(|ready| ready.status != "True");
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    SeenNode {
        down_since: down.map(|ready| ready.last_transition_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0)),
        fenced: taints.into_iter().any(|taint| taint.key == OUT_OF_SERVICE),
    }
}

/// Keeps only what `see` reads. The list of images alone is most of a node.
pub fn trim(node: &mut Node) {
    let conditions = node.status.take().and_then(|status| status.conditions);
    node.status = Some(NodeStatus { conditions, ..NodeStatus::default() });
    node.metadata.annotations = None;
    node.metadata.labels = None;
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(ready: &str, taints: Value) -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "n", "labels": {"a": "b"}},
            "spec": {"taints": taints},
            "status": {
                "images": [{"names": ["x"]}],
                "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "1970-01-01T00:01:00Z"}],
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_node_is_down_unless_it_says_that_it_is_ready() {
        assert_eq!(see(Some(&node("True", json!([])))).down_since, None);
        assert_eq!(see(Some(&node("False", json!([])))).down_since, Some(Timestamp::constant(60, 0)));
        assert_eq!(see(Some(&node("Unknown", json!([])))).down_since, Some(Timestamp::constant(60, 0)));
        assert!(see(None).down_since.is_some());
        assert_eq!(see(Some(&Node::default())).down_since, None, "one that has just come says nothing yet");
    }

    #[test]
    fn only_the_taint_of_a_person_fences() {
        let taint = |key: &str| json!([{"key": key, "effect": "NoExecute"}]);
        assert!(see(Some(&node("Unknown", taint(OUT_OF_SERVICE)))).fenced);
        assert!(!see(Some(&node("Unknown", taint("node.kubernetes.io/unreachable")))).fenced);
    }

    #[test]
    fn trimmed_node_still_shows_readiness_and_taints() {
        let whole = node("Unknown", json!([{"key": OUT_OF_SERVICE, "effect": "NoExecute"}]));
        let mut trimmed = whole.clone();
        trim(&mut trimmed);
        assert_eq!(see(Some(&trimmed)), see(Some(&whole)));
        assert!(trimmed.status.unwrap().images.is_none());
    }
}
