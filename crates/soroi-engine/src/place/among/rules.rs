//! What pods demand of each other, as counters by domain that rise and fall as pods are put and
//! lifted: for one question, over the numbers of the cluster's nodes.
//!
//! The rules are those of kube-scheduler 1.36, asked in its order (NodePorts, NodeResourcesFit,
//! PodTopologySpread, InterPodAffinity). A gang fits if its pods can be put one after the other so
//! that each may sit where it is put at that moment.

mod taste;

use std::collections::{BTreeMap, BTreeSet};

use super::super::part::Part;
use super::volumes::VolumeRules;
use crate::cluster::{Cluster, Count, NodeIx};
use crate::event::{Name, Neighbours, PodSelector, Spread};
use crate::fit::{selects_node, tolerates_node};
use crate::reason::NodeProblem;
use crate::resources::{ResourceIx, Space};

/// No domain: the label is missing, or the node does not count.
const NONE: u32 = u32::MAX;

/// See the module.
pub(super) struct Rules {
    pub(super) parts: Vec<OfPart>,
    counters: Vec<Counter>,
    space: Vec<Space>,
    volumes: VolumeRules,
    /// Per part and node: pods that were put there.
    placed: Vec<Vec<u32>>,
}

/// The rules for the pods of one part.
#[derive(Default)]
pub(super) struct OfPart {
    pub(super) count: u32,
    /// Nodes that take at least one of its pods as far as the node alone is concerned, by rank.
    pub(super) candidates: Vec<NodeIx>,
    need: Option<std::sync::Arc<crate::cluster::Need>>,
    /// Per node: what those that are there already have against it.
    busy: Vec<bool>,
    minded: Vec<bool>,
    /// Parts with a port that it cannot share.
    clashes: Vec<usize>,
    spread: Vec<SpreadRule>,
    pub(super) near: Vec<usize>,
    /// It means itself, so that its first pod needs nobody.
    pub(super) first: bool,
    /// Own anti-affinity, and whether it means itself.
    apart: Vec<(usize, bool)>,
    /// Anti-affinity of other parts that means it.
    avoided: Vec<usize>,
    /// Counters that each of its pods raises.
    raises: Vec<usize>,
    taste: taste::Taste,
}

struct SpreadRule {
    counter: usize,
    max_skew: u32,
    min_domains: u32,
    own: u32,
}

/// Pods of a kind by domain.
struct Counter {
    domain: Vec<u32>,
    counts: Vec<u32>,
    total: u64,
    /// How many domains have how many pods; empty where nobody asks for the least.
    levels: BTreeMap<u32, u32>,
    levelled: bool,
}

/// Domains by node label, each looked up once.
#[derive(Default)]
struct Domains(BTreeMap<Name, (Vec<u32>, usize)>);

impl Rules {
    pub(super) fn new(cluster: &mut Cluster, parts: &[Part]) -> Self {
        let mut rules = Self {
            parts: parts.iter().map(|part| of_part(cluster, part)).collect(),
            counters: Vec::new(),
            space: cluster.slots().iter().map(|slot| slot.space.clone()).collect(),
            volumes: VolumeRules::new(cluster, parts),
            placed: vec![vec![0; cluster.slots().len()]; parts.len()],
        };
        let mut domains = Domains::default();
        for (at, part) in parts.iter().enumerate() {
            rules.add_minded(cluster, &mut domains, at, part);
            if let Some(demands) = part.need.ask.shape.neighbours.clone() {
                rules.add_demands(cluster, &mut domains, parts, at, &demands);
            }
        }
        rules
    }

    /// Where those that are there do not want the part.
    fn add_minded(&mut self, cluster: &Cluster, domains: &mut Domains, at: usize, part: &Part) {
        let Some(who) = part.who.as_deref() else { return };
        let mut kept_from: BTreeMap<&Name, BTreeSet<NodeIx>> = BTreeMap::new();
        for (term, nodes) in cluster.minded() {
            if cluster.is_of(std::slice::from_ref(&term.pods), who) {
                kept_from.entry(&term.topology_key).or_default().extend(nodes.keys());
            }
        }
        for (key, nodes) in kept_from {
            let (domain, _) = domains.of(cluster, key);
            let taken: BTreeSet<u32> =
                nodes.iter().map(|node| domain[node.index()]).filter(|domain| *domain != NONE).collect();
            for (minded, domain) in self.parts[at].minded.iter_mut().zip(domain) {
                *minded |= taken.contains(domain);
            }
        }
    }

