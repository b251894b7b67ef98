//! Could it ever fit? How many pods the nodes would take if nothing else were on them: what tells
//! a gang that waits from one that waits for ever.

use std::collections::BTreeMap;

use crate::cluster::Cluster;
use crate::event::{Name, TopologyRequest};
use crate::fit::node_problem;
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
        let key = PodSetRequest { count: 0, bound: Vec::new(), ..request.clone() };
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
    let levels = request.topology.as_ref().map(|name| cluster.levels(name).unwrap_or_default());
    // How many of a path's values members must have in common.
    let shared = match (&request.request, levels) {
        (TopologyRequest::Required(level), levels) => {
            match levels.unwrap_or_default().iter().position(|at| at == level) {
                Some(at) => at + 1,
                None => return 0,
            }
        }
        _ => 0,
    };
    let mut by_domain: BTreeMap<Vec<&Name>, u32> = BTreeMap::new();
    for (node, space) in cluster.known_nodes() {
        if node_problem(&request.ask, node).is_some() {
            continue;
        }
        let path = levels.unwrap_or_default().iter().map(|level| node.labels.get(level));
        let Some(mut path) = path.collect::<Option<Vec<&Name>>>() else { continue };
        path.truncate(shared);
        let sum = by_domain.entry(path).or_default();
        *sum = sum.saturating_add(space.fit_count_if_empty(&need.requests));
    }
    by_domain.into_values().max().unwrap_or(0)
}
