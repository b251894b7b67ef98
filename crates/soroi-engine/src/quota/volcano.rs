//! Volcano's tree: Queues with a capability, a hard ceiling at every level, and a guarantee, which is kept
//! for them.
//!
//! Volcano 1.15, capacity plugin: a job is allocatable when its queue and all queues above it stay
//! within their capability; a resource that a capability does not name is unlimited. A queue
//! without a parent hangs below `root`, which needs no object. Of guarantees `reserve` knows.

mod reserve;

use std::collections::{BTreeMap, BTreeSet};

use super::{Sum, saturate};
use crate::event::{Amount, Name, VolcanoQueue};
use crate::reason::VolcanoProblem;

/// What limits a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// Its own capability.
    Capability,
    /// What is kept for others.
    Guarantees,
}

/// A limit of a resource: the queue, the resource, and what limits it.
pub type Limit = (Name, Name, Bound);

/// A limit, and what must be left below it.
pub type Ceiling = (Limit, Amount);

/// A queue has no room for a gang.
#[derive(Clone, Debug, PartialEq)]
pub struct NoRoom {
    /// Ceilings that hold, up to the one that does not.
    pub held: Vec<Ceiling>,
    /// The one that does not, if it is one.
    pub short: Option<Ceiling>,
    /// The queue.
    pub queue: Name,
    /// What is wrong.
    pub problem: VolcanoProblem,
}

/// All Queues, and what is used below each.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    queues: BTreeMap<Name, VolcanoQueue>,
    /// By queue: what its own gangs use. Outlives the queue's object.
    own: BTreeMap<Name, BTreeMap<Name, Sum>>,
    /// By queue: what its own gangs and those of all queues below it use.
    below: BTreeMap<Name, BTreeMap<Name, Sum>>,
    /// By queue: those right below it, where what is above ends at the top.
    children: BTreeMap<Name, BTreeSet<Name>>,
    /// Resources of which something is kept for a queue.
    reserved: BTreeSet<Name>,
    /// What there is of each resource in all.
    total: BTreeMap<Name, Sum>,
    /// Limits below which more or less is left since [`take_moved`](Self::take_moved).
    moved: BTreeSet<Limit>,
}

impl Tree {
    /// Takes in a Queue, new or changed. Tells whether anything changed.
    pub fn set(&mut self, queue: VolcanoQueue) -> bool {
        let old = self.queues.insert(queue.name.clone(), queue.clone());
        if old.as_ref() == Some(&queue) {
            return false;
        }
        self.sum_up();
        true
    }

    /// Forgets a Queue. What its gangs use stays known.
    pub fn remove(&mut self, name: &Name) -> bool {
        let known = self.queues.remove(name).is_some();
        if known {
            self.sum_up();
        }
        known
    }

    /// The Queue of this name.
    pub fn queue(&self, name: &Name) -> Option<&VolcanoQueue> {
        self.queues.get(name)
    }

    /// All Queues, in name order.
    pub fn queues(&self) -> impl Iterator<Item = &VolcanoQueue> {
        self.queues.values()
    }

    /// All usage that there is: Queue, resource, sum.
    pub(crate) fn all_used(&self) -> impl Iterator<Item = ((&Name, &Name), Sum)> {
        self.own
            .iter()
            .flat_map(|(queue, usage)| usage.iter().map(move |(resource, sum)| ((queue, resource), *sum)))
    }

    /// What the gangs of this queue and of those below it use.
    pub fn used(&self, queue: &Name, resource: &Name) -> Sum {
        self.below.get(queue).and_then(|u| u.get(resource)).copied().unwrap_or(0)
    }

    /// What a limit leaves; [`Amount::MAX`] where there is none.
    pub fn left(&self, (queue, resource, bound): &Limit) -> Amount {
        let left = match bound {
            Bound::Capability => {
                let ceiling = self.queues.get(queue).and_then(|q| q.capability.get(resource));
                ceiling.map(|ceiling| Sum::from(*ceiling) - self.used(queue, resource))
            }
            Bound::Guarantees => self.left_beside_guarantees(queue, resource),
        };
        left.map_or(Amount::MAX, saturate)
    }

