//! Carries out the plan for a schedule: creates and deletes its EtcdBackups.

use etcd_operator_api::{EtcdBackup, EtcdBackupSchedule, EtcdBackupSpec, ScheduleEventReason, Verify, labels};
use etcd_operator_core::notice::Notice;
use etcd_operator_core::schedule::plan::{Begin, Deletion, Plan};
use etcd_operator_core::schedule::scheduled_backup::{NUMBER, SCHEDULED_AT, is_of};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, PostParams, Preconditions, PropagationPolicy};
use kube::{Api, ResourceExt};

use super::observe::Observation;
use super::prune;
use crate::controllers::context::Context;
use crate::objects::owner_reference;
use crate::runtime::api_errors::ApiError;
use crate::runtime::strict;

/// Executes the plan. Created EtcdBackups are added to the observation, so that the next plan includes them.
pub async fn act(plan: &Plan, observation: &mut Observation, context: &Context) -> Result<(), ApiError> {
    if let Some(begin) = &plan.begin {
        stop(&plan.stop, observation, context).await?;
        let made = make(&observation.schedule, begin, context).await?;
        observation.backups.retain(|backup| !plan.stop.contains(&backup.name_any()) && backup.uid() != made.uid());
        observation.backups.push(made);
    }
    if plan.delete_job_without_report {
        prune::stop(&observation.schedule, context).await?;
        observation.deletion = Deletion::Runs { trouble: None };
    }
    if plan.stop_deleting {
        prune::stop(&observation.schedule, context).await?;
        observation.deletion = Deletion::NotBegun;
    }
    if let Some(cluster) = &plan.delete_backups_of {
        prune::begin(&observation.schedule, cluster, context).await?;
        observation.deletion = Deletion::Runs { trouble: None };
    }
    for backup in named(&observation.backups, plan.may_delete_now(&observation.schedule)) {
        delete(backup, context).await?;
    }
    Ok(())
}

/// Deletes the EtcdBackups that give way to the next one.
async fn stop(names: &[String], observation: &Observation, context: &Context) -> Result<(), ApiError> {
    for backup in named(&observation.backups, names) {
        delete(backup, context).await?;
        let name = backup.name_any();
        let note = format!("Stopped {name}, because the next backup is due");
        let notice = Notice::of(ScheduleEventReason::BackupReplaced, note).about(name);
        context.events.publish(&observation.schedule, &notice).await;
    }
    Ok(())
}

/// The EtcdBackups that have these names.
fn named<'a>(backups: &'a [EtcdBackup], names: &'a [String]) -> impl Iterator<Item = &'a EtcdBackup> {
    backups.iter().filter(|backup| names.contains(&backup.name_any()))
}

/// Creates the EtcdBackup of a time, unless it already exists, and returns it.
async fn make(schedule: &EtcdBackupSchedule, begin: &Begin, context: &Context) -> Result<EtcdBackup, ApiError> {
    let backups: Api<EtcdBackup> = Api::namespaced(context.client.clone(), &schedule.namespace().unwrap_or_default());
    match strict::create(&context.client, &PostParams::default(), &backup_of(schedule, begin)).await {
        Err(kube::Error::Api(answer)) if answer.code == 409 => {
            let doing = format!("making the EtcdBackup {:?}, whose name another one has", begin.name);
            let there = backups.get_opt(&begin.name).await.map_err(ApiError::doing(doing.clone()))?;
            let ours = there.filter(|backup| is_of(backup, &schedule.uid().unwrap_or_default()));
            ours.ok_or_else(|| ApiError::doing(doing)(kube::Error::Api(answer)))
        }
        made => {
            let made = made.map_err(ApiError::doing(format!("making the EtcdBackup {:?}", begin.name)))?;
            let notice = Notice::of(ScheduleEventReason::BackupScheduled, note_of(begin)).about(&begin.name);
            context.events.publish(schedule, &notice).await;
            Ok(made)
        }
    }
}

