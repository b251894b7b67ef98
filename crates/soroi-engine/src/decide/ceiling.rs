//! Could it ever fit? How many pods the nodes would take if nothing else were on them, and nothing else kept
//! pods away: what tells a gang that waits from one that waits for ever.
//!
//! A cordon ends, a node gets ready, taints and labels are taken and given: whom only these keep out, does
//! not wait for ever. Which nodes a flavor means, how large they are and in which domain counts.

use std::collections::BTreeMap;

use crate::cluster::Cluster;
use crate::event::TopologyWish;
use crate::place::PodSetRequest;
use crate::topology::{DomainIx, Grain};

/// Answers are kept until a node's facts change; at most this many, because they are made anew in
/// about a millisecond per 5,000 nodes.
const KEPT_MAX: usize = 256;

/// The answers that were asked for since nodes last changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ceilings {
    version: u64,
    known: BTreeMap<PodSetRequest, Option<u32>>,
}

impl Ceilings {
    /// How many pods of the request the nodes would take at most. `None` of pods with volumes: which nodes
    /// these are within reach of is no matter of room, and may change; and where no node has the labels of the
    /// topology yet.
    pub(crate) fn of(&mut self, cluster: &mut Cluster, request: &PodSetRequest) -> Option<u32> {
        if !request.ask.shape.claims.is_empty() {
            return None;
        }
        let key = PodSetRequest { count: 0, role: None, bound: Vec::new(), ..request.clone() };
        if self.version != cluster.facts_version() || self.known.len() >= KEPT_MAX {
            self.version = cluster.facts_version();
            self.known.clear();
        }
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let most = most(cluster, request);
        self.known.insert(key, most);
        most
    }
}

fn most(cluster: &mut Cluster, request: &PodSetRequest) -> Option<u32> {
    let need = cluster.need(&request.ask);
    let Some(view) = cluster.index(&need, (request.topology.as_ref(), &Grain::FINE), false) else {
        return Some(0);
    };
    let tree = view.tree;
    let level = match &request.request.wish {
        TopologyWish::Required(label) => match tree.level(label) {
            Some(level) => level,
            None => return Some(0),
        },
        TopologyWish::None | TopologyWish::Unconstrained | TopologyWish::Preferred(_) => 0,
    };
    let Some(grain) = Grain::of(&request.request.slices, tree) else { return Some(0) };
    if tree.depth() > 0 && !view.asked_about().any(|(node, _, _)| tree.leaf_of(node).is_some()) {
        return None;
    }
    let mut most_on_node = 0;
    let mut by_domain = vec![0u64; tree.domain_count()];
    for (node, slot, _) in view.asked_about() {
        let fit = grain.round(tree.depth() + 1, slot.space.fit_count_if_empty(&need.requests).into());
        most_on_node = most_on_node.max(fit);
        if let Some(leaf) = tree.leaf_of(node) {
            by_domain[leaf.index()] += fit;
        }
    }
    let mut finest_first: Vec<DomainIx> = (0..tree.domain_count()).map(|ix| DomainIx(ix as u32)).collect();
    finest_first.sort_by_key(|ix| std::cmp::Reverse(tree.domain(*ix).level));
    let mut most = 0;
    for ix in finest_first {
        let domain = tree.domain(ix);
        let pods = grain.round(domain.level, by_domain[ix.index()]);
        if domain.level == level {
            most = most.max(pods);
        }
        if ix != DomainIx::ROOT {
            by_domain[domain.parent.index()] += pods;
        }
    }
    let nodes_are_domains = level > tree.depth();
    Some(u32::try_from(if nodes_are_domains { most_on_node } else { most }).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests;
