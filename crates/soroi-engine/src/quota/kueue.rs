//! Kueue's tree: cohorts, hierarchical, with ClusterQueues as leaves.
//!
//! The arithmetic is Kueue's (0.18, `pkg/cache/scheduler/resource_node.go`):
//! - the *subtree quota* of a node is its nominal quota and what its children let out of theirs;
//! - a lending limit keeps `local = max(0, subtree − lending limit)` for the node alone;
//! - usage is charged to the node; what exceeds its local quota is charged to its parent too;
//! - what is *available* is what is left locally, and what the parent has available, as far as the
//!   borrowing limit goes.
//!
//! A cohort exists as an object or because a queue or cohort names it. Cohorts in a cycle, and
//! those below one, keep their numbers but make their queues inactive.

use std::collections::{BTreeMap, BTreeSet};

use super::{FlavorResource, Sum};
use crate::event::{Amount, ClusterQueue, Cohort, Name, Quota, ResourceGroup};

/// A node of the tree, by position. Positions change when an object changes.
type NodeIx = usize;

/// All cohorts and ClusterQueues, and what is used of them.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    cohorts: BTreeMap<Name, Cohort>,
    queues: BTreeMap<Name, ClusterQueue>,
    /// By ClusterQueue: what its gangs use. Outlives the queue's object.
    used: BTreeMap<Name, BTreeMap<FlavorResource, Sum>>,
    nodes: Vec<Node>,
    of_queue: BTreeMap<Name, NodeIx>,
    of_cohort: BTreeMap<Name, NodeIx>,
    /// An object changed: `nodes` must be built again before it is asked.
    stale: bool,
    /// Where usage changed since [`take_moved`](Self::take_moved): root and flavor resource.
    moved: BTreeSet<(Name, FlavorResource)>,
}

#[derive(Clone, Debug)]
struct Node {
    name: Name,
    parent: Option<NodeIx>,
    /// Edges to the deepest leaf below: 0 for a ClusterQueue.
    height: u32,
    cells: BTreeMap<FlavorResource, Cell>,
}

/// One flavor resource at one node.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    nominal: Amount,
    borrowing_limit: Option<Amount>,
    lending_limit: Option<Amount>,
    subtree: Sum,
    used: Sum,
}

impl Cell {
    fn new(quota: &Quota) -> Self {
        Self {
            nominal: quota.nominal,
            borrowing_limit: quota.borrowing_limit,
            lending_limit: quota.lending_limit,
            subtree: Sum::from(quota.nominal),
            used: 0,
        }
    }

    /// What the node keeps for itself.
    fn local(&self) -> Sum {
        self.lending_limit.map_or(0, |limit| (self.subtree - Sum::from(limit)).max(0))
    }

    fn local_unused(&self) -> Sum {
        (self.local() - self.used).max(0)
    }
}

impl Tree {
    /// Takes in a ClusterQueue, new or changed. Tells whether anything changed.
    pub fn set_queue(&mut self, queue: ClusterQueue) -> bool {
        let old = self.queues.insert(queue.name.clone(), queue.clone());
        let changed = old.as_ref() != Some(&queue);
        self.stale |= changed;
        changed
    }

    /// Forgets a ClusterQueue. What its gangs use stays known.
    pub fn remove_queue(&mut self, name: &Name) -> bool {
        let known = self.queues.remove(name).is_some();
        self.stale |= known;
        known
    }

    /// Takes in a Cohort, new or changed. Tells whether anything changed.
    pub fn set_cohort(&mut self, cohort: Cohort) -> bool {
        let old = self.cohorts.insert(cohort.name.clone(), cohort.clone());
        let changed = old.as_ref() != Some(&cohort);
        self.stale |= changed;
        changed
    }

    /// Forgets a Cohort's object.
    pub fn remove_cohort(&mut self, name: &Name) -> bool {
        let known = self.cohorts.remove(name).is_some();
        self.stale |= known;
        known
    }