fn note_of(begin: &Begin) -> String {
    let Begin { name, at, .. } = begin;
    match begin.missed_since {
        Some(first) => format!("Started {name} for {at}; it makes up for those missed since {first}"),
        None => format!("Started {name} for {at}"),
    }
}

fn backup_of(schedule: &EtcdBackupSchedule, begin: &Begin) -> EtcdBackup {
    let template = schedule.spec.backup_metadata();
    let (mut of_backup, mut annotations) = (template.labels, template.annotations);
    of_backup.insert(labels::BACKUP_SCHEDULE_NAME.to_owned(), schedule.name_any());
    annotations.insert(SCHEDULED_AT.to_owned(), begin.at.to_string());
    annotations.insert(NUMBER.to_owned(), begin.number.to_string());
    let spec = schedule.spec.backup_spec();
    EtcdBackup {
        metadata: ObjectMeta {
            name: Some(begin.name.clone()),
            namespace: schedule.namespace(),
            labels: Some(of_backup),
            annotations: Some(annotations),
            owner_references: Some(vec![owner_reference(schedule)]),
            ..ObjectMeta::default()
        },
        spec: EtcdBackupSpec { verify: if begin.verify { Verify::Restore } else { spec.verify }, ..spec },
        status: None,
    }
}

/// Deletes just this EtcdBackup, and with it the Job that may still run for it.
async fn delete(backup: &EtcdBackup, context: &Context) -> Result<(), ApiError> {
    let (name, namespace) = (backup.name_any(), backup.namespace().unwrap_or_default());
    let backups: Api<EtcdBackup> = Api::namespaced(context.client.clone(), &namespace);
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        preconditions: Some(Preconditions { uid: backup.uid(), resource_version: None }),
        ..DeleteParams::default()
    };
    match backups.delete(&name, &params).await {
        Err(kube::Error::Api(answer)) if answer.code == 404 || answer.code == 409 => Ok(()),
        deleted => deleted.map(drop).map_err(ApiError::doing(format!("deleting the EtcdBackup {namespace}/{name}"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn made(verify: bool) -> EtcdBackup {
        let schedule = json!({
            "apiVersion": "etcd.improbable.io/v1alpha1",
            "kind": "EtcdBackupSchedule",
            "metadata": {"name": "nightly", "namespace": "db", "uid": "5c1e"},
            "spec": {
                "schedule": "0 3 * * *",
                "backupTemplate": {
                    "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b", SCHEDULED_AT: "never"}},
                    "spec": {"clusterName": "my-etcd", "destination": {"objectURLTemplate": "s3://b/{{.UID}}"}},
                },
            },
        });
        let at = "2026-11-16T03:00:00Z".parse().unwrap();
        let begin = Begin { name: "nightly-29913300".to_owned(), at, number: 7, verify, missed_since: None };
        backup_of(&serde_json::from_value(schedule).unwrap(), &begin)
    }

    #[test]
    fn an_etcdbackup_belongs_to_its_schedule_and_tells_its_time_and_number() {
        let metadata = json!(made(false).metadata);
        assert_eq!(
            metadata,
            json!({
                "name": "nightly-29913300",
                "namespace": "db",
                "labels": {"team": "a", "etcd.improbable.io/backup-schedule-name": "nightly"},
                "annotations": {
                    "note": "b",
                    "etcd.improbable.io/scheduled-at": "2026-11-16T03:00:00Z",
                    "etcd.improbable.io/backup-number": "7",
                },
                "ownerReferences": [{
                    "apiVersion": "etcd.improbable.io/v1alpha1",
                    "kind": "EtcdBackupSchedule",
                    "name": "nightly",
                    "uid": "5c1e",
                    "controller": true,
                    "blockOwnerDeletion": true,
                }],
            })
        );
    }

    #[test]
    fn backup_due_for_verification_is_verified_whatever_its_template_says() {
        assert_eq!(made(false).spec.verify, Verify::None);
        assert_eq!(made(true).spec.verify, Verify::Restore);
        assert_eq!(made(true).spec.cluster_name.as_deref(), Some("my-etcd"));
    }
}