    fn add_demands(
        &mut self,
        cluster: &mut Cluster,
        domains: &mut Domains,
        parts: &[Part],
        at: usize,
        demands: &Neighbours,
    ) {
        let clashes = |other: &Part| {
            let ports = other.need.ask.shape.neighbours.iter().flat_map(|other| &other.ports);
            ports.into_iter().any(|port| demands.ports.iter().any(|own| own.conflicts(port)))
        };
        self.parts[at].clashes = (0..parts.len()).filter(|other| clashes(&parts[*other])).collect();
        let kind: Vec<PodSelector> = demands.affinity.iter().map(|term| term.pods.clone()).collect();
        for term in &demands.affinity {
            let counter = self.add_counter(cluster, domains, &term.topology_key, |_| true, false);
            self.fill(cluster, counter, &kind, |count| count.all);
            self.raised_by(cluster, counter, &kind, parts);
            self.parts[at].near.push(counter);
        }
        self.parts[at].first = is_of(cluster, &kind, &parts[at]);
        for term in &demands.anti_affinity {
            let kind = std::slice::from_ref(&term.pods);
            let counter = self.add_counter(cluster, domains, &term.topology_key, |_| true, false);
            self.fill(cluster, counter, kind, |count| count.all);
            self.raised_by(cluster, counter, kind, parts);
            self.parts[at].apart.push((counter, is_of(cluster, kind, &parts[at])));
            let shunned: Vec<usize> =
                (0..parts.len()).filter(|other| is_of(cluster, kind, &parts[*other])).collect();
            if !shunned.is_empty() {
                let counter = self.add_counter(cluster, domains, &term.topology_key, |_| true, false);
                self.parts[at].raises.push(counter);
                shunned.into_iter().for_each(|other| self.parts[other].avoided.push(counter));
            }
        }
        for spread in &demands.spread {
            self.add_spread(cluster, domains, parts, at, (spread, demands));
        }
    }

    fn add_spread(
        &mut self,
        cluster: &mut Cluster,
        domains: &mut Domains,
        parts: &[Part],
        at: usize,
        (spread, demands): (&Spread, &Neighbours),
    ) {
        let ask = parts[at].need.ask.clone();
        let counts = |node: &crate::event::Node| {
            let has_all = demands.spread.iter().all(|one| node.labels.contains_key(&one.topology_key));
            has_all
                && (!spread.honours_affinity || selects_node(&ask, node))
                && (!spread.honours_taints || tolerates_node(&ask, node))
        };
        let counter = self.add_counter(cluster, domains, &spread.topology_key, counts, true);
        let kind = std::slice::from_ref(&spread.pods);
        if spread.counts_anybody() {
            self.fill(cluster, counter, kind, |count| count.staying);
            self.raised_by(cluster, counter, kind, parts);
        }
        let own = u32::from(is_of(cluster, kind, &parts[at]));
        let (max_skew, min_domains) = (spread.max_skew, spread.min_domains);
        self.parts[at].spread.push(SpreadRule { counter, max_skew, min_domains, own });
    }

    fn add_counter(
        &mut self,
        cluster: &Cluster,
        domains: &mut Domains,
        key: &Name,
        counts: impl Fn(&crate::event::Node) -> bool,
        levelled: bool,
    ) -> usize {
        let (domain, len) = domains.of(cluster, key);
        let mut domain = domain.clone();
        for (domain, slot) in domain.iter_mut().zip(cluster.slots()) {
            if *domain != NONE && !slot.facts.as_ref().is_some_and(&counts) {
                *domain = NONE;
            }
        }
        let mut levels = BTreeMap::new();
        if levelled {
            let there: BTreeSet<u32> = domain.iter().copied().filter(|domain| *domain != NONE).collect();
            if !there.is_empty() {
                levels.insert(0, u32::try_from(there.len()).unwrap_or(u32::MAX));
            }
        }
        self.counters.push(Counter { domain, counts: vec![0; *len], total: 0, levels, levelled });
        self.counters.len() - 1
    }

    fn fill(&mut self, cluster: &mut Cluster, at: usize, kind: &[PodSelector], of: fn(&Count) -> u32) {
        for (node, count) in cluster.of_kind(kind) {
            self.counters[at].shift(*node, of(count), true);
        }
    }

    fn raised_by(&mut self, cluster: &Cluster, counter: usize, kind: &[PodSelector], parts: &[Part]) {
        for (at, part) in parts.iter().enumerate() {
            if is_of(cluster, kind, part) {
                self.parts[at].raises.push(counter);
            }
        }
    }

    /// Whether one more pod of the part may be put on one of its candidates now.
    pub(super) fn may_sit(&self, part: usize, node: NodeIx) -> bool {
        self.room(part, node) > 0 && self.problem(part, node).is_none()
    }

