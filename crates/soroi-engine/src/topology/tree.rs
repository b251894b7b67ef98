//! The tree of domains of one topology.

use std::collections::BTreeMap;

use crate::cluster::{NodeIx, Rank, Ranks};
use crate::event::{Labels, Name, Node};

/// The label whose values are nodes.
const HOSTNAME: &str = "kubernetes.io/hostname";
/// Domains without nodes are forgotten when there are more of them than of the others, and at
/// least this many: then the tree is built anew.
const EMPTY_MAX: usize = 256;

/// A domain of one tree as a number. The root is [`DomainIx::ROOT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DomainIx(pub(crate) u32);

impl DomainIx {
    pub(crate) const ROOT: Self = Self(0);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Domain {
    /// The root has level 0, its children 1, and so on.
    pub(crate) level: usize,
    pub(crate) parent: DomainIx,
    pub(crate) value: Name,
    /// Sorts as the path does, among all domains of the tree.
    pub(crate) rank: Rank,
    nodes: u32,
}

/// The domains of one topology, and where each node is.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    levels: Vec<Name>,
    /// Levels that are domains in `domains`; one less than `levels` if the last is the host name.
    depth: usize,
    domains: Vec<Domain>,
    by_value: BTreeMap<(DomainIx, Name), DomainIx>,
    ranks: Ranks<Vec<Name>>,
    leaf_of: Vec<Option<DomainIx>>,
    empty: usize,
    /// Changes when numbers or ranks of domains changed their meaning.
    pub(crate) generation: u64,
}

impl Tree {
    pub(crate) fn new(levels: &[Name]) -> Self {
        let by_host = levels.last().is_some_and(|last| &**last == HOSTNAME);
        Self {
            levels: levels.to_vec(),
            depth: levels.len() - usize::from(by_host),
            domains: vec![Domain { level: 0, parent: DomainIx::ROOT, value: "".into(), rank: 0, nodes: 0 }],
            by_value: BTreeMap::new(),
            ranks: Ranks::default(),
            leaf_of: Vec::new(),
            empty: 0,
            generation: 0,
        }
    }

    /// Puts a node where its labels say; `None`, or a label missing: nowhere.
    pub(crate) fn put(&mut self, node: NodeIx, facts: Option<&Node>) {
        if self.leaf_of.len() <= node.index() {
            self.leaf_of.resize(node.index() + 1, None);
        }
        let leaf = facts.and_then(|facts| self.leaf(&facts.labels));
        let before = std::mem::replace(&mut self.leaf_of[node.index()], leaf);
        if before != leaf {
            self.count(leaf, true);
            self.count(before, false);
        }
        if self.empty > EMPTY_MAX.max(self.domains.len() / 2) {
            self.forget_empty();
        }
    }

    pub(crate) fn levels(&self) -> &[Name] {
        &self.levels
    }

    /// The levels that domains are shown with: only the host name where that is the last.
    pub(crate) fn shown_levels(&self) -> &[Name] {
        if self.depth < self.levels.len() { &self.levels[self.depth..] } else { &self.levels }
    }

    /// Number of levels whose domains are above the nodes.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// The level with this label: 1 is the coarsest, `depth() + 1` the nodes themselves.
    pub(crate) fn level(&self, label: &Name) -> Option<usize> {
        self.levels.iter().position(|level| level == label).map(|at| at + 1)
    }

    pub(crate) fn domain(&self, ix: DomainIx) -> &Domain {
        &self.domains[ix.index()]
    }

    /// Whether there is another domain of the same level.
    pub(crate) fn has_another(&self, ix: DomainIx) -> bool {
        let level = self.domain(ix).level;
        let same =
            |(at, other): (usize, &Domain)| other.level == level && other.nodes > 0 && at != ix.index();
        self.domains.iter().enumerate().any(same)
    }

    pub(crate) fn domain_count(&self) -> usize {
        self.domains.len()
    }

