//! What the operator tells about a cluster in events, for `kubectl describe`.

use etcd_operator_api::EtcdCluster;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource, ResourceExt};
use tracing::warn;

pub struct Events(Recorder);

impl Events {
    pub fn new(client: Client) -> Self {
        Events(Recorder::new(client, Reporter { controller: "etcd-operator".into(), instance: None }))
    }

    /// Says that something was done to an object of the cluster.
    pub async fn done(&self, cluster: &EtcdCluster, reason: &str, about: &str, note: String) {
        self.publish(cluster, EventType::Normal, reason, about, note).await;
    }

    /// Says that something can't be done, or not yet, and why.
    pub async fn warn(&self, cluster: &EtcdCluster, reason: &str, note: String) {
        self.publish(cluster, EventType::Warning, reason, &cluster.name_any(), note).await;
    }

    async fn publish(&self, cluster: &EtcdCluster, type_: EventType, reason: &str, about: &str, note: String) {
        // The API server takes no longer ones.
        let note: String = note.chars().take(1000).collect();
        // Events that differ in nothing but their note are counted as one, so each says what it is about.
        let about = ObjectReference {
            name: Some(about.to_owned()),
            namespace: cluster.namespace(),
            ..ObjectReference::default()
        };
        let event =
            Event { type_, reason: reason.into(), note: Some(note), action: reason.into(), secondary: Some(about) };
        // An event is a courtesy: what it tells has happened, whether it arrives or not.
        if let Err(error) = self.0.publish(&event, &cluster.object_ref(&())).await {
            warn!(%error, reason, "cannot publish an event");
        }
    }
}
