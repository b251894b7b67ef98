//! Why the places do not suffice, with the numbers.

use std::collections::BTreeMap;

use super::bundle::Bundle;
use super::part::{Part, Region, Wish, region_of, room};
use crate::cluster::{Cluster, NodeIx};
use crate::event::{Expression, Labels, Name, Operator};
use crate::fit::holds;
use crate::reason::{Coarser, NodeProblem, PlaceProblem};
use crate::resources::ResourceIx;
use crate::topology::{DomainIx, Group, View};

/// Problems by part.
pub(super) type Problems = Vec<(usize, PlaceProblem)>;

/// Why this part does not fit as things are now (what other parts took included).
pub(super) fn explain(cluster: &mut Cluster, part: &Part) -> PlaceProblem {
    let closest = match (&part.wish, part.view(cluster)) {
        (Wish::Required(level), Some(view)) => closest(&view, part, *level),
        (Wish::Within(region), Some(_)) => Some(region.clone()),
        _ => None,
    };
    explain_near(cluster, part, closest)
}

/// Why the parts of this bundle do not fit as things are now: those that lack room, or all of them
/// if each would find it alone.
pub(super) fn explain_bundle(cluster: &mut Cluster, parts: &[Part], bundle: &Bundle) -> Problems {
    let level = match (&parts[bundle.parts[0]].wish, bundle.parts.len()) {
        (Wish::Required(level), 2..) => Some(*level),
        _ => None,
    };
    let shared = level.map(|level| closest_to_all(cluster, parts, bundle, level));
    let mut problems: Problems = Vec::new();
    for &at in &bundle.parts {
        let problem = match &shared {
            Some(region) => explain_near(cluster, &parts[at], region.clone()),
            None => explain(cluster, &parts[at]),
        };
        problems.push((at, problem));
    }
    if problems.iter().any(|(_, problem)| problem.fitting < problem.asked) {
        problems.retain(|(_, problem)| problem.fitting < problem.asked);
    }
    problems
}

/// `closest` is the domain that was nearest to do, where one domain is required.
fn explain_near(cluster: &mut Cluster, part: &Part, closest: Option<Region>) -> PlaceProblem {
    let mut problem = PlaceProblem {
        topology: part.topology.clone(),
        asked: part.count,
        slice: part.grain.whole(),
        nodes: cluster.node_count(),
        ..PlaceProblem::default()
    };
    let Some(view) = part.view(cluster) else {
        problem.excluded.insert(NodeProblem::Topology, problem.nodes);
        problem.out = problem.nodes;
        return problem;
    };
    (problem.nodes, problem.out, problem.excluded) = view.index.excluded();
    let everywhere = view.index.nodes_in(DomainIx::ROOT);
    let anywhere = Region::Anywhere;
    let (fitting, outside, within) = match (&part.wish, &closest) {
        (Wish::Required(_) | Wish::Within(_), Some(region)) => {
            problem.closest = value(&view, region).filter(|_| is_one_of_several(&view, region));
            (room(view.index, region), everywhere - nodes_of(&view, region), Some(region))
        }
        (Wish::Required(_) | Wish::Within(_) | Wish::Nowhere, _) => (0, everywhere, None),
        (Wish::Anywhere | Wish::Preferred(_), _) => (part.fitting(&view), 0, Some(&anywhere)),
        (Wish::Pinned(_), _) => (part.fitting(&view), 0, None),
    };
    problem.fitting = u32::try_from(fitting).unwrap_or(u32::MAX).min(part.count);
    if outside > 0 {
        *problem.excluded.entry(NodeProblem::Topology).or_insert(0) += outside;
        problem.out = problem.out.saturating_add(outside);
    }
    let within = within.filter(|_| part.grain.whole() <= 1 && fitting < u64::from(part.count));
    let full = within.map(|region| suited(&view, region)).unwrap_or_default();
    let short: Vec<ResourceIx> = full.iter().flat_map(|node| view.short_when_full(*node)).collect();
    problem.full.nodes = u32::try_from(full.len()).unwrap_or(u32::MAX);
    if problem.fitting < part.count {
        problem.hints.coarser = coarser(&view, part, problem.fitting);
        problem.hints.unlabelled = unlabelled(&view, part, &problem);
    }
    for resource in short {
        *problem.full.lacks.entry(cluster.short_of(resource)).or_insert(0) += 1;
    }
    problem
}

/// What the best domain of each level above the required one takes, if that is more. Of slices it would be
/// another count.
fn coarser(view: &View<'_>, part: &Part, fitting: u32) -> Vec<Coarser> {
    let level = match part.wish {
        Wish::Required(level) if part.grain.is_fine() && !part.has_bound() => level,
        _ => return Vec::new(),
    };
    let best = (1..level).filter_map(|level| {
        let (pods, ix) = view.index.largest(Group::level(level))?;
        let region = region_of(view, level, ix);
        let helps = pods > u64::from(fitting) && is_one_of_several(view, &region);
        helps.then(|| Coarser {
            level: view.tree.levels()[level - 1].clone(),
            domain: value(view, &region).unwrap_or_default(),
            fitting: u32::try_from(pods).unwrap_or(u32::MAX),
        })
    });
    best.collect()
}

