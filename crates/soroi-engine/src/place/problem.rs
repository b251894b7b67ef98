//! Why the places do not suffice, with the numbers.

use super::part::{Part, Region, Wish, region_of};
use crate::cluster::Cluster;
use crate::event::Name;
use crate::reason::{NodeProblem, PlaceProblem};
use crate::topology::{DomainIx, Group, View};

/// Why this part does not fit as things are now (what other parts took included).
pub(super) fn explain(cluster: &mut Cluster, part: &Part, unproven: bool) -> PlaceProblem {
    let mut problem = PlaceProblem {
        topology: part.topology.clone(),
        asked: part.count,
        nodes: cluster.node_count(),
        unproven,
        ..PlaceProblem::default()
    };
    let Some(view) = part.view(cluster) else {
        problem.excluded.insert(NodeProblem::Topology, problem.nodes);
        return problem;
    };
    (problem.nodes, problem.excluded) = view.index.excluded();
    problem.fitting = u32::try_from(part.fitting(&view)).unwrap_or(u32::MAX).min(part.count);
    let outside = match &part.wish {
        Wish::Nowhere => view.index.nodes_in(DomainIx::ROOT),
        Wish::Required(level) => {
            let closest = closest(&view, part, *level);
            problem.closest = closest.as_ref().and_then(|region| value(&view, region));
            let inside = match closest {
                Some(Region::Domain(domain)) => view.index.nodes_in(domain),
                Some(Region::Node(node)) => u32::from(view.index.pods_on(node) > 0),
                _ => 0,
            };
            view.index.nodes_in(DomainIx::ROOT) - inside
        }
        Wish::Anywhere | Wish::Preferred(_) | Wish::Pinned(_) => 0,
    };
    if outside > 0 {
        *problem.excluded.entry(NodeProblem::Topology).or_insert(0) += outside;
    }
    problem
}

/// The domain of the required level that takes most; the bound members' own, if any.
fn closest(view: &View<'_>, part: &Part, level: usize) -> Option<Region> {
    if part.has_bound() {
        return part.home(view, level);
    }
    view.index.largest(Group::level(level)).map(|(_, ix)| region_of(view, level, ix))
}

fn value(view: &View<'_>, region: &Region) -> Option<Name> {
    match region {
        Region::Domain(domain) => Some(view.tree.domain(*domain).value.clone()),
        Region::Node(node) => {
            let labels = &view.nodes[node.index()].facts.as_ref()?.labels;
            labels.get(view.tree.levels().last()?).cloned()
        }
        _ => None,
    }
}
