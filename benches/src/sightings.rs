//! Everything that changes in a namespace, with the time at which it was seen here: timestamps in objects are whole seconds.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher;
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use serde_json::Value;
use tokio::runtime::Runtime;

/// An object as it was at some time.
#[derive(Clone)]
pub struct Sighting {
    pub at: Timestamp,
    pub kind: &'static str,
    pub object: Value,
}

impl Sighting {
    pub fn name(&self) -> String {
        self.object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
    }
}

/// A kind to watch: its API group with its version, and its name.
pub type Kind = (&'static str, &'static str, &'static str);

pub const POD: Kind = ("", "v1", "Pod");
pub const CLAIM: Kind = ("", "v1", "PersistentVolumeClaim");
pub const EVENT: Kind = ("", "v1", "Event");
pub const SET: Kind = ("apps", "v1", "StatefulSet");
pub const PEER: Kind = ("etcd.improbable.io", "v1alpha1", "EtcdPeer");
pub const CLUSTER: Kind = ("etcd.improbable.io", "v1alpha1", "EtcdCluster");

/// Watches until it is dropped.
pub struct Watch {
    seen: Arc<Mutex<Vec<Sighting>>>,
    _runtime: Runtime,
}

impl Watch {
    /// Returns when all watches have begun.
    pub fn start(namespace: &str, kinds: &[Kind]) -> Self {
        let runtime = Runtime::new().unwrap();
        let seen: Arc<Mutex<Vec<Sighting>>> = Arc::default();
        let client = runtime.block_on(lab::api::client()).unwrap();
        let begun: Vec<_> = kinds
            .iter()
            .map(|kind| {
                let (begin, begun) = tokio::sync::oneshot::channel();
                runtime.spawn(watch(client.clone(), namespace.to_owned(), *kind, seen.clone(), begin));
                begun
            })
            .collect();
        begun.into_iter().for_each(|begun| runtime.block_on(begun).unwrap());
        Watch { seen, _runtime: runtime }
    }

    pub fn seen(&self) -> Vec<Sighting> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The addresses of the pods that have one: name → address.
    pub fn addresses(&self) -> BTreeMap<String, IpAddr> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let address = |it: &Sighting| Some((it.name(), it.object["status"]["podIP"].as_str()?.parse().ok()?));
        seen.iter().filter(|it| it.kind == POD.2).filter_map(address).collect()
    }
}

async fn watch(
    client: Client,
    namespace: String,
    (group, version, kind): Kind,
    seen: Arc<Mutex<Vec<Sighting>>>,
    begin: tokio::sync::oneshot::Sender<()>,
) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = Api::namespaced_with(client, &namespace, &resource);
    let mut changes = watcher(api, watcher::Config::default()).boxed();
    let mut begin = Some(begin);
    while let Some(change) = changes.next().await {
        let object = match change {
            Ok(Event::Apply(object) | Event::InitApply(object)) => object,
            Ok(Event::InitDone) => {
                let _ = begin.take().map(|begin| begin.send(()));
                continue;
            }
            // A watch that failed begins anew by itself.
            Ok(Event::Init | Event::Delete(_)) | Err(_) => continue,
        };
        let sighting = Sighting { at: Timestamp::now(), kind, object: serde_json::to_value(object).unwrap() };
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(sighting);
    }
}
