//! The words by which the operator says why: one in CamelCase for each reason, which a person can search for and an
//! alert can match. A word does not change once it was released; what it means is also in `docs/reference.md`.
//!
//! - Of an EtcdCluster: [`WaitReason`] is what it waits for, as the reason of `Progressing` and of an event;
//!   [`ConditionReason`] has all other reasons of its conditions, [`EventReason`] what an event says was done, or failed.
//! - Of an EtcdBackup: [`BackupReason`] for conditions and `status.reason`, [`BackupEventReason`] for events.
//! - Of an EtcdBackupSchedule: [`ScheduleReason`] for conditions, [`ScheduleEventReason`] for events.
//! - Of an EtcdRestore: [`RestoreReason`] for conditions and `status.reason`, [`RestoreEventReason`] for events.
//! - [`JobFailureReason`]: why the work of a Job failed, for all three of them.
//!
//! Each becomes a [`Reason`] where it is written. Whether an event is a warning follows from its reason: [`Announced`].

/// Defines an enum whose variants are words that users read. Each needs a doc comment.
macro_rules! reasons {
    (
        $(#[doc = $about:literal])+
        pub enum $name:ident {
            $( $(#[doc = $meaning:literal])+ $word:ident, )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[doc = $meaning])+ $word, )+
        }

        impl $name {
            /// Every reason, in the order in which they are defined.
            pub const ALL: &'static [$name] = &[$( $name::$word ),+];

            /// The word as users read it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( $name::$word => stringify!($word), )+
                }
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl From<$name> for $crate::v1alpha1::reasons::Reason {
            fn from(reason: $name) -> Self {
                Self::of(reason.as_str())
            }
        }

        impl PartialEq<$name> for $crate::v1alpha1::reasons::Reason {
            fn eq(&self, other: &$name) -> bool {
                self.as_str() == other.as_str()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }
    };
}

mod backup;
mod condition;
mod event;
mod job;
mod reason;
mod restore;
mod schedule;
mod severity;
mod wait;

pub use backup::{BackupEventReason, BackupReason};
pub use condition::ConditionReason;
pub use event::EventReason;
pub use job::JobFailureReason;
pub use reason::Reason;
pub use restore::{RestoreEventReason, RestoreReason};
pub use schedule::{ScheduleEventReason, ScheduleReason};
pub use severity::{Announced, Severity};
pub use wait::{Pace, WaitReason};