    /// Whether the queue, and all above it, have room for all of `need`: every ceiling on the way
    /// with what must be left below it, from the gang's own queue upwards, as far as they hold; then what is
    /// kept for others.
    ///
    /// # Errors
    /// The first queue that has no room and why, after the ceilings that hold.
    pub fn room(&self, queue: &Name, need: &BTreeMap<Name, Amount>) -> Result<Vec<Ceiling>, NoRoom> {
        let mut held = Vec::new();
        let fail =
            |held, queue: &Name, problem| Err(NoRoom { held, short: None, queue: queue.clone(), problem });
        let need = || need.iter().filter(|(_, amount)| **amount > 0);
        let Some(own) = self.queues.get(queue) else { return fail(held, queue, VolcanoProblem::Missing) };
        if !own.open {
            return fail(held, queue, VolcanoProblem::Closed);
        }
        for name in self.path(queue) {
            let Some(at) = self.queues.get(&name) else { continue };
            if let Some(text) = &at.invalid {
                return fail(held, &name, VolcanoProblem::Invalid(text.clone()));
            }
            for (resource, amount) in need().filter(|(resource, _)| at.capability.contains_key(*resource)) {
                self.hold((name.clone(), resource.clone(), Bound::Capability), *amount, &mut held)?;
            }
        }
        for (resource, amount) in need().filter(|(resource, _)| self.reserved.contains(*resource)) {
            self.hold((queue.clone(), resource.clone(), Bound::Guarantees), *amount, &mut held)?;
        }
        Ok(held)
    }

    /// Adds a limit to those that hold.
    fn hold(&self, limit: Limit, amount: Amount, held: &mut Vec<Ceiling>) -> Result<(), NoRoom> {
        let short = amount.saturating_sub(self.left(&limit));
        if short <= 0 {
            held.push((limit, amount));
            return Ok(());
        }
        let (queue, resource) = (limit.0.clone(), limit.1.clone());
        let problem = match limit.2 {
            Bound::Capability => VolcanoProblem::OverCapability { resource, short },
            Bound::Guarantees => VolcanoProblem::Guaranteed { resource, short },
        };
        Err(NoRoom { held: std::mem::take(held), short: Some((limit, amount)), queue, problem })
    }

    /// Adds `delta` to what the gangs of `queue` use of `resource`.
    pub fn change(&mut self, queue: &Name, resource: &Name, delta: Sum) {
        let new = !self.own.contains_key(queue);
        add(self.own.entry(queue.clone()).or_default(), resource, delta);
        if new {
            self.look_for_guarantees();
        }
        for name in self.path(queue) {
            add(self.below.entry(name.clone()).or_default(), resource, delta);
            self.moved.insert((name, resource.clone(), Bound::Capability));
        }
        self.note_reserve_moved(resource);
    }

    /// The limits below which more or less is left since the last call.
    pub fn take_moved(&mut self) -> BTreeSet<Limit> {
        std::mem::take(&mut self.moved)
    }

    /// The queue itself and all above it, nearest first; stops where a parent repeats.
    fn path(&self, queue: &Name) -> Vec<Name> {
        let mut path = vec![queue.clone()];
        let mut at = self.queues.get(queue);
        while let Some(parent) = at.and_then(|q| q.parent.clone()) {
            if path.contains(&parent) {
                break;
            }
            at = self.queues.get(&parent);
            path.push(parent);
        }
        path
    }

    fn sum_up(&mut self) {
        self.look_for_guarantees();
        self.below.clear();
        for (queue, usage) in self.own.clone() {
            for name in self.path(&queue) {
                let below = self.below.entry(name).or_default();
                usage.iter().for_each(|(resource, sum)| add(below, resource, *sum));
            }
        }
    }
}

fn add(usage: &mut BTreeMap<Name, Sum>, resource: &Name, delta: Sum) {
    let sum = usage.entry(resource.clone()).or_default();
    *sum += delta;
    if *sum == 0 {
        usage.remove(resource);
    }
}
