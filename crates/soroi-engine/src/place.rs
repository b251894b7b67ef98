//! Where does the whole gang go? All of it, or nothing.
//!
//! Knows shapes, counts, topology requests and the room there is. Must never know queues, quota or
//! why the gang is asked about now; it changes nothing: what it answers is charged by its caller.
//!
//! The choice is the fewest domains, then the one with the least to spare (what is left elsewhere
//! stays as large as possible), ties in order of names. For pods of one shape the answer is exact.
//! Pods of different shapes compete for the same nodes, which is bin packing: `search` looks for a
//! bounded time and says when it has not proved its "no".

mod among;
mod bundle;
mod closer;
mod fewer;
mod model;
mod part;
mod problem;
mod search;
mod shortage;
mod slices;
mod survey;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cluster::{Cluster, NodeIx};
use crate::decision::{TopologyDomain, TopologyPlaces};
use crate::event::{Name, TopologyRequest, Who};
use crate::fit::Ask;
use crate::minima::Minima;
use crate::packing::Packing;
use crate::reason::PlaceProblem;
use crate::topology::Grain;
use part::Part;
pub use shortage::{Gains, Shortage};
pub(crate) use survey::survey;

/// Nodes and how many pods go there, in no particular order.
type Taken = Vec<(NodeIx, u32)>;

/// A gang, or what is left of it to be placed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlaceRequest {
    /// What to place; at least one.
    pub pod_sets: Vec<PodSetRequest>,
    /// How many of the pods asked for here must find a place for the answer to be worth anything, in
    /// all and of each role; `None`: all. If not all fit, as many are placed as a bounded search finds
    /// places for, and at least these.
    pub minima: Option<Minima>,
    /// Nodes that must not be used.
    pub excluded: Vec<Name>,
    /// Which of the places that do.
    pub packing: Packing,
}

/// Some equal pods to be placed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodSetRequest {
    /// Its name, for the answer.
    pub name: Name,
    /// The role of its pods, for the minima.
    pub role: Option<Name>,
    /// How many pods need a place. Members that have one (see `bound`) are not counted.
    pub count: u32,
    /// What each asks of its node: its shape and what its flavor adds.
    pub ask: Ask,
    /// As whom others mean its pods, as far as anybody minds.
    pub who: Option<Arc<Who>>,
    /// The Topology of its flavor, if it has one: nodes outside of it are out.
    pub topology: Option<Name>,
    /// Where the pods must be relative to each other. Without a Topology, a request for a level
    /// cannot be met (see [`Cluster::has_level`]).
    pub request: TopologyRequest,
    /// Pod sets with the same group share one domain, whatever each of them needs (Kueue's
    /// `podSetGroupName`): their `request` should be the same, the first that asks for a level counts.
    pub group: Option<Name>,
    /// Node and number of members that sit there already and are charged. Those asked for here
    /// must be in the same required domain, and are kept near them if that is preferred.
    pub bound: Vec<(Name, u32)>,
    /// Not empty: exactly these domains (values from the coarsest level down, or only the host
    /// name where that is the last level) with exactly these counts, whatever `request` and `count` say; for
    /// assignments that were decided elsewhere or before, and whose nodes are not known.
    pub pinned: Vec<TopologyDomain>,
}

impl PodSetRequest {
    /// How many pods are to be placed: its count, or what its pinned domains add up to.
    fn asked(&self) -> u32 {
        match self.pinned.is_empty() {
            true => self.count,
            false => self.pinned.iter().fold(0, |sum, domain| domain.count.saturating_add(sum)),
        }
    }
}

/// Places for the pods of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// One entry per pod set, in the order of the request.
    pub pod_sets: Vec<PodSetPlaces>,
}

/// Places for the pods of one pod set.
#[derive(Clone, Debug, PartialEq)]
pub struct PodSetPlaces {
    /// Its name.
    pub name: Name,
    /// Node and number of pods there, in node order.
    pub nodes: Vec<(Name, u32)>,
    /// The same by topology domain, if the pod set has a Topology. Bound members not included.
    pub topology: Option<TopologyPlaces>,
}