    /// The ClusterQueue of this name.
    pub fn queue(&self, name: &Name) -> Option<&ClusterQueue> {
        self.queues.get(name)
    }

    /// All ClusterQueues, in name order.
    pub fn queues(&self) -> impl Iterator<Item = &ClusterQueue> {
        self.queues.values()
    }

    /// All Cohort objects, in name order.
    pub fn cohorts(&self) -> impl Iterator<Item = &Cohort> {
        self.cohorts.values()
    }

    /// Builds the tree again if an object changed. The questions below ask for this first.
    pub fn refresh(&mut self) {
        if std::mem::take(&mut self.stale) {
            self.build();
        }
    }

    /// How much more the queue could use now, of its own and borrowed; never negative.
    pub fn available(&self, queue: &Name, what: &FlavorResource) -> Sum {
        self.of_queue.get(queue).map_or(0, |ix| self.available_at(*ix, what).max(0))
    }

    /// The most that the queue could use if nobody else used anything.
    pub fn potential(&self, queue: &Name, what: &FlavorResource) -> Sum {
        self.of_queue.get(queue).map_or(0, |ix| self.potential_at(*ix, what))
    }

    /// How high in the tree the queue must reach to use `amount` more: 0 is within its own quota,
    /// 1 its cohort, and so on (Kueue's `FindHeightOfLowestSubtreeThatFits`).
    pub fn borrow_height(&self, queue: &Name, what: &FlavorResource, amount: Sum) -> u32 {
        let Some(mut ix) = self.of_queue.get(queue).copied() else { return 0 };
        let mut rest = amount;
        loop {
            let cell = self.cell(ix, what);
            if cell.used + rest <= cell.subtree {
                return self.nodes[ix].height;
            }
            let Some(parent) = self.nodes[ix].parent else { return self.nodes[ix].height };
            rest -= cell.local_unused();
            ix = parent;
        }
    }

    /// What the gangs of the queue use.
    pub fn used(&self, queue: &Name, what: &FlavorResource) -> Sum {
        self.used.get(queue).and_then(|u| u.get(what)).copied().unwrap_or(0)
    }

    /// How much of its usage the queue borrows: what exceeds its nominal quota, and nothing
    /// without a cohort (Kueue, `status.flavorsReservation[].resources[].borrowed`).
    pub fn borrowed(&self, queue: &Name, what: &FlavorResource) -> Sum {
        match self.of_queue.get(queue).map(|ix| (&self.nodes[*ix], self.cell(*ix, what))) {
            Some((node, cell)) if node.parent.is_some() => (cell.used - Sum::from(cell.nominal)).max(0),
            _ => 0,
        }
    }

    /// The name of the cohort at the top, or the queue's own without one. Queues with the same
    /// root can lend to each other; what happens elsewhere does not concern them.
    pub fn root(&self, queue: &Name) -> Option<Name> {
        let mut ix = *self.of_queue.get(queue)?;
        while let Some(parent) = self.nodes[ix].parent {
            ix = parent;
        }
        // A cohort and a ClusterQueue may have the same name.
        let kind = if self.nodes[ix].height == 0 { "queue" } else { "cohort" };
        Some(format!("{kind}/{}", self.nodes[ix].name).into())
    }

    /// The cycle that the queue's cohorts run into: the first name of it.
    pub fn cycle(&self, queue: &Name) -> Option<Name> {
        let mut seen = Vec::new();
        let mut at = self.queues.get(queue)?.cohort.clone()?;
        loop {
            if let Some(start) = seen.iter().position(|name| *name == at) {
                return seen[start..].iter().min().cloned();
            }
            let parent = self.cohorts.get(&at).and_then(|cohort| cohort.parent.clone())?;
            seen.push(std::mem::replace(&mut at, parent));
        }
    }

