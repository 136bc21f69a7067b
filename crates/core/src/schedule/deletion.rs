//! How far the deletion of the stored backups of a cluster that is gone is.

use etcd_operator_api::{EtcdBackupSchedule, Reason, ScheduleReason};

use crate::agent_job::Progress;
use crate::locations;

/// The progress of deleting the stored backups of a cluster that is gone. It is impossible to start if their location
/// is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    NotBegun,
    Runs {
        trouble: Option<String>,
    },
    Done {
        deleted: u32,
    },
    Failed {
        reason: Reason,
        message: String,
    },
    Impossible {
        message: String,
    },
    /// It has ended, but nobody knows how: its Job has to run again.
    NoReport,
}

impl Deletion {
    /// What the progress of the Job that deletes them means.
    pub fn of(schedule: &EtcdBackupSchedule, progress: Progress) -> Self {
        match progress {
            Progress::NotBegun => match locations::of_all(schedule) {
                Ok(_) => Deletion::NotBegun,
                Err(error) => Deletion::Impossible { message: error.to_string() },
            },
            Progress::Running { trouble, .. } => Deletion::Runs { trouble },
            Progress::Done { done, .. } => {
                let pruned = done.pruned.unwrap_or_default();
                match pruned.problem {
                    None => Deletion::Done { deleted: pruned.deleted },
                    Some(message) => Deletion::Failed { reason: ScheduleReason::NotAllDeleted.into(), message },
                }
            }
            Progress::Failed { reason, message, .. } => Deletion::Failed { reason, message },
            Progress::NoReport => Deletion::NoReport,
        }
    }
}
