//! Reading the cluster as a whole: for questions that are asked seldom.

use super::{Cluster, Occupant};
use crate::event::{Amount, Name, Node};
use crate::resources::Space;

impl Cluster {
    /// All nodes known now with the room on them, in name order.
    pub(crate) fn known_nodes(&self) -> impl Iterator<Item = (&Node, &Space)> {
        let slots = self.by_name.values().map(|ix| self.slot_of(*ix));
        slots.filter_map(|slot| Some((slot.facts.as_ref()?, &slot.space)))
    }

    /// Grows with every change of a node or of what it is charged, tries included.
    pub(crate) fn changes_end(&mut self) -> u64 {
        self.changes.read_all()
    }

    /// Changes whenever facts of a node or topology do; not with what is charged.
    pub(crate) fn facts_version(&self) -> u64 {
        self.versions
    }

    /// The levels of a Topology, coarsest first; none if it is not there.
    pub(crate) fn levels(&self, topology: &Name) -> Option<&[Name]> {
        self.topologies.tree(Some(topology)).map(|tree| tree.levels())
    }

    /// What is left of each resource of a node; below zero where it is over-full.
    pub(crate) fn free_on(&self, node: &Name) -> Vec<(Name, Amount)> {
        let Some(ix) = self.node_ix(node) else { return Vec::new() };
        let space = &self.slot_of(ix).space;
        let named = |resource| (self.names.name(resource).clone(), space.free(resource));
        space.resources().map(named).collect()
    }

    /// Everybody who is charged, in order.
    pub(crate) fn occupants(&self) -> impl Iterator<Item = &Occupant> {
        self.occupants.keys()
    }
}
