//! Guarantees: what is kept for a Queue and those below it, whether they use it or not.
//!
//! Volcano 1.15 (capacity plugin, `realCapability`) bounds each queue by what there is less the guarantees of
//! the others, so that two queues together may use what is kept for a third. Here what is kept for a queue is kept
//! from all others together: a queue *takes* what its gangs and the queues below it take, and at least its
//! guarantee; all together may take what there is. Whoever stays within a guarantee on the way up, its own or
//! that of a queue above it, takes nothing from others.

use std::collections::BTreeSet;

use super::{Bound, Tree};
use crate::event::Name;
use crate::quota::Sum;

/// The queue above all others.
const ROOT: &str = "root";

impl Tree {
    /// Takes in that there is more or less of a resource in the cluster.
    pub fn change_total(&mut self, resource: &Name, delta: Sum) {
        super::add(&mut self.total, resource, delta);
        self.note_reserve_moved(resource);
    }

    /// What there is of each resource.
    pub(crate) fn totals(&self) -> impl Iterator<Item = (&Name, Sum)> {
        self.total.iter().map(|(resource, sum)| (resource, *sum))
    }

    /// What a gang of this queue may take of a resource beside what is kept for others; `None`: as nothing is
    /// kept for others that they do not use, that is no limit.
    pub(super) fn left_beside_guarantees(&self, queue: &Name, resource: &Name) -> Option<Sum> {
        if !self.reserved.contains(resource) {
            return None;
        }
        let root = ROOT.into();
        let unused = self.wanted(&root, resource) - self.used(&root, resource);
        (unused > self.unused_above(queue, resource)).then(|| self.room_for(queue, resource))
    }

    /// The same, whether anything is kept for others or not.
    fn room_for(&self, queue: &Name, resource: &Name) -> Sum {
        let total = self.total.get(resource).copied().unwrap_or(0);
        self.unused_above(queue, resource) + (total - self.wanted(&ROOT.into(), resource)).max(0)
    }

    /// What of the guarantees of a queue and of those above it nobody uses.
    fn unused_above(&self, queue: &Name, resource: &Name) -> Sum {
        let path = self.path(queue);
        let below_root = path.iter().filter(|name| &***name != ROOT);
        below_root.map(|name| (self.guarantee(name, resource) - self.wanted(name, resource)).max(0)).sum()
    }

    fn guarantee(&self, queue: &Name, resource: &Name) -> Sum {
        self.queues.get(queue).and_then(|queue| queue.guarantee.get(resource)).copied().unwrap_or(0).into()
    }

    /// What its own gangs use, and those right below it take.
    fn wanted(&self, queue: &Name, resource: &Name) -> Sum {
        let own = self.own.get(queue).and_then(|usage| usage.get(resource)).copied().unwrap_or(0);
        let children = self.children.get(queue).into_iter().flatten();
        own + children
            .map(|child| self.wanted(child, resource).max(self.guarantee(child, resource)))
            .sum::<Sum>()
    }

    /// After queues changed: who is below whom, and of which resources anything is kept.
    pub(super) fn look_for_guarantees(&mut self) {
        self.children.clear();
        self.reserved.clear();
        let parents = self.queues.values().filter_map(|queue| queue.parent.as_ref());
        let named: BTreeSet<Name> =
            self.own.keys().chain(self.queues.keys()).chain(parents).cloned().collect();
        for name in named {
            let path = self.path(&name);
            // Queues that are above each other in a circle are below nobody. Whoever uses a queue that is not
            // there uses what there is all the same.
            let ends = path.last().and_then(|top| self.queues.get(top)?.parent.as_ref()).is_none();
            let gone = (!self.queues.contains_key(&name) && &*name != ROOT).then(|| ROOT.into());
            if let Some(parent) = path.get(1).filter(|_| ends).cloned().or(gone) {
                self.children.entry(parent).or_default().insert(name.clone());
            }
        }
        let kept = self.queues.values().flat_map(|queue| &queue.guarantee);
        self.reserved = kept.filter(|(_, amount)| **amount > 0).map(|(name, _)| name.clone()).collect();
    }

    /// Whatever one queue uses may be what others lack, wherever they are.
    pub(super) fn note_reserve_moved(&mut self, resource: &Name) {
        if self.reserved.contains(resource) {
            let all = self.queues.keys();
            self.moved.extend(all.map(|queue| (queue.clone(), resource.clone(), Bound::Guarantees)));
        }
    }
}

#[cfg(test)]
mod tests;
