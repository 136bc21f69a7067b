//! Where backups are stored, and what a pod needs to access them.

use etcd_operator_api::{
    Credentials, Decryption, Destination, EtcdBackupSchedule, RestoreFrom, StoreAccess, Variables, fill_template,
};
use etcd_operator_protocol::task::{AGE_IDENTITY, Location, TASK, Task};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::runtime::api_errors::ApiError;

/// Where a volume with backups is mounted.
const CLAIM_MOUNT: &str = "/backups";
const CLAIM_VOLUME: &str = "backups";

/// Where a backup is read from.
pub fn of_source(from: &RestoreFrom) -> Location {
    match &from.persistent_volume_claim {
        Some(claim) => in_volume(&claim.path),
        None => in_store(from.url().unwrap_or_default(), &from.access),
    }
}

/// Where a backup is stored. The error is a sentence about a template that can't be filled.
pub fn of_destination(to: &Destination, variables: &Variables) -> Result<Location, String> {
    match &to.persistent_volume_claim {
        Some(claim) => Ok(in_volume(&fill_template(claim.path(), variables)?)),
        None => Ok(in_store(fill_template(&to.url_template().unwrap_or_default(), variables)?, &to.access)),
    }
}

/// How a location is shown to users: one in a volume is named after its claim.
pub fn shown_url(location: &Location, claim: Option<&str>) -> String {
    match (location.url.strip_prefix(&format!("file://{CLAIM_MOUNT}/")), claim) {
        (Some(path), Some(claim)) => format!("pvc://{claim}/{path}"),
        _ => location.url.clone(),
    }
}

/// The path of a location in a volume, relative to the volume's root.
pub fn path_in_volume(location: &Location) -> String {
    location.url.strip_prefix(&format!("file://{CLAIM_MOUNT}/")).unwrap_or(&location.url).to_owned()
}

fn in_volume(path: &str) -> Location {
    Location { url: format!("file://{CLAIM_MOUNT}/{}", path.trim_start_matches('/')), ..Location::default() }
}

fn in_store(url: String, access: &StoreAccess) -> Location {
    Location {
        url,
        endpoint: access.endpoint().map(str::to_owned),
        region: access.region().map(str::to_owned),
        force_path_style: access.force_path_style().then_some(true),
    }
}

/// Distinguishes the backups of a schedule from all others in a store, also from those of another Kubernetes cluster
/// that has a schedule of the same name. A recreated schedule continues with its earlier backups.
pub async fn identity_of(schedule: &EtcdBackupSchedule, client: &Client) -> Result<String, ApiError> {
    let namespace = schedule.namespace().unwrap_or_default();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let found = namespaces.get_metadata(&namespace).await;
    let found = found.map_err(ApiError::doing(format!("reading the UID of the namespace {namespace:?}")))?;
    Ok(format!("{namespace}/{}/{}", schedule.name_any(), found.uid().unwrap_or_default()))
}

/// The environment of a container that executes a task: the task itself, and the secrets that it needs.
pub fn environment(task: &Task, credentials: Option<&Credentials>, decryption: Option<&Decryption>) -> Vec<Value> {
    // The types are ours and contain nothing that JSON can't represent.
    let task = serde_json::to_string(task).unwrap_or_default();
    let secrets = credentials.map(Credentials::variables).unwrap_or_default();
    let identity = decryption.map(|decryption| decryption.variable(AGE_IDENTITY));
    let secrets = secrets.into_iter().chain(identity).map(|variable| json!(variable));
    [json!({"name": TASK, "value": task})].into_iter().chain(secrets).collect()
}

pub fn claim_volume(claim: &str, read_only: bool) -> Value {
    json!({"name": CLAIM_VOLUME, "persistentVolumeClaim": {"claimName": claim, "readOnly": read_only}})
}

pub fn claim_mount(read_only: bool) -> Value {
    json!({"name": CLAIM_VOLUME, "mountPath": CLAIM_MOUNT, "readOnly": read_only})
}
