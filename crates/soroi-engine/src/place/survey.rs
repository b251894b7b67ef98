//! What does each node say? For people who ask why a pod set finds no room; costs as much as looking at every
//! node.

use std::collections::BTreeMap;

use super::part::{Part, Region, Wish, region_of};
use super::problem::value;
use super::{PlaceRequest, PodSetRequest, place};
use crate::account::{NodeShort, PlacesAccount};
use crate::cluster::{Cluster, NodeIx};
use crate::event::{Amount, Name};
use crate::reason::NodeProblem;
use crate::topology::{Group, View};

/// Domains that are told of: whoever looks for the best ones wants no list of thousands.
const DOMAINS_TOLD: usize = 5;

/// What the nodes say to this pod set when it comes alone.
pub(crate) fn survey(cluster: &mut Cluster, pod_set: &PodSetRequest) -> PlacesAccount {
    let alone = PlaceRequest { pod_sets: vec![pod_set.clone()], ..PlaceRequest::default() };
    let problem = place(cluster, &alone).err().and_then(|mut problems| problems.pop());
    let problem = problem.map(|(_, problem)| problem);
    let mut account = PlacesAccount {
        problem,
        takes: Vec::new(),
        nodes: BTreeMap::new(),
        short: Vec::new(),
        domains: Vec::new(),
    };
    let part = Part::new(cluster, pod_set);
    let Some(seen) = part.view(cluster).map(|view| look(&view, &part)) else {
        return account;
    };
    account.takes = seen.takes;
    account.domains = seen.domains;
    for (node, problems) in seen.out {
        problems.into_iter().for_each(|problem| add(&mut account, problem, &node));
    }
    for (node, lacks) in seen.short {
        let mut named = BTreeMap::new();
        for (resource, missing, free) in lacks {
            add(&mut account, cluster.short_of(resource), &node);
            named.insert(cluster.resource_names().name(resource).clone(), (missing, free));
        }
        account.short.push(NodeShort { node, short: named });
    }
    account.nodes.values_mut().for_each(|nodes| nodes.sort());
    let sum = |node: &NodeShort| {
        node.short.values().fold(0i128, |sum, (missing, _)| sum.saturating_add(i128::from(*missing)))
    };
    account.short.sort_by(|a, b| (a.short.len(), sum(a), &a.node).cmp(&(b.short.len(), sum(b), &b.node)));
    account
}

fn add(account: &mut PlacesAccount, problem: NodeProblem, node: &Name) {
    account.nodes.entry(problem).or_default().push(node.clone());
}

/// A resource that a node lacks, how much is missing for one pod more, and how much is free.
type Lack = (crate::resources::ResourceIx, Amount, Amount);

struct Seen {
    takes: Vec<(Name, u32)>,
    out: Vec<(Name, Vec<NodeProblem>)>,
    short: Vec<(Name, Vec<Lack>)>,
    domains: Vec<(Name, u32)>,
}

fn look(view: &View<'_>, part: &Part) -> Seen {
    let mut seen = Seen { takes: Vec::new(), out: Vec::new(), short: Vec::new(), domains: Vec::new() };
    let level = match part.wish {
        Wish::Required(level) => Some(level),
        _ => None,
    };
    let closest = level.and_then(|level| view.index.largest(Group::level(level)).map(|(_, ix)| (level, ix)));
    let closest = closest.map(|(level, ix)| region_of(view, level, ix));
    for (ix, slot) in view.nodes.iter().enumerate() {
        let node = NodeIx::of(ix);
        let name = || slot.name.clone();
        if let Some(problems) = view.index.out(node) {
            seen.out.push((name(), problems.to_vec()));
            continue;
        }
        if !view.index.suits(node) {
            continue;
        }
        if closest.as_ref().is_some_and(|region| !is_in(view, node, region)) {
            seen.out.push((name(), vec![NodeProblem::OtherDomain]));
            continue;
        }
        let takes = view.index.pods_on(node);
        if takes > 0 {
            seen.takes.push((name(), takes));
        }
        seen.short.push((name(), lacks(view, part, node, takes)));
    }
    seen.takes.sort_by_key(|(name, takes)| (std::cmp::Reverse(*takes), name.clone()));
    seen.domains = level.map_or(Vec::new(), |level| domains(view, level));
    seen
}

/// What is missing on a node for a pod beside those that it takes.
fn lacks(view: &View<'_>, part: &Part, node: NodeIx, takes: u32) -> Vec<Lack> {
    let space = &view.nodes[node.index()].space;
    let more = takes.saturating_add(part.grain.at(view.tree.depth() + 1));
    let lack = |(resource, amount): (crate::resources::ResourceIx, Amount)| {
        let free = space.free(resource);
        let missing = i128::from(amount) * i128::from(more) - i128::from(free);
        (missing > 0).then(|| (resource, crate::quota::saturate(missing), free))
    };
    part.need.requests.iter().filter_map(lack).collect()
}

fn is_in(view: &View<'_>, node: NodeIx, region: &Region) -> bool {
    match region {
        Region::Domain(domain) => {
            let level = view.tree.domain(*domain).level;
            view.tree.domain_of(node, level) == Some(*domain)
        }
        Region::Node(this) => *this == node,
        Region::Spread | Region::Anywhere | Region::Pinned(_) => true,
    }
}

/// All values down to the domain: those of one level alone may be there more than once.
fn path(view: &View<'_>, region: &Region) -> Option<Name> {
    match region {
        Region::Domain(domain) => Some(view.tree.path(*domain).join("/").into()),
        region => value(view, region),
    }
}

/// The domains of a level that take most, by their path.
fn domains(view: &View<'_>, level: usize) -> Vec<(Name, u32)> {
    let all: Vec<_> = view.index.at_least(Group::level(level), 1).collect();
    let best = all.into_iter().rev().take(DOMAINS_TOLD);
    let told = best.filter_map(|(pods, ix)| {
        let path = path(view, &region_of(view, level, ix))?;
        Some((path, u32::try_from(pods).unwrap_or(u32::MAX)))
    });
    told.collect()
}
