//! What the status of an EtcdRestore says in each phase, and which changes of it are worth an event.

use etcd_operator_api::{
    EtcdCluster, EtcdClusterStatus, EtcdRestoreStatus, JobFailureReason, Reason, RestoreEventReason, RestoreFrom,
    RestorePhase, RestoreReason,
};
use etcd_operator_protocol::report::Done;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observed::Observed;
use crate::conditions::Statement;
use crate::locations;
use crate::notice::Notice;

const RESTORING_FIRST_MEMBER: &str = "restoring the backup to the first member";

/// What is known in every phase.
pub fn known(observed: &Observed) -> EtcdRestoreStatus {
    let restore = observed.restore;
    let before = restore.status.clone().unwrap_or_default();
    EtcdRestoreStatus {
        start_time: Some(before.start_time.clone().unwrap_or(Time(observed.now))),
        cluster_name: Some(restore.spec.cluster_template.cluster_name.clone()),
        observed_generation: restore.metadata.generation,
        // Written by earlier operators only.
        doing: None,
        ..before
    }
}

pub fn failed(before: EtcdRestoreStatus, reason: impl Into<Reason>, message: String) -> EtcdRestoreStatus {
    EtcdRestoreStatus {
        phase: Some(RestorePhase::Failed),
        progress: None,
        doing: None,
        reason: Some(reason.into()),
        message: Some(message),
        ..before
    }
}

pub fn cluster_exists(name: &str) -> String {
    format!(
        "there is an EtcdCluster {name:?} already, and it is left as it is: a backup is restored to a new cluster only; delete \
         that one with its volume claims, or choose another spec.clusterTemplate.clusterName, and create a new EtcdRestore"
    )
}

pub fn cluster_deleted(name: &str) -> String {
    format!("the EtcdCluster {name:?} was deleted before it was complete")
}

pub fn volumes_exist(names: &[String]) -> String {
    format!(
        "there are volume claims of a cluster of this name already ({}), and they are left as they are: delete them, or choose \
         another spec.clusterTemplate.clusterName, and create a new EtcdRestore",
        names.join(", ")
    )
}

/// While the backup is read.
pub fn checking(known: EtcdRestoreStatus, from: &RestoreFrom) -> EtcdRestoreStatus {
    let claim = from.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.as_str());
    EtcdRestoreStatus {
        phase: Some(RestorePhase::Validating),
        object_url: Some(locations::shown_url(&locations::of_source(from), claim)),
        progress: Some("reading the backup from one end to the other".to_owned()),
        ..known
    }
}

/// When the cluster is created.
pub fn created(checking: EtcdRestoreStatus, version: String, done: &Done) -> EtcdRestoreStatus {
    EtcdRestoreStatus {
        phase: Some(RestorePhase::Restoring),
        progress: Some(RESTORING_FIRST_MEMBER.to_owned()),
        message: None,
        restored_revision: done.manifest.as_ref().map(|manifest| manifest.revision),
        etcd_version: Some(version),
        ..checking
    }
}

/// Once the cluster exists: it scales up, and its progress is reported.
pub fn growing(known: EtcdRestoreStatus, cluster: &EtcdCluster, checked: Option<&Done>) -> EtcdRestoreStatus {
    let status = cluster.status.clone().unwrap_or_default();
    let revision = checked.and_then(|done| done.manifest.as_ref()).map(|manifest| manifest.revision);
    let known = EtcdRestoreStatus {
        restored_revision: known.restored_revision.or(revision),
        etcd_version: Some(cluster.spec.version.clone()),
        cluster_id: status.cluster_id.clone(),
        message: None,
        ..known
    };
    let (ready, wanted) = (status.ready_replicas, cluster.spec.replicas);
    if status.cluster_id.is_none() {
        let progress = Some(RESTORING_FIRST_MEMBER.to_owned());
        let message = trouble_of(&status);
        return EtcdRestoreStatus { phase: Some(RestorePhase::Restoring), progress, message, ..known };
    }
    if ready < wanted {
        let progress = format!("{ready} of {wanted} members are ready");
        return EtcdRestoreStatus { phase: Some(RestorePhase::ScalingUp), progress: Some(progress), ..known };
    }
    EtcdRestoreStatus { phase: Some(RestorePhase::Completed), progress: None, reason: None, ..known }
}

/// What the cluster itself reports while its first member does not run.
fn trouble_of(status: &EtcdClusterStatus) -> Option<String> {
    let unavailable = status.conditions.iter().find(|it| it.type_ == "Available" && it.status == "False");
    unavailable.map(|condition| condition.message.clone())
}

pub fn statements(status: &EtcdRestoreStatus) -> Vec<Statement> {
    let message = status.message.clone().or_else(|| status.progress.clone()).unwrap_or_default();
    let cluster = status.cluster_name.as_deref().unwrap_or_default();
    let reason = status.reason.clone().unwrap_or_else(|| JobFailureReason::Failed.into());
    match status.phase {
        Some(RestorePhase::Completed) => {
            let done = format!("the EtcdCluster {cluster} runs with the data of the backup");
            vec![Statement::yes("Complete", RestoreReason::Completed, done)]
        }
        // For clients that wait for either.
        Some(RestorePhase::Failed) => {
            vec![Statement::no("Complete", reason.clone(), message.clone()), Statement::yes("Failed", reason, message)]
        }
        Some(RestorePhase::ScalingUp) => vec![Statement::no("Complete", RestoreReason::ScalingUp, message)],
        Some(RestorePhase::Restoring) => vec![Statement::no("Complete", RestoreReason::Restoring, message)],
        Some(RestorePhase::Validating) => vec![Statement::no("Complete", RestoreReason::Validating, message)],
        Some(RestorePhase::Pending) | None => vec![Statement::no("Complete", RestoreReason::Pending, message)],
    }
}

/// A phase that was not reported before is worth an event.
pub fn notices(before: &EtcdRestoreStatus, after: &EtcdRestoreStatus) -> Vec<Notice> {
    if before.phase == after.phase {
        return Vec::new();
    }
    let cluster = after.cluster_name.clone().unwrap_or_default();
    match after.phase {
        Some(RestorePhase::Failed) => {
            vec![Notice::of(RestoreEventReason::RestoreFailed, after.message.clone().unwrap_or_default())]
        }
        Some(RestorePhase::Completed) => {
            let note = format!("The EtcdCluster {cluster} runs with the data of the backup");
            vec![Notice::of(RestoreEventReason::RestoreSucceeded, note)]
        }
        Some(RestorePhase::Restoring) => {
            let note = format!("The backup is whole; created the EtcdCluster {cluster}");
            vec![Notice::of(RestoreEventReason::ClusterCreated, note).about(cluster)]
        }
        _ => Vec::new(),
    }
}
