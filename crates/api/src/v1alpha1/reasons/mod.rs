//! The words by which the operator says why: one in CamelCase for each reason, which a person can search for and an
//! alert can match. A word does not change once it was released; what it means is also in `docs/reference.md`.
//!
//! - [`WaitReason`]: what an EtcdCluster waits for. It is the reason of `Progressing`, and of an event.
//! - [`ConditionReason`]: all other reasons of an EtcdCluster's conditions.
//! - [`EventReason`]: what an event says was done, or failed.

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

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }
    };
}

mod condition;
mod event;
mod wait;

pub use condition::ConditionReason;
pub use event::EventReason;
pub use wait::{Pace, Severity, WaitReason};
