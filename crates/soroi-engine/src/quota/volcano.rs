//! Volcano's tree: Queues with a capability, a hard ceiling at every level.
//!
//! Volcano 1.15, capacity plugin: a job is allocatable when its queue and all queues above it stay
//! within their capability; a resource that a capability does not name is unlimited. A queue
//! without a parent hangs below `root`, which needs no object.

use std::collections::{BTreeMap, BTreeSet};

use super::{Sum, saturate};
use crate::event::{Amount, Name, VolcanoQueue};
use crate::reason::VolcanoProblem;

/// A queue, a resource of its capability, and what must be left of it.
pub type Ceiling = (Name, Name, Amount);

/// A queue has no room for a gang.
#[derive(Clone, Debug, PartialEq)]
pub struct NoRoom {
    /// Ceilings that hold, up to the one that does not.
    pub held: Vec<Ceiling>,
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
    /// Queues and resources of which usage changed since [`take_moved`](Self::take_moved).
    moved: BTreeSet<(Name, Name)>,
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

    /// What the queue's own capability leaves of a resource; [`Amount::MAX`] without a ceiling.
    pub fn left(&self, queue: &Name, resource: &Name) -> Amount {
        let ceiling = self.queues.get(queue).and_then(|q| q.capability.get(resource));
        ceiling.map_or(Amount::MAX, |ceiling| saturate(Sum::from(*ceiling) - self.used(queue, resource)))
    }

    /// Whether the queue, and all above it, have room for all of `need`: every ceiling on the way
    /// with what must be left below it, from the gang's own queue upwards, as far as they hold.
    ///
    /// # Errors
    /// The first queue that has no room and why, after the ceilings that hold.
    pub fn room(&self, queue: &Name, need: &BTreeMap<Name, Amount>) -> Result<Vec<Ceiling>, NoRoom> {
        let mut held = Vec::new();
        let fail = |held, queue: &Name, problem| Err(NoRoom { held, queue: queue.clone(), problem });
        let Some(own) = self.queues.get(queue) else { return fail(held, queue, VolcanoProblem::Missing) };
        if !own.open {
            return fail(held, queue, VolcanoProblem::Closed);
        }
        for name in self.path(queue) {
            let Some(at) = self.queues.get(&name) else { continue };
            if let Some(text) = &at.invalid {
                return fail(held, &name, VolcanoProblem::Invalid(text.clone()));
            }
            for (resource, amount) in
                need.iter().filter(|(resource, _)| at.capability.contains_key(*resource))
            {
                let short = amount.saturating_sub(self.left(&name, resource));
                if short > 0 && *amount > 0 {
                    let resource = resource.clone();
                    return fail(held, &name, VolcanoProblem::OverCapability { resource, short });
                }
                held.push((name.clone(), resource.clone(), *amount));
            }
        }
        Ok(held)
    }

    /// Adds `delta` to what the gangs of `queue` use of `resource`.
    pub fn change(&mut self, queue: &Name, resource: &Name, delta: Sum) {
        add(self.own.entry(queue.clone()).or_default(), resource, delta);
        for name in self.path(queue) {
            add(self.below.entry(name.clone()).or_default(), resource, delta);
            self.moved.insert((name, resource.clone()));
        }
    }

    /// The queues and resources of which usage changed since the last call.
    pub fn take_moved(&mut self) -> BTreeSet<(Name, Name)> {
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
