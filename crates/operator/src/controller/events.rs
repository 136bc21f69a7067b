//! What the operator tells about an object in events, for `kubectl describe`.

use etcd_operator_api::EtcdCluster;
use etcd_operator_core::plan::Waiting;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource, ResourceExt};
use tracing::warn;

/// The API server takes no longer ones, in bytes.
const LONGEST_NOTE: usize = 1024;
const LONGEST_ACTION: usize = 128;

pub struct Events(Recorder);

impl Events {
    pub fn new(client: Client) -> Self {
        Events(Recorder::new(client, Reporter { controller: "etcd-operator".into(), instance: None }))
    }

    /// Says that something was done, to an object of the cluster or whatever it belongs to.
    pub async fn done<K: Resource<DynamicType = ()>>(&self, owner: &K, reason: &str, about: &str, note: String) {
        self.publish(owner, EventType::Normal, reason, &note.clone(), about, note).await;
    }

    /// Says that the cluster is not available any more, and why.
    pub async fn unavailable(&self, cluster: &EtcdCluster, condition: &Condition) {
        let (reason, message) = (&condition.reason, &condition.message);
        self.publish(cluster, EventType::Warning, reason, message, &cluster.name_any(), message.clone()).await;
    }

    /// Says what is waited for.
    pub async fn waiting(&self, cluster: &EtcdCluster, waiting: &Waiting) {
        let type_ = if waiting.is_trouble() { EventType::Warning } else { EventType::Normal };
        self.publish(cluster, type_, waiting.reason, &waiting.message, &cluster.name_any(), waiting.message.clone())
            .await;
    }

    /// Says that something failed, and why.
    pub async fn failed<K: Resource<DynamicType = ()>>(&self, object: &K, reason: &str, why: String) {
        self.publish(object, EventType::Warning, reason, &why.clone(), &object.name_any(), why).await;
    }

    async fn publish<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        type_: EventType,
        reason: &str,
        action: &str,
        about: &str,
        note: String,
    ) {
        let note = shortened(&note, LONGEST_NOTE).to_owned();
        // Events that differ in nothing but their note are counted as one, so each says what it is about.
        let action = shortened(action, LONGEST_ACTION).to_owned();
        let about = ObjectReference {
            name: Some(about.to_owned()),
            namespace: object.namespace(),
            ..ObjectReference::default()
        };
        let event = Event { type_, reason: reason.into(), note: Some(note), action, secondary: Some(about) };
        // An event is a courtesy: what it tells has happened, whether it arrives or not.
        if let Err(error) = self.0.publish(&event, &object.object_ref(&())).await {
            warn!(%error, reason, "cannot publish an event");
        }
    }
}

/// The beginning of a text that has no more bytes than there may be, without a character that is cut in two.
fn shortened(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The API server counts bytes: `3.6.16 → 3.6.99` has two more of them than characters.
    #[test]
    fn text_with_long_characters_is_shortened_to_what_the_api_server_takes() {
        let message = format!("{}→{}", "a".repeat(126), "b".repeat(100));
        assert_eq!(shortened(&message, LONGEST_ACTION), "a".repeat(126), "the arrow would be the bytes 127 to 129");
        assert_eq!(shortened(&message, 129), format!("{}→", "a".repeat(126)));
        assert_eq!(shortened("short →", LONGEST_ACTION), "short →");
        assert_eq!(shortened("", 0), "");
    }
}
