//! The reconcile of an EtcdRestore: a Job reads the backup completely, and only then a new EtcdCluster is created that
//! is bootstrapped from it.

mod source;

use std::time::Duration;

use etcd_operator_api::{
    ClusterBootstrap, EtcdCluster, EtcdClusterSpec, EtcdClusterStatus, EtcdRestore, EtcdRestoreStatus, JobPodTemplate,
    PodTemplate, RestoreFrom, RestorePhase, labels,
};
use etcd_operator_core::conditions::{Statement, conditions_after};
use etcd_operator_protocol::manifest::Manifest;
use etcd_operator_protocol::report::Done;
use etcd_operator_protocol::task::{Find, Task};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ListParams, PostParams};
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt};
use semver::Version;
use serde_json::json;

use self::source::{Source, source_of};
use super::agent_job::{self, AgentJob, Progress};
use super::context::Context;
use crate::objects::locations;
use crate::objects::pod::Settings;
use crate::runtime::api_errors::ApiError;
use crate::runtime::status;

/// When to reconcile again for changes that no watch reports.
const WHILE_SCALING_UP: Duration = Duration::from_secs(30);
const WHILE_CHECKING: Duration = Duration::from_secs(10);

/// Reading a backup is retried a few times: the store may be unavailable for a moment.
const RETRIES: i32 = 3;
const DEADLINE: Duration = Duration::from_secs(3600);

/// Identifies the EtcdRestore that created an EtcdCluster, whatever its name.
const MADE_BY: &str = "etcd.improbable.io/restore-uid";

pub async fn reconcile(restore: &EtcdRestore, context: &Context) -> Result<Action, ApiError> {
    let before = restore.status.clone().unwrap_or_default();
    if before.has_ended() || restore.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let now = Time(jiff::Timestamp::now());
    let started = before.start_time.clone().unwrap_or_else(|| now.clone());
    let template = &restore.spec.cluster_template;
    let known = EtcdRestoreStatus {
        start_time: Some(started),
        cluster_name: Some(template.cluster_name.clone()),
        observed_generation: restore.metadata.generation,
        // Written by earlier operators only.
        doing: None,
        ..before.clone()
    };
    let mut after = match cluster_of(restore, context).await? {
        Some(cluster) if is_made_by(&cluster, restore) => go_on_growing(known, &cluster, checked(restore, context)),
        Some(_) => failed(known, "ClusterExists", cluster_exists(&template.cluster_name)),
        None if was_made(&before) => {
            let message = format!("the EtcdCluster {:?} was deleted before it was complete", template.cluster_name);
            failed(known, "ClusterDeleted", message)
        }
        None => go_on_checking(restore, known, context).await?,
    };
    if after.has_ended() {
        after.completion_time = Some(now.clone());
    }
    after.conditions = conditions_after(&before.conditions, &statements(&after), restore.metadata.generation, &now);
    if after != before {
        status::write(restore, &after, &context.client).await?;
        tell(restore, &before, &after, context).await;
    }
    Ok(match after.phase {
        Some(RestorePhase::Completed | RestorePhase::Failed) => Action::await_change(),
        Some(RestorePhase::Restoring | RestorePhase::ScalingUp) => Action::requeue(WHILE_SCALING_UP),
        _ => Action::requeue(WHILE_CHECKING),
    })
}

fn was_made(status: &EtcdRestoreStatus) -> bool {
    matches!(status.phase, Some(RestorePhase::Restoring | RestorePhase::ScalingUp))
}

fn failed(before: EtcdRestoreStatus, reason: &str, message: String) -> EtcdRestoreStatus {
    EtcdRestoreStatus {
        phase: Some(RestorePhase::Failed),
        progress: None,
        doing: None,
        reason: Some(reason.to_owned()),
        message: Some(message),
        ..before
    }
}

fn cluster_exists(name: &str) -> String {
    format!(
        "there is an EtcdCluster {name:?} already, and it is left as it is: a backup is restored to a new cluster only; delete \
         that one with its volume claims, or choose another spec.clusterTemplate.clusterName, and create a new EtcdRestore"
    )
}