/// Labels that the pods ask for and that no node has.
fn unlabelled(view: &View<'_>, part: &Part, problem: &PlaceProblem) -> Vec<Name> {
    let mut missing = Vec::new();
    let nobody =
        |holds: &dyn Fn(&Labels) -> bool| !view.asked_about().any(|(_, _, facts)| holds(&facts.labels));
    let shape = &part.need.ask.shape;
    // Who is kept away from all nodes may be so by a label that was never given.
    if problem.out == problem.nodes && problem.nodes > 0 {
        let levels = problem.excluded.keys().filter_map(|why| match why {
            NodeProblem::NoLevel { label } => Some(label),
            _ => None,
        });
        missing.extend(levels.filter(|label| nobody(&|labels| labels.contains_key(*label))).cloned());
        for (key, value) in &shape.node_selector {
            if nobody(&|labels| labels.get(key) == Some(value)) {
                missing.push(format!("{key}={value}").into());
            }
        }
        if let Some([term]) = shape.node_affinity.as_deref() {
            let wanted =
                term.labels.iter().filter(|one| matches!(one.op, Operator::In(_) | Operator::Exists));
            let absent = wanted.filter(|one| nobody(&|labels| holds(&one.op, labels.get(&one.key))));
            missing.extend(absent.map(wanted_label));
        }
    }
    if let Some(demands) = shape.neighbours.as_deref() {
        let near = demands.affinity.iter().map(|term| &term.topology_key);
        let keys = near.chain(demands.spread.iter().map(|spread| &spread.topology_key));
        missing.extend(keys.filter(|key| nobody(&|labels| labels.contains_key(*key))).cloned());
    }
    missing.sort();
    missing.dedup();
    missing
}

fn wanted_label(one: &Expression) -> Name {
    match &one.op {
        Operator::In(values) => format!("{}={}", one.key, values.join("|")).into(),
        _ => one.key.clone(),
    }
}

/// Whether there is another domain of the same level, so that it helps to say which one is meant.
fn is_one_of_several(view: &View<'_>, region: &Region) -> bool {
    match region {
        Region::Domain(domain) => view.tree.has_another(*domain),
        Region::Node(_) => view.nodes.len() > 1,
        Region::Spread | Region::Anywhere | Region::Pinned(_) => false,
    }
}

/// The nodes of a region that take at least one pod. Where not all pods fit, these are fewer than
/// the pods.
fn suited(view: &View<'_>, region: &Region) -> Vec<NodeIx> {
    match region {
        Region::Domain(domain) => {
            let (mut domains, mut nodes) = (vec![*domain], Vec::new());
            while let Some(domain) = domains.pop() {
                let below = view.index.at_least(Group::children(domain), 1).map(|(_, ix)| ix);
                if view.tree.domain(domain).level == view.tree.depth() {
                    nodes.extend(below.map(NodeIx));
                } else {
                    domains.extend(below.map(DomainIx));
                }
            }
            nodes
        }
        Region::Node(node) => vec![*node],
        Region::Spread | Region::Anywhere => suited(view, &Region::Domain(DomainIx::ROOT)),
        Region::Pinned(_) => Vec::new(),
    }
}

/// The domain of the required level that takes most; the bound members' own, if any.
fn closest(view: &View<'_>, part: &Part, level: usize) -> Option<Region> {
    if part.has_bound() {
        return part.home(view, level);
    }
    view.index.largest(Group::level(level)).map(|(_, ix)| region_of(view, level, ix))
}

/// The domain that takes most of all the parts' pods; the first by name among equals.
fn closest_to_all(cluster: &mut Cluster, parts: &[Part], bundle: &Bundle, level: usize) -> Option<Region> {
    let mut taken: BTreeMap<u32, u64> = BTreeMap::new();
    for part in bundle.parts.iter().map(|at| &parts[*at]) {
        let view = part.view(cluster)?;
        if part.has_bound() {
            return part.home(&view, level);
        }
        for (pods, ix) in view.index.at_least(Group::level(level), 1) {
            *taken.entry(ix).or_insert(0) += pods.min(u64::from(part.count));
        }
    }
    let view = parts[bundle.parts[0]].view(cluster)?;
    let rank = |ix: u32| match region_of(&view, level, ix) {
        Region::Domain(domain) => view.tree.domain(domain).rank,
        _ => view.nodes[ix as usize].rank,
    };
    let most = taken.into_iter().max_by_key(|(ix, pods)| (*pods, std::cmp::Reverse(rank(*ix))))?;
    Some(region_of(&view, level, most.0))
}

fn nodes_of(view: &View<'_>, region: &Region) -> u32 {
    match region {
        Region::Domain(domain) => view.index.nodes_in(*domain),
        Region::Node(node) => u32::from(view.index.pods_on(*node) > 0),
        Region::Spread | Region::Anywhere | Region::Pinned(_) => view.index.nodes_in(DomainIx::ROOT),
    }
}

pub(super) fn value(view: &View<'_>, region: &Region) -> Option<Name> {
    match region {
        Region::Domain(domain) => Some(view.tree.domain(*domain).value.clone()),
        Region::Node(node) => {
            let labels = &view.nodes[node.index()].facts.as_ref()?.labels;
            labels.get(view.tree.levels().last()?).cloned()
        }
        Region::Spread | Region::Anywhere | Region::Pinned(_) => None,
    }
}
