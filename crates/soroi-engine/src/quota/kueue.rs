//! Kueue's tree: cohorts, hierarchical, with ClusterQueues as leaves.
//!
//! The arithmetic is Kueue's (0.18, `pkg/cache/scheduler/resource_node.go`):
//! - the *subtree quota* of a node is its nominal quota and what its children let out of theirs;
//! - a lending limit keeps `local = max(0, subtree − lending limit)` for the node alone;
//! - usage is charged to the node; what exceeds its local quota is charged to its parent too;
//! - what is *available* is what is left locally, and what the parent has available, as far as the
//!   borrowing limit goes.
//!
//! While victims of a preemption leave there are two truths: what is used *now*, by them too, and
//! what is *promised*, where their quota is the preemptor's already. Both have to allow what is
//! given to anybody else; who else may be preempted is asked of what is promised.
//!
//! A cohort exists as an object or because a queue or cohort names it. Cohorts in a cycle, and
//! those below one, keep their numbers but make their queues inactive.

use std::collections::{BTreeMap, BTreeSet};

mod trial;
pub(crate) use trial::{Share, Take, Trial};

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
    /// By ClusterQueue: what is promised beyond what is used now; below zero where victims leave.
    promised: BTreeMap<Name, BTreeMap<FlavorResource, Sum>>,
    nodes: Vec<Node>,
    of_queue: BTreeMap<Name, NodeIx>,
    of_cohort: BTreeMap<Name, NodeIx>,
    /// By the node at the top: its name as a root, and the queues below it, in name order.
    tops: BTreeMap<NodeIx, Top>,
    /// The nodes at the top, by their names as roots.
    roots: BTreeMap<Name, NodeIx>,
    /// An object changed: `nodes` must be built again before it is asked.
    stale: bool,
    /// Where usage changed since [`take_moved`](Self::take_moved): root and flavor resource.
    moved: BTreeSet<(Name, FlavorResource)>,
}

/// What is below a topmost cohort, or a queue without one.
#[derive(Clone, Debug)]
struct Top {
    root: Name,
    queues: Vec<NodeIx>,
    /// Of these, those that use more than their own of something when all that is promised has come.
    borrowers: BTreeSet<NodeIx>,
}

#[derive(Clone, Debug)]
struct Node {
    name: Name,
    parent: Option<NodeIx>,
    /// The node at the top; itself if there is none above.
    top: NodeIx,
    /// Edges to the deepest leaf below: 0 for a ClusterQueue.
    height: u32,
    /// The nodes right below.
    children: Vec<NodeIx>,
    weight_milli: Amount,
    cells: BTreeMap<FlavorResource, Cell>,
}

/// Which usage is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// Of gangs that run or leave, not of those that wait for them.
    Now,
    /// As it is when all victims have left and those they leave for have come.
    Promised,
}

/// One flavor resource at one node.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    nominal: Amount,
    borrowing_limit: Option<Amount>,
    lending_limit: Option<Amount>,
    subtree: Sum,
    used: Sum,
    promised: Sum,
}

impl Cell {
    fn new(quota: &Quota) -> Self {
        Self {
            nominal: quota.nominal,
            borrowing_limit: quota.borrowing_limit,
            lending_limit: quota.lending_limit,
            subtree: Sum::from(quota.nominal),
            used: 0,
            promised: 0,
        }
    }

    fn used(&self, usage: Usage) -> Sum {
        match usage {
            Usage::Now => self.used,
            Usage::Promised => self.promised,
        }
    }

    /// What is left for its node when so much is used, and so much is left above it (`None`: there is nothing
    /// above).
    fn available(&self, above: Option<Sum>, used: Sum) -> Sum {
        let Some(mut from_above) = above else { return self.subtree - used };
        let local = self.local();
        if let Some(limit) = self.borrowing_limit {
            let stored = self.subtree - local;
            from_above = from_above.min(stored - (used - local).max(0) + Sum::from(limit));
        }
        (local - used).max(0) + from_above
    }

