//! What is there? Nodes, the free space on each, and who takes it.
//!
//! Knows nodes, topologies and occupants (pods that are there, places that are promised). Must
//! never know gangs, queues or why somebody sits where they sit.
//!
//! An occupant charges its node exactly once: charging again moves it, uncharging twice does
//! nothing. Things are tried out between [`Cluster::savepoint`] and [`Cluster::rollback`], which
//! leaves no trace. Whatever changes on a node goes into the change log, from which the indexes of
//! `topology` catch up when they are asked: a change costs nothing for questions nobody asks.

mod changes;
mod crowd;
mod look;
mod minds;
mod mix;
mod needs;
mod ranks;
mod volumes;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use changes::ChangeLog;
pub(crate) use crowd::Count;
use crowd::{Crowd, Face};
pub(crate) use needs::{Need, ShapeIx};
pub(crate) use ranks::{RANK_BITS, Rank, Ranks};

use crate::event::{GangId, Name, Node, PodUid, Shape, Who};
use crate::fit::{Ask, has_soft_taint};
use crate::resources::{ResourceNames, Space};
use crate::topology::{Grain, Topologies, View};
use needs::Needs;
use volumes::Volumes;

/// A node as a number. Numbers of nodes that are gone are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeIx(pub(crate) u32);

impl NodeIx {
    /// The index of `topology` has 24 bits for it; a node takes hundreds of bytes, so memory ends first.
    pub(crate) fn of(index: usize) -> Self {
        assert!(index < 1 << 24, "fewer than 16 million nodes");
        Self(index as u32)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Who takes space on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Occupant {
    /// A pod that is there.
    Pod(PodUid),
    /// A place that was promised to a member and whose pod was not seen on a node yet.
    Place {
        /// The member's gang.
        gang: GangId,
        /// Which of the gang's pod sets.
        pod_set: u32,
        /// Which of the pod set's places.
        ordinal: u32,
    },
    /// Room that is kept on a node for a gang while its victims leave.
    Kept {
        /// The gang.
        gang: GangId,
        /// The node.
        node: Name,
    },
}

#[derive(Clone, Debug)]
struct Charge {
    node: NodeIx,
    need: Arc<Need>,
    /// `None`: nobody minds it, whatever they mind.
    face: Option<Face>,
}

/// A node that is known, or charged before it was known, or both.
#[derive(Clone, Debug)]
pub(crate) struct NodeSlot {
    pub(crate) name: Name,
    pub(crate) rank: Rank,
    /// `None`: not known (yet, or any more); nothing fits.
    pub(crate) facts: Option<Node>,
    /// Changes whenever `facts` do, so that answers which depend on them alone can be kept.
    pub(crate) version: u64,
    pub(crate) space: Space,
    pub(crate) barred: u32,
    charges: u32,
}

/// A state to come back to, see [`Cluster::savepoint`].
#[must_use = "a savepoint ends with rollback or commit"]
#[derive(Debug)]
pub struct Savepoint(usize);

#[derive(Clone, Debug)]
enum Undo {
    Occupant { occupant: Occupant, before: Option<Charge> },
    Taken { node: NodeIx, requests: Arc<Need>, count: u32 },
    Barred(NodeIx),
}

/// The nodes of a cluster, the space on them, and the topologies they form.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    names: ResourceNames,
    nodes: Vec<NodeSlot>,
    unused: Vec<NodeIx>,
    by_name: BTreeMap<Name, NodeIx>,
    ranks: Ranks<Name>,
    known: u32,
    /// Known nodes with a taint that would rather have pods elsewhere.
    soft_taints: u32,
    versions: u64,
    needs: Needs,
    occupants: BTreeMap<Occupant, Charge>,
    tally: mix::Tally,
    undo: Vec<Undo>,
    savepoints: u32,
    /// Nodes that nobody may need any more once nothing is tried out: until then, undo entries
    /// speak of them by number.
    left: Vec<NodeIx>,
    changes: ChangeLog,
    /// Of the changes, those that may have made room and were not only tried out.
    gains: ChangeLog,
    topologies: Topologies,
    crowd: Crowd,
    volumes: Volumes,
}

impl Cluster {
    /// Takes in a node as it is now. What is charged to it stays charged, also when it has become
    /// too small for that. Says whether anything changed. Not between savepoint and rollback.
    pub fn upsert_node(&mut self, node: &Node) -> bool {
        debug_assert_eq!(self.savepoints, 0, "facts are not tried out");
        let ix = self.slot(&node.name);
        let slot = &mut self.nodes[ix.index()];
        if slot.facts.as_ref() == Some(node) {
            return false;
        }
        let labels_changed = slot.facts.as_ref().is_none_or(|old| old.labels != node.labels);
        if slot.facts.is_none() {
            self.known += 1;
        }
        slot.space.set_allocatable(&node.allocatable, &mut self.names);
        let before = slot.facts.replace(node.clone());
        self.soft_taints += u32::from(has_soft_taint(node));
        self.soft_taints -= u32::from(before.as_ref().is_some_and(has_soft_taint));
        self.facts_changed(ix, labels_changed);
        true
    }