    /// The domain that holds the node; `None`: the node is outside of the topology.
    pub(crate) fn leaf_of(&self, node: NodeIx) -> Option<DomainIx> {
        self.leaf_of.get(node.index()).copied().flatten()
    }

    /// The domain of this level around the node.
    pub(crate) fn domain_of(&self, node: NodeIx, level: usize) -> Option<DomainIx> {
        let mut at = self.leaf_of(node)?;
        while self.domain(at).level > level {
            at = self.domain(at).parent;
        }
        (self.domain(at).level == level).then_some(at)
    }

    /// The domain at the end of a path of values; `None` if there is none above the nodes.
    pub(crate) fn find(&self, path: &[Name]) -> Option<DomainIx> {
        path.iter().try_fold(DomainIx::ROOT, |at, value| self.by_value.get(&(at, value.clone())).copied())
    }

    /// The values from the coarsest level down to this domain.
    pub(crate) fn path(&self, mut at: DomainIx) -> Vec<Name> {
        let mut path = Vec::with_capacity(self.domain(at).level);
        while at != DomainIx::ROOT {
            path.push(self.domain(at).value.clone());
            at = self.domain(at).parent;
        }
        path.reverse();
        path
    }

    pub(crate) fn path_of(&self, node: NodeIx) -> Option<Vec<Name>> {
        self.leaf_of(node).map(|leaf| self.path(leaf))
    }

    fn leaf(&mut self, labels: &Labels) -> Option<DomainIx> {
        if !self.levels.iter().all(|level| labels.contains_key(level)) {
            return None;
        }
        let mut at = DomainIx::ROOT;
        for depth in 0..self.depth {
            let value = labels.get(&self.levels[depth])?.clone();
            at = match self.by_value.get(&(at, value.clone())) {
                Some(&known) => known,
                None => self.grow(at, value),
            };
        }
        Some(at)
    }

    fn grow(&mut self, parent: DomainIx, value: Name) -> DomainIx {
        let mut path = self.path(parent);
        path.push(value.clone());
        let rank = self.ranks.insert(path.clone());
        let ix = DomainIx(u32::try_from(self.domains.len()).expect("fewer than four billion domains"));
        let level = self.domain(parent).level + 1;
        self.by_value.insert((parent, value.clone()), ix);
        self.domains.push(Domain { level, parent, value, rank: rank.unwrap_or(0), nodes: 0 });
        self.empty += 1;
        if rank.is_none() {
            self.generation += 1;
            for at in 1..self.domains.len() {
                let path = self.path(DomainIx(at as u32));
                self.domains[at].rank = self.ranks.get(&path).expect("each domain's path is ranked");
            }
        }
        ix
    }

    fn count(&mut self, leaf: Option<DomainIx>, more: bool) {
        let mut at = leaf.unwrap_or(DomainIx::ROOT);
        while at != DomainIx::ROOT {
            let domain = &mut self.domains[at.index()];
            if more {
                self.empty -= usize::from(domain.nodes == 0);
                domain.nodes += 1;
            } else {
                domain.nodes -= 1;
                self.empty += usize::from(domain.nodes == 0);
            }
            at = domain.parent;
        }
    }

    /// Keeps only domains with nodes, under new numbers.
    fn forget_empty(&mut self) {
        let mut fresh = Self::new(&self.levels);
        fresh.leaf_of = vec![None; self.leaf_of.len()];
        for node in 0..self.leaf_of.len() {
            let Some(path) = self.path_of(NodeIx::of(node)) else { continue };
            let mut at = DomainIx::ROOT;
            for value in path {
                at = match fresh.by_value.get(&(at, value.clone())) {
                    Some(&known) => known,
                    None => fresh.grow(at, value),
                };
            }
            fresh.leaf_of[node] = Some(at);
            fresh.count(Some(at), true);
        }
        fresh.generation = self.generation + 1;
        *self = fresh;
    }
}
