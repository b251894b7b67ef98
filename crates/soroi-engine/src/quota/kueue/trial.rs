//! What would be left if these left and that one came? A tree of quotas to try things out on: of one topmost
//! cohort the queues that are concerned and what is above them, with what is promised as usage. Nothing that
//! happens here is seen outside. A tree of a hundred queues costs no more than those of them that are concerned.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::{Cell, NodeIx, Tree, Usage};
use crate::event::{Amount, Name};
use crate::quota::{FlavorResource, Sum};

/// A node of the trial, by position.
pub(crate) type At = usize;
/// A flavor resource of the trial, by position.
pub(crate) type What = usize;

/// What a gang takes, of the flavor resources of a trial.
pub(crate) type Take = Vec<(What, Sum)>;

/// Some queues below one top, all nodes above them, and some flavor resources at each.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    whats: Vec<FlavorResource>,
    nodes: Vec<Node>,
    of_queue: BTreeMap<Name, At>,
}

#[derive(Clone, Debug)]
struct Node {
    parent: Option<At>,
    height: u32,
    is_queue: bool,
    children: Vec<At>,
    weight_milli: Amount,
    /// One per flavor resource. Usage is what is promised.
    cells: Vec<Cell>,
    /// Per flavor resource, whether the node has quota of it (of its own or lent by those below).
    has: Vec<bool>,
}

/// The dominant resource share of a node (Kueue 0.18, `cache/scheduler/fair_sharing.go`): of all resources the
/// largest part of what could be lent that it uses above its own quota, by its weight. Kueue's numbers are
/// floating point, and so are these: equal shares must be equal in both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share {
    /// In thousandths of what could be lent; 0: it does not borrow.
    ratio: f64,
    weight: f64,
    /// It uses more than its own of something.
    pub(crate) borrows: bool,
}

impl Share {
    fn is_weightless(self) -> bool {
        self.weight == 0.0 && self.ratio != 0.0
    }

    fn weighted(self) -> f64 {
        if self.ratio == 0.0 { 0.0 } else { self.ratio / self.weight }
    }

    /// Which is larger. Whoever borrows without weight comes after everybody else.
    pub(crate) fn compare(self, other: Self) -> Ordering {
        match (self.is_weightless(), other.is_weightless()) {
            (true, true) => self.ratio.total_cmp(&other.ratio),
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.weighted().total_cmp(&other.weighted()),
        }
    }

    /// As a status shows it: rounded up; the largest number when it borrows without weight.
    pub(crate) fn shown(self) -> i64 {
        if self.is_weightless() {
            return i64::MAX;
        }
        // Casts of floats saturate.
        self.weighted().ceil() as i64
    }
}