async fn cluster_of(restore: &EtcdRestore, context: &Context) -> Result<Option<EtcdCluster>, ApiError> {
    let name = &restore.spec.cluster_template.cluster_name;
    let doing = format!("reading the EtcdCluster {name:?}");
    clusters(restore, context).get_opt(name).await.map_err(ApiError::doing(doing))
}

fn clusters(restore: &EtcdRestore, context: &Context) -> Api<EtcdCluster> {
    Api::namespaced(context.client.clone(), &restore.namespace().unwrap_or_default())
}

fn is_made_by(cluster: &EtcdCluster, restore: &EtcdRestore) -> bool {
    cluster.annotations().get(MADE_BY) == restore.uid().as_ref()
}

/// The result of reading the backup, as long as it is known.
fn checked(restore: &EtcdRestore, context: &Context) -> Option<Done> {
    let (name, namespace) = (agent_job::name_of("check", restore), restore.namespace().unwrap_or_default());
    match agent_job::observe(&name, &namespace, context).progress {
        Progress::Done { done, .. } => Some(*done),
        _ => None,
    }
}

/// The next step before the cluster exists.
async fn go_on_checking(
    restore: &EtcdRestore,
    before: EtcdRestoreStatus,
    context: &Context,
) -> Result<EtcdRestoreStatus, ApiError> {
    let in_the_way = claims_of(restore, context).await?;
    if !in_the_way.is_empty() {
        return Ok(failed(before, "VolumesExist", volumes_exist(&in_the_way)));
    }
    let from = match source_of(restore, context).await? {
        Source::Known(from) => *from,
        Source::Awaited(why) => {
            return Ok(EtcdRestoreStatus { phase: Some(RestorePhase::Pending), progress: Some(why), ..before });
        }
        Source::None { reason, message } => return Ok(failed(before, reason, message)),
    };
    let (name, namespace) = (agent_job::name_of("check", restore), restore.namespace().unwrap_or_default());
    let state = agent_job::observe(&name, &namespace, context);
    let claim = from.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.as_str());
    let checking = EtcdRestoreStatus {
        phase: Some(RestorePhase::Validating),
        object_url: Some(locations::shown_url(&locations::of_source(&from), claim)),
        progress: Some("reading the backup from one end to the other".to_owned()),
        ..before
    };
    Ok(match state.progress {
        Progress::NotBegun => {
            agent_job_of(restore, &from, &context.settings).begin(restore, context).await?;
            checking
        }
        Progress::Running { trouble, .. } => EtcdRestoreStatus { message: trouble, ..checking },
        Progress::Failed { reason, message, .. } => {
            if reason == "PodCannotStart" {
                agent_job::end(&name, &namespace, state.job, context).await?;
            }
            failed(checking, &reason, message)
        }
        Progress::NoReport => {
            agent_job::end(&name, &namespace, state.job, context).await?;
            checking
        }
        Progress::Done { done, .. } => make_cluster(restore, checking, from, &done, context).await?,
    })
}

fn volumes_exist(names: &[String]) -> String {
    format!(
        "there are volume claims of a cluster of this name already ({}), and they are left as they are: delete them, or choose \
         another spec.clusterTemplate.clusterName, and create a new EtcdRestore",
        names.join(", ")
    )
}

async fn claims_of(restore: &EtcdRestore, context: &Context) -> Result<Vec<String>, ApiError> {
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(context.client.clone(), &restore.namespace().unwrap_or_default());
    let of_cluster = labels::selector_of_cluster(&restore.spec.cluster_template.cluster_name);
    let found = claims.list(&ListParams::default().labels(&of_cluster)).await;
    let found = found.map_err(ApiError::doing("looking for volume claims"))?;
    Ok(found.items.iter().map(ResourceExt::name_any).collect())
}

pub fn agent_job_of(restore: &EtcdRestore, from: &RestoreFrom, settings: &Settings) -> AgentJob {
    let task = Task::Check(Find { from: locations::of_source(from), sha256: from.sha256.clone() });
    let (credentials, decryption) = (from.credentials(), from.decryption.as_ref());
    let claim = from.persistent_volume_claim.as_ref();
    let template = like_the_members(&restore.spec.cluster_template.spec);
    let mut agent = agent_job::agent(agent_job::AGENT, &task, credentials, decryption, &template, settings);
    agent["volumeMounts"] = claim.map(|_| json!([locations::claim_mount(true)])).unwrap_or_default();
    let volumes = claim.map(|claim| json!([locations::claim_volume(&claim.claim_name, true)]));
    let parts = json!({"containers": [agent], "volumes": volumes});
    AgentJob {
        name: agent_job::name_of("check", restore),
        label: labels::RESTORED_FROM,
        pod: agent_job::pod(&template, credentials, parts),
        template,
        retries: RETRIES,
        deadline: DEADLINE,
    }
}