    /// Adds `delta` to what the gangs of `queue` use of `what`, and upwards.
    pub fn change(&mut self, queue: &Name, what: &FlavorResource, delta: Sum) {
        let own = self.used.entry(queue.clone()).or_default();
        let sum = own.entry(what.clone()).or_default();
        *sum += delta;
        if *sum == 0 {
            own.remove(what);
        }
        if self.stale {
            // The next build starts from `used`; whoever changed an object wakes all its queues.
            return;
        }
        if let Some(ix) = self.of_queue.get(queue).copied() {
            self.change_at(ix, what, delta);
        }
        if let Some(root) = self.root(queue) {
            self.moved.insert((root, what.clone()));
        }
    }

    /// The roots and flavor resources of which usage changed since the last call.
    pub fn take_moved(&mut self) -> BTreeSet<(Name, FlavorResource)> {
        std::mem::take(&mut self.moved)
    }

    /// All usage that there is: ClusterQueue, flavor resource, sum.
    pub(crate) fn all_used(&self) -> impl Iterator<Item = ((&Name, &FlavorResource), Sum)> {
        self.used.iter().flat_map(|(queue, usage)| usage.iter().map(move |(what, sum)| ((queue, what), *sum)))
    }

    /// Per flavor resource of the queue what it could use more, below zero if it uses too much.
    pub(crate) fn headroom(&self, queue: &Name) -> Vec<(FlavorResource, Sum)> {
        let Some(ix) = self.of_queue.get(queue).copied() else { return Vec::new() };
        self.nodes[ix].cells.keys().map(|what| (what.clone(), self.available_at(ix, what))).collect()
    }

    /// Whether the tree was built since an object changed last.
    pub(crate) fn is_fresh(&self) -> bool {
        !self.stale
    }

    /// Builds the tree again, whether an object changed or not.
    pub(crate) fn rebuild(&mut self) {
        self.build();
    }

    /// The nodes as (name, is a queue, flavor resource, subtree quota, usage), for pictures and
    /// for the check of the invariants.
    pub fn sums(&self) -> Vec<(Name, bool, FlavorResource, Sum, Sum)> {
        let queues = self.of_queue.values().copied().collect::<BTreeSet<_>>();
        let node = |(ix, node): (usize, &Node)| {
            let is_queue = queues.contains(&ix);
            let name = node.name.clone();
            // What neither has quota nor is used may be there or not.
            let cells =
                node.cells.clone().into_iter().filter(|(_, cell)| (cell.subtree, cell.used) != (0, 0));
            cells.map(move |(what, cell)| (name.clone(), is_queue, what, cell.subtree, cell.used))
        };
        self.nodes.iter().enumerate().flat_map(node).collect()
    }

    fn cell(&self, ix: NodeIx, what: &FlavorResource) -> Cell {
        self.nodes[ix].cells.get(what).copied().unwrap_or_default()
    }

    fn available_at(&self, ix: NodeIx, what: &FlavorResource) -> Sum {
        let cell = self.cell(ix, what);
        let Some(parent) = self.nodes[ix].parent else { return cell.subtree - cell.used };
        let mut from_parent = self.available_at(parent, what);
        if let Some(limit) = cell.borrowing_limit {
            let stored = cell.subtree - cell.local();
            let used_there = (cell.used - cell.local()).max(0);
            from_parent = from_parent.min(stored - used_there + Sum::from(limit));
        }
        cell.local_unused() + from_parent
    }

    fn potential_at(&self, ix: NodeIx, what: &FlavorResource) -> Sum {
        let cell = self.cell(ix, what);
        let Some(parent) = self.nodes[ix].parent else { return cell.subtree };
        let most = cell.local() + self.potential_at(parent, what);
        match cell.borrowing_limit {
            Some(limit) => most.min(cell.subtree + Sum::from(limit)),
            None => most,
        }
    }

    /// What goes up to the parent is what lies above the local quota, before and after.
    fn change_at(&mut self, ix: NodeIx, what: &FlavorResource, delta: Sum) {
        let mut at = Some((ix, delta));
        while let Some((ix, delta)) = at {
            let cell = self.nodes[ix].cells.entry(what.clone()).or_default();
            let above_before = (cell.used - cell.local()).max(0);
            cell.used += delta;
            let up = (cell.used - cell.local()).max(0) - above_before;
            at = self.nodes[ix].parent.filter(|_| up != 0).map(|parent| (parent, up));
        }
    }

