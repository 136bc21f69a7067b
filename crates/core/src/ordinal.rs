//! The number at the end of a member's name.

use std::fmt;

/// The number at the end of a member's name. Ordinals are compared as numbers: 10 is above 9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ordinal(pub u32);

impl Ordinal {
    /// The ordinals of a cluster with this many members, from 0.
    pub fn first(count: u32) -> impl Iterator<Item = Ordinal> + Clone {
        (0..count).map(Ordinal)
    }

    /// Whether it is one of the [`first`](Self::first) so many.
    pub fn is_among_first(self, count: u32) -> bool {
        self.0 < count
    }
}

impl fmt::Display for Ordinal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