impl Trial {
    /// The queue and those of its tree whose gangs are moved, with these flavor resources; `None` if there is no
    /// such queue.
    pub(crate) fn new<'q>(
        tree: &Tree,
        queue: &'q Name,
        others: impl IntoIterator<Item = &'q Name>,
        whats: impl IntoIterator<Item = FlavorResource>,
    ) -> Option<Self> {
        let concerned = concerned(tree, queue, others)?;
        let mut whats: Vec<FlavorResource> = whats.into_iter().collect();
        whats.sort();
        whats.dedup();
        let mut trial = Self { whats, nodes: Vec::with_capacity(concerned.len()), of_queue: BTreeMap::new() };
        for ix in &concerned {
            let parent = tree.nodes[*ix].parent;
            let parent = parent.map(|parent| {
                concerned.binary_search(&parent).expect("what is above a concerned node is concerned")
            });
            trial.add(tree, *ix, parent, Usage::Promised);
        }
        for at in 0..trial.nodes.len() {
            if let Some(parent) = trial.nodes[at].parent {
                trial.nodes[parent].children.push(at);
            }
        }
        Some(trial)
    }

    /// The same with every flavor resource of the tree: shares depend on all of them.
    pub(crate) fn with_all_resources<'q>(
        tree: &Tree,
        queue: &'q Name,
        others: impl IntoIterator<Item = &'q Name>,
    ) -> Option<Self> {
        let top = tree.nodes[*tree.of_queue.get(queue)?].top;
        // Everything that is owned or used below shows at the top.
        Self::new(tree, queue, others, tree.nodes[top].cells.keys().cloned())
    }

    /// The share of a node as it is now.
    pub(super) fn share_of(tree: &Tree, ix: NodeIx) -> Share {
        let mut chain = vec![ix];
        while let Some(parent) = tree.nodes[chain[chain.len() - 1]].parent {
            chain.push(parent);
        }
        let top = chain[chain.len() - 1];
        let whats = tree.nodes[top].cells.keys().cloned().collect();
        let mut trial = Self { whats, nodes: Vec::new(), of_queue: BTreeMap::new() };
        let mut at = None;
        for ix in chain.into_iter().rev() {
            at = Some(trial.add(tree, ix, at, Usage::Now));
        }
        trial.share(at.expect("a chain has its node"))
    }

    fn add(&mut self, tree: &Tree, ix: NodeIx, parent: Option<At>, usage: Usage) -> At {
        let node = &tree.nodes[ix];
        let at = self.nodes.len();
        let cell = |what| {
            let cell = tree.cell(ix, what);
            Cell { used: cell.used(usage), ..cell }
        };
        let is_queue = tree.of_queue.get(&node.name) == Some(&ix);
        self.nodes.push(Node {
            parent,
            height: node.height,
            is_queue,
            children: Vec::new(),
            weight_milli: node.weight_milli,
            cells: self.whats.iter().map(cell).collect(),
            has: self.whats.iter().map(|what| node.cells.contains_key(what)).collect(),
        });
        if is_queue {
            self.of_queue.insert(node.name.clone(), at);
        }
        at
    }

    pub(crate) fn queue(&self, name: &Name) -> Option<At> {
        self.of_queue.get(name).copied()
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The nodes above, the nearest first.
    pub(crate) fn above(&self, at: At) -> impl Iterator<Item = At> + '_ {
        std::iter::successors(self.nodes[at].parent, |at| self.nodes[*at].parent)
    }

    pub(crate) fn child_queues(&self, at: At) -> impl Iterator<Item = At> + '_ {
        self.nodes[at].children.iter().copied().filter(|child| self.nodes[*child].is_queue)
    }

    pub(crate) fn child_cohorts(&self, at: At) -> impl Iterator<Item = At> + '_ {
        self.nodes[at].children.iter().copied().filter(|child| !self.nodes[*child].is_queue)
    }

    /// What of this is about flavor resources of the trial.
    pub(crate) fn take<'a, N: Copy + Into<Sum> + 'a>(
        &self,
        usage: impl Iterator<Item = (&'a FlavorResource, &'a N)>,
    ) -> Take {
        let known = |(what, sum): (&FlavorResource, &N)| {
            self.whats.binary_search(what).ok().map(|at| (at, (*sum).into()))
        };
        usage.filter_map(known).collect()
    }

    /// Adds (`sign` 1) what somebody takes to a queue and upwards, or takes it away (-1).
    pub(crate) fn change(&mut self, queue: At, take: &Take, sign: Sum) {
        for (what, sum) in take {
            let mut step = Some((queue, sign * *sum));
            while let Some((at, delta)) = step {
                let node = &mut self.nodes[at];
                let cell = &mut node.cells[*what];
                let local = cell.local();
                let before = (cell.used - local).max(0);
                cell.used += delta;
                let up = (cell.used - local).max(0) - before;
                step = node.parent.filter(|_| up != 0).map(|parent| (parent, up));
            }
        }
    }

    /// How much more the node could use; below zero where it uses too much.
    pub(crate) fn available(&self, at: At, what: What) -> Sum {
        let node = &self.nodes[at];
        let above = node.parent.map(|parent| self.available(parent, what));
        node.cells[what].available(above, node.cells[what].used)
    }

    /// Whether the queue has room for all of it.
    pub(crate) fn fits(&self, queue: At, take: &Take) -> bool {
        take.iter().all(|(what, sum)| *sum <= self.available(queue, *what))
    }

    /// Whether the node would use more than its own quota with so much more.
    pub(crate) fn borrows_with(&self, at: At, what: What, more: Sum) -> bool {
        let cell = &self.nodes[at].cells[what];
        cell.used + more > cell.subtree
    }

    /// Whether the node uses no more than its own quota of each of these.
    pub(crate) fn is_within(&self, at: At, whats: &[What]) -> bool {
        whats.iter().all(|what| !self.borrows_with(at, *what, 0))
    }

    /// Whether the node uses less than what its object says it owns of each of these.
    pub(crate) fn is_under_nominal(&self, at: At, whats: &[What]) -> bool {
        let cells = &self.nodes[at].cells;
        whats.iter().all(|what| cells[*what].used < Sum::from(cells[*what].nominal))
    }

    /// Whether what is asked fits into the node's own quota, and what of it would have to come from above
    /// (Kueue, `QuantitiesFitInQuota`).
    pub(crate) fn fits_own(&self, at: At, take: &Take) -> (bool, Take) {
        let cells = &self.nodes[at].cells;
        let fits = take.iter().all(|(what, sum)| !self.borrows_with(at, *what, *sum));
        let rest = take.iter().map(|(what, sum)| {
            let cell = &cells[*what];
            (*what, (*sum - (cell.local() - cell.used).max(0)).max(0))
        });
        (fits, rest.collect())
    }

    /// How high in the tree the queue must reach for this (see [`Tree::borrow_height`]).
    pub(crate) fn borrow_height(&self, queue: At, take: &Take) -> u32 {
        let height = |(what, sum): &(What, Sum)| {
            let (mut at, mut rest) = (queue, *sum);
            while self.borrows_with(at, *what, rest) {
                let Some(parent) = self.nodes[at].parent else { break };
                let cell = &self.nodes[at].cells[*what];
                rest -= (cell.local() - cell.used).max(0);
                at = parent;
            }
            self.nodes[at].height
        };
        take.iter().map(height).max().unwrap_or(0)
    }

    /// The share of a node. That of a topmost one is 0: there is nobody to borrow from.
    pub(crate) fn share(&self, at: At) -> Share {
        let node = &self.nodes[at];
        let weight = node.weight_milli as f64 / 1000.0;
        let mut share = Share { ratio: 0.0, weight, borrows: false };
        let Some(parent) = node.parent else { return share };
        let mut borrowed: BTreeMap<&Name, Sum> = BTreeMap::new();
        for (what, cell) in node.cells.iter().enumerate() {
            let over = cell.used - cell.subtree;
            if over > 0 && node.has[what] {
                *borrowed.entry(&self.whats[what].resource).or_default() += over;
            }
        }
        if borrowed.is_empty() {
            return share;
        }
        share.borrows = true;
        let mut lendable: BTreeMap<&Name, Sum> = BTreeMap::new();
        for (what, named) in self.whats.iter().enumerate() {
            if borrowed.contains_key(&named.resource) {
                *lendable.entry(&named.resource).or_default() += self.potential(parent, what);
            }
        }
        for (resource, over) in borrowed {
            let all = lendable.get(resource).copied().unwrap_or(0);
            if all > 0 {
                share.ratio = share.ratio.max(over as f64 * 1000.0 / all as f64);
            }
        }
        share
    }

    /// The most that the node could use if nobody else used anything.
    fn potential(&self, at: At, what: What) -> Sum {
        let cell = &self.nodes[at].cells[what];
        let Some(parent) = self.nodes[at].parent else { return cell.subtree };
        let most = cell.local() + self.potential(parent, what);
        match cell.borrowing_limit {
            Some(limit) => most.min(cell.subtree + Sum::from(limit)),
            None => most,
        }
    }
}

/// These queues, as far as they are in the tree of the first, and all nodes above them, in order.
fn concerned<'q>(
    tree: &Tree,
    queue: &'q Name,
    others: impl IntoIterator<Item = &'q Name>,
) -> Option<Vec<NodeIx>> {
    let top = tree.nodes[*tree.of_queue.get(queue)?].top;
    let mut nodes: BTreeSet<NodeIx> = BTreeSet::new();
    let mut last = None;
    for name in std::iter::once(queue).chain(others) {
        // Those of one queue mostly come together.
        if last.replace(name) == Some(name) {
            continue;
        }
        let mut at = tree.of_queue.get(name).copied().filter(|ix| tree.nodes[*ix].top == top);
        while let Some(ix) = at.filter(|ix| nodes.insert(*ix)) {
            at = tree.nodes[ix].parent;
        }
    }
    Some(nodes.into_iter().collect())
}
