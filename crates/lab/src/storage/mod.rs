//! The lab's three storage classes, and the provisioner that makes, grows and deletes their volumes.
//!
//! All are `local` volumes, folders on this machine, because the kubelet applies fsGroup to those. A volume of
//! `standard` is bound to the node its pod was scheduled to. One of `fixed` is too, but never grows. One of `network`
//! may be mounted by every node, which is possible because all nodes share the machine's file system.

mod growth;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use self::growth::{grow, wanted_growth};
use crate::node::remove_if_there;
use crate::{api, paths};

const PROVISIONER: &str = "lab.etcd.improbable.io/folder";
pub const STANDARD: &str = "standard";
pub const FIXED: &str = "fixed";
pub const NETWORK: &str = "network";

const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// Creates the classes.
pub async fn create_classes(client: &Client) -> Result<()> {
    let classes = Api::<StorageClass>::all(client.clone());
    for (name, is_default, binding, grows) in [
        (STANDARD, "true", "WaitForFirstConsumer", true),
        (FIXED, "false", "WaitForFirstConsumer", false),
        (NETWORK, "false", "Immediate", true),
    ] {
        let class = json!({
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": is_default}},
            "provisioner": PROVISIONER,
            "volumeBindingMode": binding,
            "reclaimPolicy": "Delete",
            "allowVolumeExpansion": grows,
        });
        let parameters = PatchParams::apply("lab").force();
        classes
            .patch(name, &parameters, &Patch::Apply(class))
            .await
            .with_context(|| format!("creating the storage class {name}"))?;
    }
    Ok(())
}

/// Serves claims and volumes until it is killed.
pub async fn provision() -> Result<()> {
    let client = api::client().await?;
    let claims = Controller::new(Api::<PersistentVolumeClaim>::all(client.clone()), watcher::Config::default())
        .run(serve_claim, retry, Arc::new(client.clone()))
        .for_each(|result| async move { report(result) });
    let volumes = Controller::new(Api::<PersistentVolume>::all(client.clone()), watcher::Config::default())
        .run(serve_volume, retry, Arc::new(client))
        .for_each(|result| async move { report(result) });
    tokio::join!(claims, volumes);
    Ok(())
}

/// An error with its causes, in a type that kube's controller takes.
#[derive(Debug)]
struct Failure(anyhow::Error);

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:#}", self.0)
    }
}

impl std::error::Error for Failure {}

fn retry<K>(_: Arc<K>, _: &Failure, _: Arc<Client>) -> Action {
    Action::requeue(Duration::from_secs(1))
}

fn report<T, E: std::fmt::Display>(result: Result<T, E>) {
    if let Err(error) = result {
        println!("{error}");
    }
}

async fn serve_claim(claim: Arc<PersistentVolumeClaim>, client: Arc<Client>) -> Result<Action, Failure> {
    let name = format!("{}/{}", claim.namespace().unwrap_or_default(), claim.name_any());
    if let Some(volume) = wanted_volume(&claim) {
        create_volume(&volume, &client)
            .await
            .with_context(|| format!("making a volume for {name}"))
            .map_err(Failure)?;
        println!("made a volume for {name}");
    }
    if let Some(size) = wanted_growth(&claim) {
        grow(&claim, &size, &client).await.with_context(|| format!("growing {name} to {size}")).map_err(Failure)?;
        println!("grew {name} to {size}");
    }
    Ok(Action::await_change())
}

async fn serve_volume(volume: Arc<PersistentVolume>, client: Arc<Client>) -> Result<Action, Failure> {
    if let Some(folder) = folder_to_delete(&volume) {
        let name = volume.name_any();
        delete_volume(&name, folder, &client).await.with_context(|| format!("deleting {name}")).map_err(Failure)?;
        println!("deleted {name}");
    }
    Ok(Action::await_change())
}

/// The volume that an unbound claim of our classes waits for, if it is time to make it.
fn wanted_volume(claim: &PersistentVolumeClaim) -> Option<Value> {
    let spec = claim.spec.as_ref()?;
    let class = spec.storage_class_name.as_deref()?;
    if spec.volume_name.is_some() || claim.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let (place, affinity) = match class {
        // The scheduler chose the node; until it has, nobody knows where the volume should be.
        STANDARD | FIXED => {
            let node = claim.annotations().get(SELECTED_NODE)?;
            (node.as_str(), json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}))
        }
        NETWORK => (NETWORK, json!({"key": "kubernetes.io/hostname", "operator": "Exists"})),
        _ => return None,
    };
    let uid = claim.uid()?;
    let name = format!("pvc-{uid}");
    Some(json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "storageClassName": class,
            "capacity": {"storage": requested_size(claim)?},
            "accessModes": spec.access_modes,
            "volumeMode": spec.volume_mode,
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": claim.namespace(),
                "name": claim.name_any(),
                "uid": uid,
            },
            "local": {"path": paths::data("volumes").join(place).join(&name)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [affinity]}]}},
        },
    }))
}

fn requested_size(claim: &PersistentVolumeClaim) -> Option<String> {
    Some(claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?.get("storage")?.0.clone())
}