/// The pod that reads the backup is scheduled like the members, and pulls its image as they do.
fn like_the_members(cluster: &EtcdClusterSpec) -> JobPodTemplate {
    let PodTemplate { metadata, tolerations, node_selector, priority_class_name, image_pull_secrets, .. } =
        cluster.pod_template().unwrap_or_default();
    JobPodTemplate {
        metadata,
        tolerations,
        node_selector,
        priority_class_name,
        image_pull_secrets,
        ..JobPodTemplate::default()
    }
}

/// Creates the EtcdCluster, now that the backup is known to be complete.
async fn make_cluster(
    restore: &EtcdRestore,
    before: EtcdRestoreStatus,
    from: RestoreFrom,
    done: &Done,
    context: &Context,
) -> Result<EtcdRestoreStatus, ApiError> {
    let template = &restore.spec.cluster_template;
    let version = match version_for(&template.spec.version, done.manifest.as_ref()) {
        Ok(version) => version,
        Err(message) => return Ok(failed(before, "WrongVersion", message)),
    };
    // Pins the restore to the backup that was checked.
    let sha256 = sha256_of(done).or(from.sha256.clone());
    let bootstrap = Some(ClusterBootstrap { restore: Some(RestoreFrom { sha256, ..from }) });
    let spec = EtcdClusterSpec { version: version.clone(), bootstrap, ..template.spec.clone() };
    let metadata = template.metadata.clone().unwrap_or_default();
    let mut cluster = EtcdCluster::new(&template.cluster_name, spec);
    cluster.metadata.namespace = restore.namespace();
    cluster.labels_mut().extend(metadata.labels);
    cluster.labels_mut().insert(labels::RESTORED_FROM.to_owned(), restore.name_any());
    cluster.annotations_mut().extend(metadata.annotations);
    cluster.annotations_mut().insert(MADE_BY.to_owned(), restore.uid().unwrap_or_default());
    match clusters(restore, context).create(&PostParams::default(), &cluster).await {
        // The next reconcile finds out whether it belongs to this EtcdRestore.
        Err(kube::Error::Api(answer)) if answer.code == 409 => return Ok(before),
        Err(kube::Error::Api(answer)) if answer.code == 422 || answer.code == 400 => {
            return Ok(failed(before, "ClusterRefused", answer.message.clone()));
        }
        created => {
            let doing = format!("creating the EtcdCluster {:?}", template.cluster_name);
            created.map(drop).map_err(ApiError::doing(doing))?;
        }
    }
    Ok(EtcdRestoreStatus {
        phase: Some(RestorePhase::Restoring),
        progress: Some("restoring the backup to the first member".to_owned()),
        message: None,
        restored_revision: done.manifest.as_ref().map(|manifest| manifest.revision),
        etcd_version: Some(version),
        ..before
    })
}

fn sha256_of(done: &Done) -> Option<String> {
    let of_manifest = done.manifest.as_ref().map(|manifest| manifest.snapshot_sha256.clone());
    of_manifest.or_else(|| done.found.as_ref().map(|found| found.snapshot_sha256.clone()))
}

/// The version of etcd that a backup is restored with: the desired one if it is of the same minor, otherwise the one
/// that wrote it. The error is a sentence.
fn version_for(asked: &str, manifest: Option<&Manifest>) -> Result<String, String> {
    let written = manifest.map(|manifest| manifest.etcd_version.as_str());
    match (asked, written) {
        ("", Some(written)) => Ok(written.to_owned()),
        ("", None) => {
            Err("the backup has no manifest that tells which version of etcd wrote it: create a new EtcdRestore with \
                           spec.clusterTemplate.spec.version"
                .to_owned())
        }
        (asked, None) => Ok(asked.to_owned()),
        (asked, Some(written)) => {
            let minor = |version: &str| Version::parse(version).ok().map(|version| (version.major, version.minor));
            if minor(asked) == minor(written) {
                return Ok(asked.to_owned());
            }
            Err(format!(
                "the backup was written by etcd {written} and can't be restored with {asked}: create a new EtcdRestore with a \
                 version of the same minor, and upgrade the cluster afterwards"
            ))
        }
    }
}

