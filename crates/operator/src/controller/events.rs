//! What the operator tells about an object in events, for `kubectl describe`.

use etcd_operator_api::EtcdCluster;
use etcd_operator_core::plan::Waiting;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource, ResourceExt};
use tracing::warn;

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
        // The API server takes no longer ones.
        let note: String = note.chars().take(1000).collect();
        // Events that differ in nothing but their note are counted as one, so each says what it is about. An action has at
        // most 128 characters.
        let action: String = action.chars().take(128).collect();
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
