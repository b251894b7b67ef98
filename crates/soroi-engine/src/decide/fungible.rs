//! In which order do the flavors of a group have their turn? As Kueue would pick one, then another if that had
//! no places, and so on.
//!
//! Kueue (0.18, `pkg/scheduler/flavorassigner`) walks the flavors in the queue's order. It stops at one that has
//! quota, or would have once others have left, as far as `whenCanBorrow` and `whenCanPreempt` say; without a stop it
//! takes the best, and whether borrowing or preemption is better says `preference`.

use std::cmp::Reverse;

use crate::event::Fungibility;

/// How a flavor would get its quota. The better one is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Means {
    /// Others would have to leave, and for one of its resources alone there is nobody who could. Those who
    /// leave for another one may be enough.
    Nobody,
    /// Gangs of its own queue would have to leave.
    Preempt,
    /// Only gangs of other queues would.
    Reclaim,
    /// It has it.
    Fits,
}

/// What decides between flavors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grade {
    pub(super) means: Means,
    /// How high in the cohorts it borrows.
    pub(super) borrow: u32,
}

impl Grade {
    pub(super) fn stops(self, rules: Fungibility) -> bool {
        let by_preemption = match self.means {
            Means::Nobody => false,
            Means::Preempt | Means::Reclaim => rules.stop_at_preempt,
            Means::Fits => true,
        };
        by_preemption && (self.borrow == 0 || rules.stop_at_borrow)
    }

    pub(super) fn beats(self, other: Self, rules: Fungibility) -> bool {
        let key = |grade: Self| (Reverse(grade.means), grade.borrow);
        match rules.prefer_preemption {
            false => key(self) < key(other),
            true => (self.borrow, Reverse(self.means)) < (other.borrow, Reverse(other.means)),
        }
    }
}

/// Flavors, given in the queue's order, in the order in which they have their turn.
pub(super) fn in_order<T>(mut options: Vec<T>, rules: Fungibility, grade: impl Fn(&T) -> Grade) -> Vec<T> {
    let mut order = Vec::with_capacity(options.len());
    while !options.is_empty() {
        let stop = options.iter().position(|option| grade(option).stops(rules));
        let best = || {
            (1..options.len()).fold(0, |best, at| {
                if grade(&options[at]).beats(grade(&options[best]), rules) { at } else { best }
            })
        };
        let next = stop.unwrap_or_else(best);
        order.push(options.remove(next));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flavors by how each would get its quota: `fit`, `reclaim`, `preempt`, with `+` if it borrows.
    fn order(flavors: &str, borrow: bool, preempt: bool, prefer_preemption: bool) -> String {
        let rules = Fungibility { stop_at_borrow: borrow, stop_at_preempt: preempt, prefer_preemption };
        let grade = |text: &&str| Grade {
            means: match text.trim_end_matches('+') {
                "fit" => Means::Fits,
                "reclaim" => Means::Reclaim,
                _ => Means::Preempt,
            },
            borrow: u32::from(text.ends_with('+')),
        };
        in_order(flavors.split(' ').collect(), rules, grade).join(" ")
    }

    #[test]
    fn the_first_that_stops_the_walk_is_next_else_the_best() {
        let rows = [
            // By default: borrowing stops, preemption does not.
            ("preempt fit+ fit", true, false, false, "fit+ fit preempt"),
            ("preempt reclaim", true, false, false, "reclaim preempt"),
            // One that need not borrow is looked for first.
            ("fit+ preempt fit", false, false, false, "fit fit+ preempt"),
            ("fit+ preempt", false, false, false, "fit+ preempt"),
            ("fit+ preempt", false, false, true, "preempt fit+"),
            // Whoever may preempt does so in the first flavor.
            ("preempt fit", true, true, false, "preempt fit"),
            ("preempt+ fit", false, true, false, "fit preempt+"),
            ("preempt+ fit", true, true, false, "preempt+ fit"),
        ];
        for (flavors, borrow, preempt, prefer, expected) in rows {
            assert_eq!(order(flavors, borrow, preempt, prefer), expected, "{flavors}");
        }
    }
}
