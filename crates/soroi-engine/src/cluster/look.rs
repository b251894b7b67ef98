//! Reading the cluster as a whole: for questions that are asked seldom.

use std::sync::Arc;

use super::{Cluster, Need, NodeIx, NodeSlot, Occupant};
use crate::event::{Amount, Name, Node};

impl Cluster {
    /// All nodes known now, in name order.
    pub(crate) fn known_nodes(&self) -> impl Iterator<Item = &Node> {
        self.by_name.values().filter_map(|ix| self.slot_of(*ix).facts.as_ref())
    }

    /// Grows with every change of a node or of what it is charged, tries included.
    pub(crate) fn changes_end(&mut self) -> u64 {
        self.changes.read_all()
    }

    /// Changes whenever facts of a node or topology do; not with what is charged.
    pub(crate) fn facts_version(&self) -> u64 {
        self.versions
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

    /// Whether the occupant is charged for just this on just this node.
    pub(crate) fn is_charged(&self, occupant: &Occupant, node: &Name, need: &Need) -> bool {
        let charge = self.occupants.get(occupant);
        charge.is_some_and(|charge| {
            charge.need.requests == need.requests && self.slot_of(charge.node).name == *node
        })
    }

    /// Whether one more such pod may go to the node.
    pub(crate) fn takes(&self, node: &Name, need: &Need) -> bool {
        self.suited(node, need).is_some_and(|slot| slot.space.fit_count(&need.requests) >= 1)
    }

    /// Whether such a pod, for which the node is charged already, may go there: it may unless
    /// somebody else overfilled the node.
    pub(crate) fn keeps(&self, node: &Name, need: &Need) -> bool {
        let enough =
            |slot: &NodeSlot| need.requests.iter().all(|(resource, _)| slot.space.free(resource) >= 0);
        self.suited(node, need).is_some_and(enough)
    }

    /// The node, if it is known and takes such pods, room aside.
    fn suited(&self, node: &Name, need: &Need) -> Option<&NodeSlot> {
        let slot = self.slot_of(self.node_ix(node)?);
        let facts = slot.facts.as_ref()?;
        need.node_problem(facts).is_none().then_some(slot)
    }

    /// The node that an occupant is charged to, and what it takes there.
    pub(crate) fn charge_on(&self, occupant: &Occupant) -> Option<(NodeIx, &Arc<Need>)> {
        self.occupants.get(occupant).map(|charge| (charge.node, &charge.need))
    }

    /// The node and the amounts that an occupant is charged for.
    pub(crate) fn charge_of(&self, occupant: &Occupant) -> Option<(&Name, Vec<(Name, Amount)>)> {
        let charge = self.occupants.get(occupant)?;
        let named = |(resource, amount)| (self.names.name(resource).clone(), amount);
        Some((&self.slot_of(charge.node).name, charge.need.requests.iter().map(named).collect()))
    }
}