    /// The resources of which the node has too little for one more pod of the part.
    pub(super) fn short(&self, part: usize, node: NodeIx) -> impl Iterator<Item = ResourceIx> + '_ {
        let need = self.parts[part].need.iter();
        need.flat_map(move |need| self.space[node.index()].short(&need.requests))
    }

    /// What keeps one more pod of the part away from one of its candidates now, room aside.
    pub(super) fn problem(&self, part: usize, node: NodeIx) -> Option<NodeProblem> {
        let rules = &self.parts[part];
        let at = node.index();
        if rules.busy[at] || rules.clashes.iter().any(|other| self.placed[*other][at] > 0) {
            return Some(NodeProblem::Ports);
        }
        if let Some(problem) = self.volumes.problem(part, node) {
            return Some(problem);
        }
        if let Some(problem) = rules.spread.iter().find_map(|rule| self.skew(rule, node)) {
            return Some(problem);
        }
        if !self.is_near(rules, node) {
            return Some(NodeProblem::PodAffinity);
        }
        if rules.apart.iter().any(|(counter, _)| self.counters[*counter].at(node).is_some_and(|n| n > 0)) {
            return Some(NodeProblem::PodAntiAffinity);
        }
        let avoided = |counter: &usize| self.counters[*counter].at(node).is_some_and(|n| n > 0);
        (rules.minded[at] || rules.avoided.iter().any(avoided)).then_some(NodeProblem::ExistingAntiAffinity)
    }

    fn skew(&self, rule: &SpreadRule, node: NodeIx) -> Option<NodeProblem> {
        let counter = &self.counters[rule.counter];
        let Some(here) = counter.at(node) else { return Some(NodeProblem::SpreadLabel) };
        let domains: u64 = counter.levels.values().map(|count| u64::from(*count)).sum();
        let least = match domains < u64::from(rule.min_domains) {
            true => 0,
            false => counter.levels.keys().next().copied().unwrap_or(0),
        };
        let skew = i64::from(here) + i64::from(rule.own) - i64::from(least);
        (skew > i64::from(rule.max_skew)).then_some(NodeProblem::Spread)
    }

    fn is_near(&self, rules: &OfPart, node: NodeIx) -> bool {
        let counters = || rules.near.iter().map(|counter| &self.counters[*counter]);
        if counters().any(|counter| counter.at(node).is_none()) {
            return false;
        }
        counters().all(|counter| counter.at(node).is_some_and(|count| count > 0))
            || rules.first && counters().all(|counter| counter.total == 0)
    }

    /// How many more pods of the part the node has room for, whoever minds.
    pub(super) fn room(&self, part: usize, node: NodeIx) -> u32 {
        let need = self.parts[part].need.as_ref();
        need.map_or(0, |need| self.space[node.index()].fit_count(&need.requests))
    }

    /// What is left on a node now.
    pub(super) fn space_of(&self, node: NodeIx) -> &Space {
        &self.space[node.index()]
    }

    pub(super) fn put(&mut self, part: usize, node: NodeIx) {
        self.change(part, node, true);
    }

    pub(super) fn lift(&mut self, part: usize, node: NodeIx) {
        self.change(part, node, false);
    }

    fn change(&mut self, part: usize, node: NodeIx, more: bool) {
        let count = &mut self.placed[part][node.index()];
        *count = if more { *count + 1 } else { *count - 1 };
        if let Some(need) = &self.parts[part].need {
            let space = &mut self.space[node.index()];
            if more { space.charge(&need.requests, 1) } else { space.uncharge(&need.requests, 1) }
        }
        self.volumes.change(part, node, more);
        for counter in &self.parts[part].raises {
            self.counters[*counter].shift(node, 1, more);
        }
    }

    pub(super) fn placed(&self, part: usize, node: NodeIx) -> u32 {
        self.placed[part][node.index()]
    }

    /// The domain of a counter around a node.
    pub(super) fn domain(&self, counter: usize, node: NodeIx) -> Option<u32> {
        Some(self.counters[counter].domain[node.index()]).filter(|domain| *domain != NONE)
    }

    /// Whether nobody is in any domain of the counter.
    pub(super) fn is_unset(&self, counter: usize) -> bool {
        self.counters[counter].total == 0
    }

    pub(super) fn spreads(&self, part: usize) -> impl Iterator<Item = usize> + '_ {
        self.parts[part].spread.iter().map(|rule| rule.counter)
    }

    pub(super) fn raises(&self, part: usize, counter: usize) -> bool {
        self.parts[part].raises.contains(&counter)
    }

    /// Its pods cannot share a node with each other.
    pub(super) fn is_exclusive(&self, part: usize) -> bool {
        let rules = &self.parts[part];
        rules.clashes.contains(&part) || rules.apart.iter().any(|(_, itself)| *itself)
    }

    /// The most pods of a part that could sit if no other part were there: as many as there are
    /// domains that each takes one of.
    pub(super) fn most(&self, part: usize) -> u64 {
        let rules = &self.parts[part];
        let free = |node: &NodeIx| {
            let at = node.index();
            let kept_away =
                |(counter, _): &(usize, bool)| self.counters[*counter].at(*node).is_some_and(|n| n > 0);
            !rules.busy[at] && !rules.minded[at] && !rules.apart.iter().any(kept_away)
        };
        let nodes: Vec<NodeIx> = rules.candidates.iter().copied().filter(free).collect();
        if self.volumes.is_taken(part) {
            return 0;
        }
        let alone = rules.clashes.contains(&part);
        let room = nodes.iter().map(|node| u64::from(if alone { 1 } else { self.room(part, *node) })).sum();
        let domains = rules.apart.iter().filter(|(_, itself)| *itself).map(|(counter, _)| {
            let mut seen = BTreeSet::new();
            let mut without = 0;
            for node in &nodes {
                match self.domain(*counter, *node) {
                    Some(domain) => _ = seen.insert(domain),
                    None => without += u64::from(self.room(part, *node)),
                }
            }
            seen.len() as u64 + without
        });
        domains.min().unwrap_or(u64::MAX).min(room).min(self.volumes.most(part))
    }
}