    /// The node is gone. What is charged to it stays charged until it is uncharged, and counts
    /// again if the node comes back. Says whether the node was known. Not between savepoint and
    /// rollback.
    pub fn remove_node(&mut self, name: &Name) -> bool {
        debug_assert_eq!(self.savepoints, 0, "facts are not tried out");
        let Some(&ix) = self.by_name.get(name) else { return false };
        let slot = &mut self.nodes[ix.index()];
        let Some(before) = slot.facts.take() else { return false };
        self.soft_taints -= u32::from(has_soft_taint(&before));
        self.known -= 1;
        slot.space.set_allocatable(&BTreeMap::new(), &mut self.names);
        self.facts_changed(ix, true);
        self.release_if_empty(ix);
        true
    }

    /// Takes in a Topology: node label keys, coarsest first.
    pub fn upsert_topology(&mut self, name: &Name, levels: &[Name]) {
        if self.topologies.upsert(name, levels, &self.nodes) {
            self.versions += 1;
            self.changes.forget_all();
            self.gains.forget_all();
        }
    }

    /// The Topology is gone; nothing fits into it any more.
    pub fn remove_topology(&mut self, name: &Name) {
        self.topologies.remove(name);
        self.versions += 1;
        self.changes.forget_all();
    }

    /// The node, if it is known now.
    pub fn node(&self, name: &Name) -> Option<&Node> {
        self.nodes[self.by_name.get(name)?.index()].facts.as_ref()
    }

    /// Number of nodes known now.
    pub fn node_count(&self) -> u32 {
        self.known
    }

    /// Charges this node for the occupant. An occupant that is charged already is moved, so that
    /// it never counts twice; the same charge again changes nothing. The node need not be known
    /// yet: the charge is remembered and counts from when it is.
    pub fn charge(&mut self, occupant: Occupant, node: &Name, shape: &Arc<Shape>) {
        self.seat_anew(occupant, node, shape, None);
    }

    /// The same for somebody whom others may mind, or want around; `leaving`: it is on its way out.
    pub fn charge_as(
        &mut self,
        occupant: Occupant,
        node: &Name,
        shape: &Arc<Shape>,
        who: &Arc<Who>,
        leaving: bool,
    ) {
        self.seat_anew(occupant, node, shape, Some(Face { who: who.clone(), leaving }));
    }

    fn seat_anew(&mut self, occupant: Occupant, node: &Name, shape: &Arc<Shape>, face: Option<Face>) {
        let need = self.needs.of_shape(shape, &mut self.names, &self.volumes);
        let ix = self.slot(node);
        if let Some(now) = self.occupants.get(&occupant)
            && now.node == ix
            && Arc::ptr_eq(&now.need, &need)
            && now.face == face
        {
            return;
        }
        let before = self.seat(&occupant, Some(Charge { node: ix, need, face }));
        if let Some(old) = &before {
            self.gains.push(old.node);
        }
        if self.crowd.is_watched() {
            // Who comes may be whom somebody waits for.
            self.gains.push(ix);
        }
        self.remember(|| Undo::Occupant { occupant, before });
    }

    /// Gives back what the occupant was charged for. Says whether it was charged at all.
    pub fn uncharge(&mut self, occupant: &Occupant) -> bool {
        let Some(old) = self.seat(occupant, None) else { return false };
        self.gains.push(old.node);
        self.remember(|| Undo::Occupant { occupant: occupant.clone(), before: Some(old) });
        true
    }

    /// Takes an occupant away until the savepoint is rolled back: nobody has gained anything.
    pub(crate) fn lift(&mut self, occupant: &Occupant) {
        debug_assert!(self.savepoints > 0, "occupants are lifted for one question only");
        if let Some(old) = self.seat(occupant, None) {
            self.remember(|| Undo::Occupant { occupant: occupant.clone(), before: Some(old) });
        }
    }

    /// Takes space on a node for some pods until the savepoint is rolled back.
    pub(crate) fn take_named(&mut self, node: &Name, shape: &Arc<Shape>, count: u32) {
        let need = self.needs.of_shape(shape, &mut self.names, &self.volumes);
        if let Some(ix) = self.node_ix(node) {
            self.take(ix, &need, count);
        }
    }

    /// The node that the occupant is charged to.
    pub fn node_of(&self, occupant: &Occupant) -> Option<&Name> {
        self.occupants.get(occupant).map(|charge| &self.nodes[charge.node.index()].name)
    }