/// The folder behind a volume of ours that nobody claims any more.
fn folder_to_delete(volume: &PersistentVolume) -> Option<PathBuf> {
    let ours = volume.annotations().get(PROVISIONED_BY).is_some_and(|by| by == PROVISIONER);
    let released = volume.status.as_ref()?.phase.as_deref() == Some("Released");
    let spec = volume.spec.as_ref()?;
    let delete = spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete");
    (ours && released && delete).then(|| folder(volume)).flatten()
}

/// The folder on this machine that holds a volume's data.
pub fn folder(volume: &PersistentVolume) -> Option<PathBuf> {
    volume.spec.as_ref()?.local.as_ref().map(|local| PathBuf::from(&local.path))
}

async fn create_volume(volume: &Value, client: &Client) -> Result<()> {
    let volume: PersistentVolume = serde_json::from_value(volume.clone())?;
    let folder = folder(&volume).context("a volume without a folder")?;
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    if folder.parent().is_some_and(|place| place.ends_with(NETWORK)) {
        // A cloud disk is a formatted one, and programs trip over this folder.
        std::fs::create_dir_all(folder.join("lost+found"))?;
    }
    match Api::<PersistentVolume>::all(client.clone()).create(&PostParams::default(), &volume).await {
        // An earlier try did it, and its answer was lost or the cache is old.
        Err(kube::Error::Api(error)) if error.code == 409 => Ok(()),
        Err(error) => Err(error).context("creating the PersistentVolume"),
        Ok(_) => Ok(()),
    }
}

async fn delete_volume(name: &str, folder: PathBuf, client: &Client) -> Result<()> {
    let path = folder.clone();
    tokio::task::spawn_blocking(move || remove_if_there(&path)).await.context("removing a folder")??;
    match Api::<PersistentVolume>::all(client.clone()).delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(error)) if error.code == 404 => Ok(()),
        Err(error) => Err(error).context("deleting the PersistentVolume"),
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A claim for 50Mi of the class `standard`, with changes.
    pub fn claim(changes: Value) -> PersistentVolumeClaim {
        let mut claim = json!({
            "metadata": {"name": "data", "namespace": "default", "uid": "u1"},
            "spec": {
                "storageClassName": "standard",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "50Mi"}},
            },
        });
        merge(&mut claim, changes);
        serde_json::from_value(claim).unwrap()
    }

    fn merge(into: &mut Value, from: Value) {
        match (into, from) {
            (Value::Object(into), Value::Object(from)) => {
                for (key, value) in from {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
            (into, from) => *into = from,
        }
    }

    #[test]
    fn standard_volume_waits_for_the_scheduler() {
        assert_eq!(wanted_volume(&claim(json!({}))), None);
        let chosen = claim(json!({"metadata": {"annotations": {SELECTED_NODE: "node2"}}}));
        let volume = wanted_volume(&chosen).unwrap();
        assert_eq!(volume["spec"]["local"]["path"], "/var/lib/etcd-lab/volumes/node2/pvc-u1");
        let term = &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0];
        assert_eq!(term["values"], json!(["node2"]));
    }

    #[test]
    fn fixed_volume_is_provisioned_like_a_standard_one() {
        let fixed = json!({
            "metadata": {"annotations": {SELECTED_NODE: "node2"}},
            "spec": {"storageClassName": "fixed"},
        });
        let volume = wanted_volume(&claim(fixed)).unwrap();
        assert_eq!(volume["spec"]["local"]["path"], "/var/lib/etcd-lab/volumes/node2/pvc-u1");
        assert_eq!(volume["spec"]["storageClassName"], "fixed");
    }

    #[test]
    fn network_volume_is_provisioned_at_once() {
        let volume = wanted_volume(&claim(json!({"spec": {"storageClassName": "network"}}))).unwrap();
        assert_eq!(volume["spec"]["local"]["path"], "/var/lib/etcd-lab/volumes/network/pvc-u1");
        assert_eq!(volume["spec"]["capacity"]["storage"], "50Mi");
    }

    #[test]
    fn other_classes_and_bound_claims_are_left_alone() {
        assert_eq!(wanted_volume(&claim(json!({"spec": {"storageClassName": "other"}}))), None);
        let bound = json!({"spec": {"storageClassName": "network", "volumeName": "pvc-u1"}});
        assert_eq!(wanted_volume(&claim(bound)), None);
    }

    #[test]
    fn only_our_own_released_volumes_are_deleted() {
        let volume = |phase: &str, by: &str| -> PersistentVolume {
            serde_json::from_value(json!({
                "metadata": {"name": "pvc-u1", "annotations": {PROVISIONED_BY: by}},
                "spec": {"persistentVolumeReclaimPolicy": "Delete", "local": {"path": "/x"}},
                "status": {"phase": phase},
            }))
            .unwrap()
        };
        assert_eq!(folder_to_delete(&volume("Released", PROVISIONER)), Some(PathBuf::from("/x")));
        assert_eq!(folder_to_delete(&volume("Bound", PROVISIONER)), None);
        assert_eq!(folder_to_delete(&volume("Released", "somebody/else")), None);
    }
}
