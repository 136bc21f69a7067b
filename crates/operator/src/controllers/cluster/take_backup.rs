//! Takes the backup before an upgrade.

use etcd_operator_api::{EtcdBackup, EventReason, labels};
use etcd_operator_core::cluster::upgrade_backup::{CLUSTER_UID, Choice, choose, name_of};
use kube::ResourceExt;
use kube::api::PostParams;

use super::actor::Actor;
use super::errors::{Error, api_error};
use super::upgrade_backup::list_schedules;
use crate::objects::owner_reference;
use crate::runtime::strict;

impl Actor<'_> {
    /// Creates the EtcdBackup. Later reconciles observe its state.
    pub async fn take_backup(&self) -> Result<(), Error> {
        let failed = |error: kube::Error| api_error("taking a backup before the upgrade", error);
        let (client, cluster) = (&self.context.client, self.cluster);
        let schedules = list_schedules(client, cluster).await.map_err(failed)?;
        let Choice::Schedule(schedule) = choose(&schedules, cluster) else {
            return Err(Error::OutOfDate("the schedule of backups is gone".to_owned()));
        };
        let name = name_of(schedule, cluster);
        let mut backup = EtcdBackup::new(&name, schedule.spec.backup_spec());
        backup.metadata.namespace = cluster.namespace();
        let metadata = schedule.spec.backup_metadata();
        backup.labels_mut().extend(metadata.labels);
        backup.labels_mut().insert(labels::BACKUP_SCHEDULE_NAME.to_owned(), schedule.name_any());
        backup.annotations_mut().extend(metadata.annotations);
        backup.annotations_mut().insert(CLUSTER_UID.to_owned(), cluster.uid().unwrap_or_default());
        backup.owner_references_mut().push(owner_reference(schedule));
        match strict::create(client, &PostParams::default(), &backup).await {
            Err(kube::Error::Api(answer)) if answer.code == 409 => return Ok(()),
            created => created.map(drop).map_err(failed)?,
        }
        self.tell(EventReason::BackingUp, &name, format!("Taking EtcdBackup {name} before the upgrade")).await
    }
}