    /// Starts trying things out: charges from here on can be taken back together. Savepoints
    /// nest; each ends with [`Cluster::rollback`] or [`Cluster::commit`], innermost first.
    pub fn savepoint(&mut self) -> Savepoint {
        self.savepoints += 1;
        Savepoint(self.undo.len())
    }

    /// Takes back all charges and uncharges since the savepoint.
    pub fn rollback(&mut self, savepoint: Savepoint) {
        self.unwind(savepoint.0);
        self.end_savepoint();
    }

    /// Keeps all charges and uncharges since the savepoint (until an outer savepoint is rolled
    /// back, if there is one).
    pub fn commit(&mut self, _savepoint: Savepoint) {
        self.end_savepoint();
    }

    /// Recomputes everything that is kept incrementally, and says what differs: an empty answer is
    /// the right one. For tests; costs as much as a restart.
    pub fn discrepancies(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut charges = vec![0u32; self.nodes.len()];
        let mut spaces: Vec<Space> = vec![Space::default(); self.nodes.len()];
        let mut names = self.names.clone();
        for (slot, space) in self.nodes.iter().zip(&mut spaces) {
            if let Some(node) = &slot.facts {
                space.set_allocatable(&node.allocatable, &mut names);
            }
        }
        for charge in self.occupants.values() {
            charges[charge.node.index()] += 1;
            spaces[charge.node.index()].charge(&charge.need.requests, 1);
        }
        let soft_taints = self.known_nodes().filter(|node| has_soft_taint(node)).count();
        if self.soft_taints as usize != soft_taints {
            found.push(format!("{} nodes with soft taints, counted {soft_taints}", self.soft_taints));
        }
        for (ix, slot) in self.nodes.iter().enumerate() {
            if slot.space != spaces[ix] {
                found
                    .push(format!("node {}: space {:?}, recomputed {:?}", slot.name, slot.space, spaces[ix]));
            }
            if slot.charges != charges[ix] {
                found.push(format!("node {}: {} charges, counted {}", slot.name, slot.charges, charges[ix]));
            }
            if slot.barred != 0 && self.savepoints == 0 {
                found.push(format!("node {}: still barred", slot.name));
            }
        }
        let everybody = self.occupants.values().map(|c| (c.node, &*c.need, c.face.as_ref()));
        self.crowd.discrepancies(everybody, &mut found);
        self.tally.discrepancies(self.occupants.values().map(|charge| &charge.need), &mut found);
        self.volumes.discrepancies(&mut found);
        self.needs.discrepancies(&self.volumes, &mut found);
        self.topologies.discrepancies(&self.nodes, &self.changes, &self.names, &mut found);
        found
    }

    /// All nodes with all that is known of them, in a form that can be compared.
    #[cfg(test)]
    fn nodes_by_name(&self) -> Vec<String> {
        let slot = |ix: &NodeIx| {
            let slot = self.slot_of(*ix);
            format!("{} {:?} {:?} {} {}", slot.name, slot.facts, slot.space, slot.charges, slot.barred)
        };
        self.by_name.values().map(slot).collect()
    }

    // --- for `place` ---------------------------------------------------------------------------

    /// Takes space for `count` nameless pods until the savepoint is rolled back.
    pub(crate) fn take(&mut self, node: NodeIx, need: &Arc<Need>, count: u32) {
        debug_assert!(self.savepoints > 0, "nameless pods are only tried out");
        self.nodes[node.index()].space.charge(&need.requests, count);
        self.changes.push(node);
        self.remember(|| Undo::Taken { node, requests: need.clone(), count });
    }

    /// Keeps all pods away from a node until the savepoint is rolled back.
    pub(crate) fn bar(&mut self, name: &Name) {
        debug_assert!(self.savepoints > 0, "nodes are barred for one question only");
        if let Some(&node) = self.by_name.get(name) {
            self.nodes[node.index()].barred += 1;
            self.changes.push(node);
            self.remember(|| Undo::Barred(node));
        }
    }

    pub(crate) fn need(&mut self, ask: &Ask) -> Arc<Need> {
        self.needs.of_ask(ask, &mut self.names, &self.volumes)
    }

    pub(crate) fn resource_names(&self) -> &ResourceNames {
        &self.names
    }

    pub(crate) fn gains_position(&mut self) -> u64 {
        self.gains.read_all()
    }

    /// Nodes that may have gained room, each once; `None`: too long ago to tell.
    pub(crate) fn gained_nodes(&self, position: u64) -> Option<Vec<NodeIx>> {
        let mut nodes = self.gains.since(position)?.to_vec();
        nodes.sort_unstable();
        nodes.dedup();
        Some(nodes)
    }

    pub(crate) fn node_ix(&self, name: &Name) -> Option<NodeIx> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn slot_of(&self, node: NodeIx) -> &NodeSlot {
        &self.nodes[node.index()]
    }