impl Counter {
    /// How many pods are in the domain around the node; `None`: it is in none.
    fn at(&self, node: NodeIx) -> Option<u32> {
        let domain = self.domain[node.index()];
        (domain != NONE).then(|| self.counts[domain as usize])
    }

    fn shift(&mut self, node: NodeIx, by: u32, more: bool) {
        let domain = self.domain[node.index()];
        if domain == NONE || by == 0 {
            return;
        }
        let count = &mut self.counts[domain as usize];
        let before = *count;
        *count = if more { *count + by } else { *count - by };
        let after = *count;
        self.total = if more { self.total + u64::from(by) } else { self.total - u64::from(by) };
        if self.levelled {
            if let Some(domains) = self.levels.get_mut(&before) {
                *domains -= 1;
                if *domains == 0 {
                    self.levels.remove(&before);
                }
            }
            *self.levels.entry(after).or_default() += 1;
        }
    }
}

impl Domains {
    /// The domain of each node, and how many numbers of domains there are.
    fn of(&mut self, cluster: &Cluster, key: &Name) -> &(Vec<u32>, usize) {
        self.0.entry(key.clone()).or_insert_with(|| {
            let mut numbers: BTreeMap<&Name, u32> = BTreeMap::new();
            let number = |slot: &'_ crate::cluster::NodeSlot| slot.facts.as_ref()?.labels.get(key).cloned();
            let values: Vec<Option<Name>> = cluster.slots().iter().map(number).collect();
            let domains = values.iter().map(|value| match value {
                Some(value) => {
                    let next = u32::try_from(numbers.len()).expect("fewer domains than nodes");
                    *numbers.entry(value).or_insert(next)
                }
                None => NONE,
            });
            let domains: Vec<u32> = domains.collect();
            let len = numbers.len();
            (domains, len)
        })
    }
}

fn of_part(cluster: &mut Cluster, part: &Part) -> OfPart {
    let candidates: Vec<NodeIx> = match part.view(cluster) {
        Some(view) => {
            let nodes = (0..view.nodes.len()).map(NodeIx::of);
            let mut nodes: Vec<NodeIx> = nodes.filter(|node| view.index.pods_on(*node) > 0).collect();
            nodes.sort_unstable_by_key(|node| view.nodes[node.index()].rank);
            nodes
        }
        None => Vec::new(),
    };
    let mut busy = vec![false; cluster.slots().len()];
    for node in &candidates {
        busy[node.index()] = !cluster.ports_are_free(*node, &part.need.ask.shape);
    }
    OfPart {
        count: part.count,
        candidates,
        need: Some(part.need.clone()),
        busy,
        minded: vec![false; cluster.slots().len()],
        ..OfPart::default()
    }
}

fn is_of(cluster: &Cluster, kind: &[PodSelector], part: &Part) -> bool {
    part.who.as_ref().is_some_and(|who| cluster.is_of(kind, who))
}
