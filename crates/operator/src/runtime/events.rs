//! The events that the operator publishes about an object, for `kubectl describe`.

use etcd_operator_api::Severity;
use etcd_operator_core::notice::Notice;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource, ResourceExt};
use tracing::warn;

/// The limits of the API server, in bytes.
const LONGEST_NOTE: usize = 1024;
const LONGEST_ACTION: usize = 128;

pub struct Events(Recorder);

impl Events {
    pub fn new(client: Client) -> Self {
        Events(Recorder::new(client, Reporter { controller: "etcd-operator".into(), instance: None }))
    }

    /// Publishes an event of an object.
    pub async fn publish<K: Resource<DynamicType = ()>>(&self, object: &K, notice: &Notice) {
        let Notice { severity, reason, about, note } = notice;
        let about = ObjectReference {
            name: Some(about.clone().unwrap_or_else(|| object.name_any())),
            namespace: object.namespace(),
            ..ObjectReference::default()
        };
        let event = Event {
            type_: match severity {
                Severity::Warning => EventType::Warning,
                Severity::Normal => EventType::Normal,
            },
            reason: reason.to_string(),
            note: Some(shortened(note, LONGEST_NOTE).to_owned()),
            // Events that differ only in their note are aggregated, so the action of each says what it is about.
            action: shortened(note, LONGEST_ACTION).to_owned(),
            secondary: Some(about),
        };
        // Events are best effort: what they report has happened, whether they arrive or not.
        if let Err(error) = self.0.publish(&event, &object.object_ref(&())).await {
            warn!(%error, %reason, "cannot publish an event");
        }
    }
}

/// The longest prefix of a text that fits into so many bytes without splitting a character.
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