/// Finds a place for every pod of the request, or says per pod set why there is none. What is
/// there now counts; nothing is charged.
///
/// # Errors
/// Not fitting is the other answer: one entry for each pod set that found no room (at least one),
/// with what it would have found.
pub fn place(cluster: &mut Cluster, request: &PlaceRequest) -> Result<Placement, Vec<(Name, PlaceProblem)>> {
    let savepoint = cluster.savepoint();
    for node in &request.excluded {
        cluster.bar(node);
    }
    let (mut parts, mut pod_set_of) = (Vec::with_capacity(request.pod_sets.len()), Vec::new());
    for (at, pod_set) in request.pod_sets.iter().enumerate() {
        parts.extend(Part::all_of(cluster, pod_set));
        pod_set_of.resize(parts.len(), at);
    }
    let counts: Vec<u32> = parts.iter().map(|part| part.count).collect();
    let answer = search::place(cluster, parts, request.minima.as_ref(), request.packing);
    cluster.rollback(savepoint);
    let rounded_up = |at: usize| {
        let own = pod_set_of.iter().zip(&counts).filter(|(pod_set, _)| **pod_set == at);
        own.fold(0u32, |sum, (_, count)| sum.saturating_add(*count)) > request.pod_sets[at].asked()
    };
    let cut_short = (0..request.pod_sets.len()).any(rounded_up);
    let taken = answer.map_err(|problems| {
        let named = |(part, mut problem): (usize, PlaceProblem)| {
            problem.unproven |= cut_short;
            (request.pod_sets[pod_set_of[part]].name.clone(), problem)
        };
        problems.into_iter().map(named).collect::<Vec<_>>()
    })?;
    let mut by_pod_set = vec![Taken::new(); request.pod_sets.len()];
    for (pod_set, taken) in pod_set_of.into_iter().zip(taken) {
        by_pod_set[pod_set].extend(taken);
    }
    let pod_sets = request.pod_sets.iter().zip(by_pod_set).map(|(pod_set, mut taken)| {
        slices::trim(cluster, pod_set, &mut taken);
        let nodes = cluster.named(taken);
        let topology = pod_set.topology.as_ref().and_then(|name| cluster.topology_places(name, &nodes));
        PodSetPlaces { name: pod_set.name.clone(), nodes, topology }
    });
    Ok(Placement { pod_sets: pod_sets.collect() })
}

/// How many pods of this pod set would find a place now, if it were alone: up to its count and
/// beyond. In the best single domain where one is required. `O(log nodes)` once the shape is
/// known, so this is the question to ask again and again: a gang that waited for places need not
/// be decided while this stays below its count.
pub fn fitting(cluster: &mut Cluster, pod_set: &PodSetRequest) -> u64 {
    let part = Part::new(cluster, pod_set);
    part.view(cluster).map_or(0, |view| part.fitting(&view))
}

impl Cluster {
    /// Whether the Topology is there and has a level with this node label.
    pub fn has_level(&self, topology: &Name, level: &Name) -> bool {
        self.topologies().tree(Some(topology)).is_some_and(|tree| tree.level(level).is_some())
    }

    /// How many pods with this ask fit now into the domain of this Topology at the end of the path
    /// of values (coarsest first; empty: all of it), or with no Topology: on all nodes.
    pub fn capacity(&mut self, ask: &Ask, topology: Option<&Name>, path: &[Name]) -> u64 {
        let need = self.need(ask);
        let Some(view) = self.index(&need, (topology, &Grain::FINE), true) else { return 0 };
        view.tree.find(path).map_or(0, |domain| view.index.pods_in(domain))
    }

    /// Nodes and counts as topology domains, the way Kueue's status lists them: all levels, or
    /// only the host name where that is the last one. `None` if there is no such Topology or a
    /// node is outside of it.
    pub fn topology_places(&self, topology: &Name, nodes: &[(Name, u32)]) -> Option<TopologyPlaces> {
        let tree = self.topologies().tree(Some(topology))?;
        let levels = tree.shown_levels();
        let mut counts = BTreeMap::new();
        for (node, count) in nodes {
            let labels = &self.node(node)?.labels;
            let values =
                levels.iter().map(|level| labels.get(level).cloned()).collect::<Option<Vec<Name>>>()?;
            *counts.entry(values).or_insert(0) += count;
        }
        let domains = counts.into_iter().map(|(values, count)| TopologyDomain { values, count }).collect();
        Some(TopologyPlaces { levels: levels.to_vec(), domains })
    }

    fn named(&self, mut taken: Taken) -> Vec<(Name, u32)> {
        taken.sort_unstable_by_key(|(node, _)| self.slot_of(*node).rank);
        let mut nodes: Vec<(Name, u32)> = Vec::with_capacity(taken.len());
        for (node, count) in taken {
            let name = &self.slot_of(node).name;
            match nodes.last_mut() {
                Some(last) if last.0 == *name => last.1 += count,
                _ => nodes.push((name.clone(), count)),
            }
        }
        nodes
    }
}

#[cfg(test)]
pub(crate) mod board;
#[cfg(test)]
mod tests;