/// The next step once the cluster exists: it scales up, and its progress is reported.
fn go_on_growing(before: EtcdRestoreStatus, cluster: &EtcdCluster, checked: Option<Done>) -> EtcdRestoreStatus {
    let status = cluster.status.clone().unwrap_or_default();
    let revision = checked.and_then(|done| done.manifest).map(|manifest| manifest.revision);
    let known = EtcdRestoreStatus {
        restored_revision: before.restored_revision.or(revision),
        etcd_version: Some(cluster.spec.version.clone()),
        cluster_id: status.cluster_id.clone(),
        message: None,
        ..before
    };
    let (ready, wanted) = (status.ready_replicas, cluster.spec.replicas);
    if status.cluster_id.is_none() {
        let progress = "restoring the backup to the first member".to_owned();
        let message = trouble_of(&status);
        return EtcdRestoreStatus { phase: Some(RestorePhase::Restoring), progress: Some(progress), message, ..known };
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

fn statements(status: &EtcdRestoreStatus) -> Vec<Statement> {
    let message = status.message.clone().or_else(|| status.progress.clone()).unwrap_or_default();
    let cluster = status.cluster_name.as_deref().unwrap_or_default();
    let reason = status.reason.as_deref().unwrap_or("Failed");
    match status.phase {
        Some(RestorePhase::Completed) => {
            let done = format!("the EtcdCluster {cluster} runs with the data of the backup");
            vec![Statement::yes("Complete", "Completed", done)]
        }
        // For clients that wait for either.
        Some(RestorePhase::Failed) => {
            vec![Statement::no("Complete", reason, message.clone()), Statement::yes("Failed", reason, message)]
        }
        Some(phase) => vec![Statement::no("Complete", &format!("{phase:?}"), message)],
        None => vec![Statement::no("Complete", "Pending", message)],
    }
}

async fn tell(restore: &EtcdRestore, before: &EtcdRestoreStatus, after: &EtcdRestoreStatus, context: &Context) {
    if before.phase == after.phase {
        return;
    }
    let cluster = after.cluster_name.clone().unwrap_or_default();
    match after.phase {
        Some(RestorePhase::Failed) => {
            context.events.failed(restore, "RestoreFailed", after.message.clone().unwrap_or_default()).await;
        }
        Some(RestorePhase::Completed) => {
            let note = format!("The EtcdCluster {cluster} runs with the data of the backup");
            context.events.done(restore, "RestoreSucceeded", &restore.name_any(), note).await;
        }
        Some(RestorePhase::Restoring) => {
            let note = format!("The backup is whole; created the EtcdCluster {cluster}");
            context.events.done(restore, "ClusterCreated", &cluster, note).await;
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(version: &str) -> Manifest {
        let manifest = json!({
            "backup": "n/b", "clusterId": "1", "revision": 5, "keys": 1, "etcdVersion": version, "member": "m",
            "withQuorum": true, "takenAt": "2026-01-01T00:00:00Z", "snapshotSize": 1, "snapshotSha256": "aa",
            "objectSize": 1, "objectSha256": "aa",
        });
        serde_json::from_value(manifest).unwrap()
    }

    #[test]
    fn a_backup_is_restored_with_the_version_that_wrote_it_or_another_patch_of_it() {
        let written = manifest("3.6.12");
        assert_eq!(version_for("", Some(&written)).as_deref(), Ok("3.6.12"));
        assert_eq!(version_for("3.6.16", Some(&written)).as_deref(), Ok("3.6.16"));
        assert_eq!(version_for("3.6.16", None).as_deref(), Ok("3.6.16"));
        for wrong in ["3.7.3", "3.5.35"] {
            let message = version_for(wrong, Some(&written)).unwrap_err();
            assert!(message.contains(wrong) && message.contains("3.6.12"), "{message}");
        }
        assert!(version_for("", None).unwrap_err().contains("clusterTemplate.spec.version"));
    }
}