    fn build(&mut self) {
        self.nodes.clear();
        self.of_queue.clear();
        self.of_cohort.clear();
        for name in self.cohort_names() {
            let groups = self.cohorts.get(&name).map(|cohort| cohort.groups.as_slice());
            self.of_cohort.insert(name.clone(), self.nodes.len());
            self.nodes.push(Node::new(name, groups.unwrap_or_default()));
        }
        for (name, queue) in &self.queues {
            let mut node = Node::new(name.clone(), &queue.groups);
            node.parent = queue.cohort.as_ref().map(|cohort| self.of_cohort[cohort]);
            self.of_queue.insert(name.clone(), self.nodes.len());
            self.nodes.push(node);
        }
        for (name, cohort) in &self.cohorts {
            let looped = self.runs_into_cycle(name);
            let parent = cohort.parent.as_ref().filter(|_| !looped);
            self.nodes[self.of_cohort[name]].parent = parent.map(|parent| self.of_cohort[parent]);
        }
        for ix in self.children_first() {
            self.lend_to_parent(ix);
        }
        for (queue, usage) in self.used.clone() {
            let Some(ix) = self.of_queue.get(&queue).copied() else { continue };
            usage.iter().for_each(|(what, sum)| self.change_at(ix, what, *sum));
        }
    }

    /// Every cohort that has an object or is named by somebody.
    fn cohort_names(&self) -> BTreeSet<Name> {
        let objects = self.cohorts.keys();
        let parents = self.cohorts.values().filter_map(|cohort| cohort.parent.as_ref());
        let of_queues = self.queues.values().filter_map(|queue| queue.cohort.as_ref());
        objects.chain(parents).chain(of_queues).cloned().collect()
    }

    fn runs_into_cycle(&self, cohort: &Name) -> bool {
        let mut seen = BTreeSet::new();
        let mut at = Some(cohort);
        while let Some(name) = at {
            if !seen.insert(name) {
                return true;
            }
            at = self.cohorts.get(name).and_then(|cohort| cohort.parent.as_ref());
        }
        false
    }

    /// Positions in an order in which every node comes before its parent; sets the heights.
    fn children_first(&mut self) -> Vec<NodeIx> {
        let depth = |mut ix: NodeIx| {
            let mut depth = 0;
            while let Some(parent) = self.nodes[ix].parent {
                (ix, depth) = (parent, depth + 1);
            }
            depth
        };
        let mut order: Vec<(u32, NodeIx)> = (0..self.nodes.len()).map(|ix| (depth(ix), ix)).collect();
        order.sort_by(|a, b| b.cmp(a));
        for (_, ix) in &order {
            if let Some(parent) = self.nodes[*ix].parent {
                self.nodes[parent].height = self.nodes[parent].height.max(self.nodes[*ix].height + 1);
            }
        }
        order.into_iter().map(|(_, ix)| ix).collect()
    }

    fn lend_to_parent(&mut self, ix: NodeIx) {
        let Some(parent) = self.nodes[ix].parent else { return };
        for (what, cell) in self.nodes[ix].cells.clone() {
            let lent = cell.subtree - cell.local();
            self.nodes[parent].cells.entry(what).or_default().subtree += lent;
        }
    }
}

impl Node {
    fn new(name: Name, groups: &[ResourceGroup]) -> Self {
        let flavors = groups.iter().flat_map(|group| &group.flavors);
        let cells = flavors.flat_map(|flavor| {
            flavor.quotas.iter().map(|quota| {
                let what = FlavorResource { flavor: flavor.flavor.clone(), resource: quota.resource.clone() };
                (what, Cell::new(quota))
            })
        });
        Self { name, parent: None, height: 0, cells: cells.collect() }
    }
}
