//! What is known of the EtcdBackups of a schedule.

use etcd_operator_api::{BackupPhase, EtcdBackup};
use jiff::Timestamp;

/// Annotations on an EtcdBackup that a schedule created: the time that it was created for, and its number, counted from
/// one.
pub const SCHEDULED_AT: &str = "etcd.improbable.io/scheduled-at";
pub const NUMBER: &str = "etcd.improbable.io/backup-number";

/// An EtcdBackup of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledBackup {
    pub name: String,
    /// What it was created for. `None` if it belongs to the schedule, but was created for another reason than the time.
    pub run: Option<Run>,
    /// How it ended, if it has.
    pub end: Option<End>,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// The time of the schedule that a backup was created for, and its number, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub at: Timestamp,
    pub number: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub at: Timestamp,
    pub succeeded: bool,
}

impl ScheduledBackup {
    pub fn of(backup: &EtcdBackup) -> Self {
        let annotation = |name: &str| backup.metadata.annotations.as_ref()?.get(name);
        let at = annotation(SCHEDULED_AT).and_then(|at| at.parse().ok());
        let number = annotation(NUMBER).and_then(|number| number.parse().ok());
        let created = backup.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
        let status = backup.status.as_ref().filter(|status| status.has_ended());
        ScheduledBackup {
            name: backup.metadata.name.clone().unwrap_or_default(),
            run: at.zip(number).map(|(at, number)| Run { at, number }),
            end: status.map(|status| End {
                at: status.completion_time.as_ref().map_or(created, |time| time.0),
                succeeded: status.phase == Some(BackupPhase::Completed) && status.verified != Some(false),
            }),
            deleting: backup.metadata.deletion_timestamp.is_some(),
        }
    }

    pub fn is_active(&self) -> bool {
        self.end.is_none()
    }
}

/// Whether an EtcdBackup was created by the schedule that has this UID, rather than by an earlier one of the same name.
pub fn is_of(backup: &EtcdBackup, schedule_uid: &str) -> bool {
    backup.metadata.owner_references.iter().flatten().any(|owner| owner.uid == schedule_uid)
}

/// The name of the EtcdBackup for a time: there can be only one.
pub fn name_of(schedule: &str, at: Timestamp) -> String {
    format!("{schedule}-{}", at.as_second().div_euclid(60))
}