    /// Whether any node would rather have pods elsewhere.
    pub(crate) fn has_soft_taints(&self) -> bool {
        self.soft_taints > 0
    }

    pub(crate) fn topologies(&self) -> &Topologies {
        &self.topologies
    }

    /// The index of this need in this topology (`None`: no topology), up to date, and kept up to
    /// date from now on if it is worth `keeping`.
    pub(crate) fn index(
        &mut self,
        need: &Arc<Need>,
        (topology, grain): (Option<&Name>, &Grain),
        keeping: bool,
    ) -> Option<View<'_>> {
        self.topologies.view(need, (topology, grain), keeping, &self.nodes, &mut self.changes, &self.names)
    }

    // --- inside --------------------------------------------------------------------------------

    fn end_savepoint(&mut self) {
        self.savepoints -= 1;
        if self.savepoints == 0 {
            self.undo.clear();
            for node in std::mem::take(&mut self.left) {
                self.release_if_empty(node);
            }
        }
    }

    fn remember(&mut self, undo: impl FnOnce() -> Undo) {
        if self.savepoints > 0 {
            self.undo.push(undo());
        }
    }

    fn unwind(&mut self, len: usize) {
        while self.undo.len() > len {
            match self.undo.pop().expect("longer than len") {
                Undo::Occupant { occupant, before } => {
                    self.seat(&occupant, before);
                }
                Undo::Taken { node, requests, count } => {
                    self.nodes[node.index()].space.uncharge(&requests.requests, count);
                    self.changes.push(node);
                }
                Undo::Barred(node) => {
                    self.nodes[node.index()].barred -= 1;
                    self.changes.push(node);
                }
            }
        }
    }

    /// Puts the occupant where it is now said to be; returns where it was.
    fn seat(&mut self, occupant: &Occupant, charge: Option<Charge>) -> Option<Charge> {
        if let Some(now) = &charge {
            let slot = &mut self.nodes[now.node.index()];
            slot.space.charge(&now.need.requests, 1);
            slot.charges += 1;
            self.crowd.come(now.node, &now.need, now.face.as_ref());
            self.tally.come(&now.need);
            self.changes.push(now.node);
        }
        let before = match charge {
            Some(now) => self.occupants.insert(occupant.clone(), now),
            None => self.occupants.remove(occupant),
        };
        if let Some(old) = &before {
            let slot = &mut self.nodes[old.node.index()];
            slot.space.uncharge(&old.need.requests, 1);
            slot.charges -= 1;
            self.crowd.go(old.node, &old.need, old.face.as_ref());
            self.tally.go(&old.need);
            self.changes.push(old.node);
            self.release_if_empty(old.node);
        }
        before
    }

    fn slot(&mut self, name: &Name) -> NodeIx {
        if let Some(&ix) = self.by_name.get(name) {
            return ix;
        }
        let rank = match self.ranks.insert(name.clone()) {
            Some(rank) => rank,
            None => self.renumbered(name),
        };
        let slot = NodeSlot {
            name: name.clone(),
            rank,
            facts: None,
            version: 0,
            space: Space::default(),
            barred: 0,
            charges: 0,
        };
        let ix = match self.unused.pop() {
            Some(ix) => {
                self.nodes[ix.index()] = slot;
                ix
            }
            None => {
                self.nodes.push(slot);
                NodeIx::of(self.nodes.len() - 1)
            }
        };
        self.by_name.insert(name.clone(), ix);
        self.topologies.node_changed(ix, None);
        ix
    }

    /// All nodes got new ranks: hand them out, and let every index start anew.
    fn renumbered(&mut self, new: &Name) -> Rank {
        for slot in &mut self.nodes {
            if let Some(rank) = self.ranks.get(&slot.name) {
                slot.rank = rank;
            }
        }
        self.changes.forget_all();
        self.ranks.get(new).expect("just inserted")
    }

    fn facts_changed(&mut self, ix: NodeIx, labels_changed: bool) {
        self.versions += 1;
        let slot = &mut self.nodes[ix.index()];
        slot.version = self.versions;
        if labels_changed {
            self.topologies.node_changed(ix, slot.facts.as_ref());
        }
        self.changes.push(ix);
        self.gains.push(ix);
    }

    fn release_if_empty(&mut self, ix: NodeIx) {
        let slot = &self.nodes[ix.index()];
        if slot.facts.is_some() || slot.charges > 0 {
            return;
        }
        if self.savepoints > 0 {
            self.left.push(ix);
        } else if self.by_name.get(&slot.name) == Some(&ix) {
            self.by_name.remove(&slot.name);
            self.ranks.remove(&slot.name);
            self.unused.push(ix);
        }
    }
}

#[cfg(test)]
mod tests;