    /// What the node keeps for itself.
    fn local(&self) -> Sum {
        self.lending_limit.map_or(0, |limit| (self.subtree - Sum::from(limit)).max(0))
    }

    fn local_unused(&self, usage: Usage) -> Sum {
        (self.local() - self.used(usage)).max(0)
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

    /// How much more the queue could use now, of its own and borrowed, without touching what is promised
    /// to others; never negative.
    pub fn available(&self, queue: &Name, what: &FlavorResource) -> Sum {
        self.of_queue.get(queue).map_or(0, |ix| self.open_at(*ix, what).max(0))
    }

    /// How much more the queue uses than it may; below zero if less: of what is used now, whatever is
    /// promised.
    pub fn available_now(&self, queue: &Name, what: &FlavorResource) -> Sum {
        self.of_queue.get(queue).map_or(0, |ix| self.available_at(*ix, what, Usage::Now))
    }

    /// The names from the topmost cohort down to the queue itself.
    pub fn path(&self, queue: &Name) -> Vec<Name> {
        let mut path = vec![queue.clone()];
        let mut at = self.of_queue.get(queue).and_then(|ix| self.nodes[*ix].parent);
        while let Some(ix) = at {
            path.push(self.nodes[ix].name.clone());
            at = self.nodes[ix].parent;
        }
        path.reverse();
        path
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
            if cell.promised + rest <= cell.subtree {
                return self.nodes[ix].height;
            }
            let Some(parent) = self.nodes[ix].parent else { return self.nodes[ix].height };
            rest -= cell.local_unused(Usage::Promised);
            ix = parent;
        }
    }

    /// What the queue owns.
    pub fn nominal(&self, queue: &Name, what: &FlavorResource) -> Sum {
        self.of_queue.get(queue).map_or(0, |ix| Sum::from(self.cell(*ix, what).nominal))
    }

    /// How much more than it owns the queue may use; `None`: as much as there is.
    pub fn borrowing_limit(&self, queue: &Name, what: &FlavorResource) -> Option<Sum> {
        self.of_queue.get(queue).and_then(|ix| self.cell(*ix, what).borrowing_limit).map(Sum::from)
    }

    /// Whether so much more fits into the quota of the queue or of a cohort above it that has another above it
    /// (the second answer of Kueue's `FindHeightOfLowestSubtreeThatFits`).
    pub fn fits_below_top(&self, queue: &Name, what: &FlavorResource, amount: Sum) -> bool {
        let (mut at, mut rest) = (self.of_queue.get(queue).copied(), amount);
        while let Some(ix) = at {
            let cell = self.cell(ix, what);
            if cell.promised + rest <= cell.subtree {
                return self.nodes[ix].parent.is_some();
            }
            rest -= cell.local_unused(Usage::Promised);
            at = self.nodes[ix].parent;
        }
        false
    }

    /// The weighted share of a queue in thousandths, rounded up, as its status shows it under fair sharing.
    pub fn queue_share(&self, queue: &Name) -> Option<i64> {
        self.of_queue.get(queue).map(|ix| Trial::share_of(self, *ix).shown())
    }

    /// The same of a cohort.
    pub fn cohort_share(&self, cohort: &Name) -> Option<i64> {
        self.of_cohort.get(cohort).map(|ix| Trial::share_of(self, *ix).shown())
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
        let ix = *self.of_queue.get(queue)?;
        self.tops.get(&self.nodes[ix].top).map(|top| top.root.clone())
    }

    /// The queues below a root, in name order.
    pub(crate) fn queues_below(&self, root: &Name) -> impl Iterator<Item = &Name> {
        let top = self.roots.get(root).and_then(|ix| self.tops.get(ix));
        top.into_iter().flat_map(|top| &top.queues).map(|ix| &self.nodes[*ix].name)
    }

