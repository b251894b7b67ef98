//! Why not yet, in words: the one text of each reason, in Kueue's wording where Kueue has one.

use std::fmt;

use crate::reason::Reason;

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Reason {
    /// Whether only numbers differ between the two.
    pub fn same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}
