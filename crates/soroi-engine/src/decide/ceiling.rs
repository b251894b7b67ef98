//! Could it ever fit? How many pods the nodes would take if nothing else were on them: what tells
//! a gang that waits from one that waits for ever.

use std::collections::BTreeMap;

use crate::cluster::Cluster;
use crate::event::TopologyRequest;
use crate::place::PodSetRequest;

/// Answers are kept until a node's facts change; at most this many, because they are made anew in
/// about a millisecond per 5,000 nodes.
const KEPT_MAX: usize = 256;

/// The answers that were asked for since nodes last changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ceilings {
    version: u64,
    known: BTreeMap<PodSetRequest, u32>,
}

impl Ceilings {
    /// How many pods of the request the nodes would take at most.
    pub(crate) fn of(&mut self, cluster: &mut Cluster, request: &PodSetRequest) -> u32 {
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

fn most(cluster: &mut Cluster, request: &PodSetRequest) -> u32 {
    let need = cluster.need(&request.ask);
    // Whoever asks was just told that there are no places: the index that said so knows which nodes
    // suit.
    let Some(view) = cluster.index(&need, request.topology.as_ref(), false) else { return 0 };
    let level = match &request.request {
        TopologyRequest::Required(label) => match view.tree.level(label) {
            Some(level) => level,
            None => return 0,
        },
        TopologyRequest::None | TopologyRequest::Unconstrained | TopologyRequest::Preferred(_) => 0,
    };
    let mut most_on_node = 0;
    let mut by_domain = vec![0u32; view.tree.domain_count()];
    for (node, slot) in view.suitable() {
        let fit = slot.space.fit_count_if_empty(&need.requests);
        most_on_node = most_on_node.max(fit);
        if let Some(domain) = view.tree.domain_of(node, level) {
            let sum = &mut by_domain[domain.index()];
            *sum = sum.saturating_add(fit);
        }
    }
    let nodes_are_domains = level > view.tree.depth();
    if nodes_are_domains { most_on_node } else { by_domain.into_iter().max().unwrap_or(0) }
}

#[cfg(test)]
mod tests;
