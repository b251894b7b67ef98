//! What is near what? Trees of domains from node labels, and how many pods fit in each domain.
//!
//! Knows node labels and the room on nodes. Must never know gangs: it counts for one shape at a
//! time and places nothing.
//!
//! A domain is identified by its full path of values, never by a name or a prefix of one: equal
//! names under different parents are different domains. A node without the label of some level is
//! outside of that topology. Where the last level is the host name, the nodes themselves are its
//! domains. "No topology" is the tree without levels: all nodes below one root.

mod grain;
mod index;
mod tree;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use grain::Grain;
pub(crate) use index::{FitIndex, Group};
pub(crate) use tree::{DomainIx, Tree};

use crate::cluster::{ChangeLog, Need, NodeIx, NodeSlot, ShapeIx};
use crate::event::{Name, Node};
use crate::fit::has_labels;
use crate::resources::{ResourceIx, ResourceNames};

/// At most this many indexes are kept, the least recently asked one goes first. An index costs
/// about 100 bytes a node: 64 of them are 32 MB at 5,000 nodes; a cluster in which more different
/// shapes wait at a time reads its nodes anew for some of them (about 1 ms at 5,000 nodes).
const INDEXES_MAX: usize = 64;

/// A topology as a number; never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TreeIx(u64);

/// The tree without levels.
const FLAT: TreeIx = TreeIx(0);

/// All topologies, and the indexes over them that somebody asked for.
#[derive(Clone, Debug)]
pub(crate) struct Topologies {
    by_name: BTreeMap<Name, TreeIx>,
    trees: BTreeMap<TreeIx, Tree>,
    issued: u64,
    indexes: BTreeMap<(ShapeIx, TreeIx, Grain), FitIndex>,
    asked: u64,
    /// The last index that was not worth keeping.
    passing: Option<FitIndex>,
}

/// One topology as one shape sees it, up to date.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) index: &'a FitIndex,
    pub(crate) nodes: &'a [NodeSlot],
}

impl<'a> View<'a> {
    /// The nodes that suit the shape, room aside.
    pub(crate) fn suitable(self) -> impl Iterator<Item = (NodeIx, &'a NodeSlot)> {
        let nodes = self.nodes.iter().enumerate().map(|(ix, slot)| (NodeIx::of(ix), slot));
        nodes.filter(move |(node, _)| self.index.suits(*node))
    }

    /// The nodes that were asked about, whatever keeps pods away from them now.
    pub(crate) fn asked_about(self) -> impl Iterator<Item = (NodeIx, &'a NodeSlot, &'a Node)> {
        let labels = &self.index.need.ask.node_labels;
        let nodes = self.nodes.iter().enumerate().map(|(ix, slot)| (NodeIx::of(ix), slot));
        let known = nodes.filter_map(|(node, slot)| Some((node, slot, slot.facts.as_ref()?)));
        known.filter(move |(_, _, facts)| has_labels(labels, &facts.labels))
    }

    /// What a node lacks when it has taken all pods that fit there.
    pub(crate) fn short_when_full(self, node: NodeIx) -> impl Iterator<Item = ResourceIx> + 'a {
        let slot = &self.nodes[node.index()];
        slot.space.short_after(&self.index.need.requests, self.index.pods_on(node))
    }
}

impl Default for Topologies {
    fn default() -> Self {
        Self {
            by_name: BTreeMap::new(),
            trees: BTreeMap::from([(FLAT, Tree::new(&[]))]),
            issued: FLAT.0,
            indexes: BTreeMap::new(),
            asked: 0,
            passing: None,
        }
    }
}

impl Topologies {
    /// Says whether anything changed.
    pub(crate) fn upsert(&mut self, name: &Name, levels: &[Name], nodes: &[NodeSlot]) -> bool {
        if self.tree(Some(name)).is_some_and(|tree| tree.levels() == levels) {
            return false;
        }
        self.remove(name);
        let mut tree = Tree::new(levels);
        for (ix, slot) in nodes.iter().enumerate() {
            tree.put(NodeIx::of(ix), slot.facts.as_ref());
        }
        self.issued += 1;
        self.by_name.insert(name.clone(), TreeIx(self.issued));
        self.trees.insert(TreeIx(self.issued), tree);
        true
    }

    pub(crate) fn remove(&mut self, name: &Name) {
        if let Some(gone) = self.by_name.remove(name) {
            self.trees.remove(&gone);
            self.indexes.retain(|(_, tree, _), _| *tree != gone);
        }
    }

    pub(crate) fn node_changed(&mut self, node: NodeIx, facts: Option<&Node>) {
        for tree in self.trees.values_mut() {
            tree.put(node, facts);
        }
    }

    pub(crate) fn tree(&self, name: Option<&Name>) -> Option<&Tree> {
        self.trees.get(&self.tree_ix(name)?)
    }

    /// What this need finds in this topology now; `None` if there is no such topology.
    pub(crate) fn view<'a>(
        &'a mut self,
        need: &Arc<Need>,
        (topology, grain): (Option<&Name>, &Grain),
        keeping: bool,
        nodes: &'a [NodeSlot],
        changes: &mut ChangeLog,
        names: &ResourceNames,
    ) -> Option<View<'a>> {
        let tree_ix = self.tree_ix(topology)?;
        let tree = self.trees.get(&tree_ix)?;
        let key = (need.ix, tree_ix, grain.clone());
        if !keeping && !self.indexes.contains_key(&key) {
            let index = self.passing.insert(FitIndex::new(need.clone(), grain.clone()));
            index.catch_up(tree, nodes, changes, names);
            return Some(View { tree, index, nodes });
        }
        if !self.indexes.contains_key(&key) && self.indexes.len() >= INDEXES_MAX {
            let oldest = self.indexes.iter().min_by_key(|(_, index)| index.asked).map(|(key, _)| key.clone());
            oldest.map(|key| self.indexes.remove(&key));
        }
        self.asked += 1;
        let index = self.indexes.entry(key).or_insert_with(|| FitIndex::new(need.clone(), grain.clone()));
        index.asked = self.asked;
        index.catch_up(tree, nodes, changes, names);
        Some(View { tree, index, nodes })
    }

    pub(crate) fn discrepancies(
        &self,
        nodes: &[NodeSlot],
        changes: &ChangeLog,
        names: &ResourceNames,
        found: &mut Vec<String>,
    ) {
        for (ix, tree) in &self.trees {
            let mut fresh = Tree::new(tree.levels());
            for (node, slot) in nodes.iter().enumerate() {
                fresh.put(NodeIx::of(node), slot.facts.as_ref());
                if tree.path_of(NodeIx::of(node)) != fresh.path_of(NodeIx::of(node)) {
                    found.push(format!("topology {ix:?}: node {} is in another domain", slot.name));
                }
            }
        }
        for ((_, tree, _), index) in &self.indexes {
            let Some(tree) = self.trees.get(tree) else {
                found.push("an index of a topology that is gone".to_owned());
                continue;
            };
            let mut changes = changes.clone();
            let mut caught_up = index.clone();
            caught_up.catch_up(tree, nodes, &mut changes, names);
            let mut fresh = FitIndex::new(index.need.clone(), index.grain.clone());
            fresh.catch_up(tree, nodes, &mut changes, names);
            if let Some(difference) = caught_up.difference(&fresh) {
                found.push(difference);
            }
        }
    }

    fn tree_ix(&self, name: Option<&Name>) -> Option<TreeIx> {
        match name {
            None => Some(FLAT),
            Some(name) => self.by_name.get(name).copied(),
        }
    }
}

#[cfg(test)]
mod tests;
