//! The kind of a reason: all of it but the numbers.

use crate::reason::{FlavorProblem, NotYet, PlaceProblem, Reason, VolcanoProblem};

impl Reason {
    /// Whether the two differ in numbers at most. The kind of a reason is true at once wherever it
    /// is shown; its numbers may be shown later.
    pub fn same_kind(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::NotYet(a), Self::NotYet(b)) => match (a, b) {
                (NotYet::MembersMissing(a), NotYet::MembersMissing(b)) => a.role == b.role,
                _ => a == b,
            },
            (Self::BackingOff { .. }, Self::BackingOff { .. })
            | (Self::BehindStrictHead { .. }, Self::BehindStrictHead { .. })
            | (Self::BehindPreemptor { .. }, Self::BehindPreemptor { .. }) => true,
            (Self::Preempting { .. }, Self::Preempting { .. }) => true,
            (Self::NoFlavor(a), Self::NoFlavor(b)) => {
                same(a, b, |(a, these), (b, those)| a == b && same(these, those, same_flavor_problem))
            }
            (Self::NoPlace(a), Self::NoPlace(b)) => {
                same(a, b, |(a, this), (b, that)| a == b && same_place(this, that))
            }
            (
                Self::VolcanoQueue { queue: a, problem: this },
                Self::VolcanoQueue { queue: b, problem: that },
            ) => a == b && same_volcano_problem(this, that),
            _ => self == other,
        }
    }
}

fn same<T>(a: &[T], b: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

fn same_flavor_problem(a: &FlavorProblem, b: &FlavorProblem) -> bool {
    use FlavorProblem::{ExceedsMaximum, NoPlace, Short};
    match (a, b) {
        (Short { flavor: f, resource: r, .. }, Short { flavor: g, resource: s, .. })
        | (ExceedsMaximum { flavor: f, resource: r, .. }, ExceedsMaximum { flavor: g, resource: s, .. }) => {
            f == g && r == s
        }
        (NoPlace { flavor: f, problem: p }, NoPlace { flavor: g, problem: q }) => f == g && same_place(p, q),
        _ => a == b,
    }
}

fn same_place(a: &PlaceProblem, b: &PlaceProblem) -> bool {
    a.topology == b.topology && a.can_ever_fit() == b.can_ever_fit()
}

fn same_volcano_problem(a: &VolcanoProblem, b: &VolcanoProblem) -> bool {
    use VolcanoProblem::{Guaranteed, OverCapability};
    match (a, b) {
        (OverCapability { resource: a, .. }, OverCapability { resource: b, .. })
        | (Guaranteed { resource: a, .. }, Guaranteed { resource: b, .. }) => a == b,
        _ => a == b,
    }
}

impl PlaceProblem {
    /// Whether all pods could fit if nothing else were there; true if that is not known.
    pub fn can_ever_fit(&self) -> bool {
        self.fitting_if_empty.is_none_or(|most| most >= self.asked)
    }
}
