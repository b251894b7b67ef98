//! What may this queue use? Quota trees, borrowing, lending.
//!
//! A gang has a *seat* in each tree that applies to it (Kueue's cohorts and ClusterQueues, and
//! Volcano's Queues) and is admitted when all of its seats have room. A tree knows names and
//! amounts. It never knows nodes, pods, places, time, or which gang uses what.

pub mod kueue;
pub mod volcano;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::event::{Amount, Name};

/// Sums of amounts. Wide enough that no sum of [`Amount`]s of one cluster can overflow, so that
/// what was added can always be taken away again exactly.
pub type Sum = i128;

/// One resource of one flavor. Ordered by flavor, then resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlavorResource {
    /// The flavor.
    pub flavor: Name,
    /// The resource.
    pub resource: Name,
}

/// What a gang takes from the trees: one value for its life, charged and released as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// Its ClusterQueue and what it uses there.
    pub kueue: Option<(Name, BTreeMap<FlavorResource, Amount>)>,
    /// Its Volcano Queue and what it uses there.
    pub volcano: Option<(Name, BTreeMap<Name, Amount>)>,
}

/// All quota trees.
#[derive(Clone, Debug, Default)]
pub struct Quotas {
    /// Kueue's: cohorts and ClusterQueues.
    pub kueue: kueue::Tree,
    /// Volcano's: Queues.
    pub volcano: volcano::Tree,
}

impl Quotas {
    /// Takes what a gang uses out of each of its seats, whether there is room or not: the caller
    /// asked before, or restores what was decided earlier.
    pub fn charge(&mut self, charge: &Charge) {
        self.change(charge, 1);
    }

    /// Gives back what [`charge`](Self::charge) took.
    pub fn release(&mut self, charge: &Charge) {
        self.change(charge, -1);
    }

    /// Counts what a gang uses as promised to somebody else (`true`), or not any more.
    pub fn give_up(&mut self, charge: &Charge, given: bool) {
        self.promise_kueue(charge, if given { -1 } else { 1 });
    }

    /// Promises to a gang what its victims leave (`true`), or takes that back.
    pub fn promise(&mut self, charge: &Charge, given: bool) {
        self.promise_kueue(charge, if given { 1 } else { -1 });
    }

    fn promise_kueue(&mut self, charge: &Charge, sign: Sum) {
        if let Some((queue, usage)) = &charge.kueue {
            for (what, amount) in usage {
                self.kueue.promise(queue, what, sign * Sum::from(*amount));
            }
        }
    }

    fn change(&mut self, charge: &Charge, sign: Sum) {
        if let Some((queue, usage)) = &charge.kueue {
            for (what, amount) in usage {
                self.kueue.change(queue, what, sign * Sum::from(*amount));
            }
        }
        if let Some((queue, usage)) = &charge.volcano {
            for (resource, amount) in usage {
                self.volcano.change(queue, resource, sign * Sum::from(*amount));
            }
        }
    }
}

/// A sum as an amount: what is beyond the range of amounts becomes the nearest one.
pub fn saturate(sum: Sum) -> Amount {
    Amount::try_from(sum).unwrap_or(if sum > 0 { Amount::MAX } else { Amount::MIN })
}