    /// Of some queues those that share a topmost cohort with this one, itself included, and that use more than
    /// their own of something when all that is promised has come; itself in any case.
    pub(crate) fn who_borrows_beside<'a, T>(
        &'a self,
        queue: &'a Name,
        all: &'a BTreeMap<Name, T>,
    ) -> impl Iterator<Item = (&'a Name, &'a T)> {
        let own = self.of_queue.get(queue).copied();
        let top = own.and_then(|ix| self.tops.get(&self.nodes[ix].top));
        let others = top.into_iter().flat_map(|top| &top.borrowers).copied();
        // In name order, as their numbers are.
        let related: BTreeSet<NodeIx> = own.into_iter().chain(others).collect();
        related.into_iter().filter_map(|ix| all.get_key_value(&self.nodes[ix].name))
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
        add(&mut self.used, queue, what, delta);
        self.moved(queue, what, delta, &[Usage::Now, Usage::Promised]);
    }

    /// Adds `delta` to what is promised to the gangs of `queue` beyond what they use now.
    pub fn promise(&mut self, queue: &Name, what: &FlavorResource, delta: Sum) {
        add(&mut self.promised, queue, what, delta);
        self.moved(queue, what, delta, &[Usage::Promised]);
    }

    fn moved(&mut self, queue: &Name, what: &FlavorResource, delta: Sum, usages: &[Usage]) {
        if self.stale {
            // The next build starts from the sums; whoever changed an object wakes all its queues.
            return;
        }
        if let Some(ix) = self.of_queue.get(queue).copied() {
            usages.iter().for_each(|usage| self.change_at(ix, what, delta, *usage));
            self.note_borrower(ix);
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

    /// All that is promised beyond usage: ClusterQueue, flavor resource, sum.
    pub(crate) fn all_promised(&self) -> impl Iterator<Item = ((&Name, &FlavorResource), Sum)> {
        self.promised.iter().flat_map(|(queue, all)| all.iter().map(move |(what, sum)| ((queue, what), *sum)))
    }

    /// Per flavor resource of the queue what it could use more, below zero if it uses too much.
    pub(crate) fn headroom(&self, queue: &Name, usage: Usage) -> Vec<(FlavorResource, Sum)> {
        let Some(ix) = self.of_queue.get(queue).copied() else { return Vec::new() };
        let cells = self.nodes[ix].cells.keys();
        cells.map(|what| (what.clone(), self.available_at(ix, what, usage))).collect()
    }

    /// The queues that use more than their own of something when all that is promised has come; for the check of
    /// the invariants.
    pub(crate) fn borrowers(&self) -> BTreeSet<&Name> {
        let noted = self.tops.values().flat_map(|top| &top.borrowers);
        noted.map(|ix| &self.nodes[*ix].name).collect()
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

    /// What both usages leave.
    fn open_at(&self, ix: NodeIx, what: &FlavorResource) -> Sum {
        let now = self.available_at(ix, what, Usage::Now);
        if self.promised.is_empty() {
            return now;
        }
        now.min(self.available_at(ix, what, Usage::Promised))
    }

    fn available_at(&self, ix: NodeIx, what: &FlavorResource, usage: Usage) -> Sum {
        let cell = self.cell(ix, what);
        let above = self.nodes[ix].parent.map(|parent| self.available_at(parent, what, usage));
        cell.available(above, cell.used(usage))
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
    fn change_at(&mut self, ix: NodeIx, what: &FlavorResource, delta: Sum, usage: Usage) {
        let mut at = Some((ix, delta));
        while let Some((ix, delta)) = at {
            let cell = self.nodes[ix].cells.entry(what.clone()).or_default();
            let local = cell.local();
            let used = match usage {
                Usage::Now => &mut cell.used,
                Usage::Promised => &mut cell.promised,
            };
            let above_before = (*used - local).max(0);
            *used += delta;
            let up = (*used - local).max(0) - above_before;
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
            let mut node = Node::new(name.clone(), groups.unwrap_or_default());
            node.weight_milli = self.cohorts.get(&name).map_or(WEIGHT_MILLI, |cohort| cohort.weight_milli);
            self.nodes.push(node);
        }
        for (name, queue) in &self.queues {
            let mut node = Node::new(name.clone(), &queue.groups);
            node.parent = queue.cohort.as_ref().map(|cohort| self.of_cohort[cohort]);
            node.weight_milli = queue.weight_milli;
            self.of_queue.insert(name.clone(), self.nodes.len());
            self.nodes.push(node);
        }
        for (name, cohort) in &self.cohorts {
            let looped = self.runs_into_cycle(name);
            let parent = cohort.parent.as_ref().filter(|_| !looped);
            self.nodes[self.of_cohort[name]].parent = parent.map(|parent| self.of_cohort[parent]);
        }
        for ix in 0..self.nodes.len() {
            if let Some(parent) = self.nodes[ix].parent {
                self.nodes[parent].children.push(ix);
            }
        }
        for ix in self.children_first() {
            self.lend_to_parent(ix);
        }
        self.note_tops();
        for (queue, usage) in self.used.clone() {
            let Some(ix) = self.of_queue.get(&queue).copied() else { continue };
            usage.iter().for_each(|(what, sum)| self.change_at(ix, what, *sum, Usage::Now));
            usage.iter().for_each(|(what, sum)| self.change_at(ix, what, *sum, Usage::Promised));
        }
        for (queue, promised) in self.promised.clone() {
            let Some(ix) = self.of_queue.get(&queue).copied() else { continue };
            promised.iter().for_each(|(what, sum)| self.change_at(ix, what, *sum, Usage::Promised));
        }
        for ix in self.of_queue.values().copied().collect::<Vec<_>>() {
            self.note_borrower(ix);
        }
    }

    /// Notes whether a queue uses more than its own of something.
    fn note_borrower(&mut self, ix: NodeIx) {
        let node = &self.nodes[ix];
        let borrows = node.cells.values().any(|cell| cell.promised > cell.subtree);
        if let Some(top) = self.tops.get_mut(&node.top) {
            match borrows {
                true => _ = top.borrowers.insert(ix),
                false => _ = top.borrowers.remove(&ix),
            }
        }
    }

    fn note_tops(&mut self) {
        self.tops.clear();
        for ix in 0..self.nodes.len() {
            let mut top = ix;
            while let Some(parent) = self.nodes[top].parent {
                top = parent;
            }
            self.nodes[ix].top = top;
        }
        // In name order.
        for ix in self.of_queue.values() {
            let top = self.nodes[*ix].top;
            // A cohort and a ClusterQueue may have the same name.
            let kind = if self.nodes[top].height == 0 { "queue" } else { "cohort" };
            let root = || format!("{kind}/{}", self.nodes[top].name).into();
            let below = self.tops.entry(top).or_insert_with(|| Top {
                root: root(),
                queues: Vec::new(),
                borrowers: BTreeSet::new(),
            });
            below.queues.push(*ix);
        }
        self.roots = self.tops.iter().map(|(ix, top)| (top.root.clone(), *ix)).collect();
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
        Self {
            name,
            parent: None,
            top: 0,
            height: 0,
            children: Vec::new(),
            weight_milli: WEIGHT_MILLI,
            cells: cells.collect(),
        }
    }
}

/// Full share, for cohorts without an object.
const WEIGHT_MILLI: Amount = 1000;

fn add(
    sums: &mut BTreeMap<Name, BTreeMap<FlavorResource, Sum>>,
    queue: &Name,
    what: &FlavorResource,
    delta: Sum,
) {
    if delta == 0 {
        return;
    }
    let own = sums.entry(queue.clone()).or_default();
    let sum = own.entry(what.clone()).or_default();
    *sum += delta;
    if *sum == 0 {
        own.remove(what);
        if own.is_empty() {
            sums.remove(queue);
        }
    }
}
