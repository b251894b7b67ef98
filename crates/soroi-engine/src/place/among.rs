//! Gangs whose pods mind each other, or are minded by those that are there: host ports, pod affinity
//! and anti-affinity, topology spread. Each constraint is one of the whole gang.
//!
//! Pods are put one after the other (`rules`), in several orders and with several domains to start
//! from; if none of that succeeds and the gang is small, everything is tried (`exhaust`). What was
//! not proven says so.

mod exhaust;
mod packed;
pub(super) mod prefer;
mod rules;
mod volumes;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::Taken;
use super::bundle::Bundle;
use super::model::contains;
use super::part::{Part, Region, Wish};
use super::problem::{Problems, explain};
use crate::cluster::{Cluster, NodeIx};
use crate::reason::{Full, NodeProblem, PlaceProblem};
use rules::Rules;

/// Regions of each level that are tried for one bundle.
const REGIONS_TRIED: usize = 16;
/// Combinations of regions and of domains to start from that are tried in turn.
const STARTS_MAX: usize = 256;
/// Domains in which the first pod of those that want to be together is tried.
const ANCHORS_MAX: usize = 64;

/// Whether other pods matter to where these may be.
pub(super) fn concerns(cluster: &Cluster, parts: &[Part]) -> bool {
    let concerned = |part: &Part| {
        part.need.ask.shape.neighbours.is_some()
            || cluster.shares_volumes(&part.need)
            || part.who.as_deref().is_some_and(|who| cluster.is_minded(who))
    };
    parts.iter().any(concerned) && !parts.iter().any(|part| matches!(part.wish, Wish::Pinned(_)))
}

/// Places all parts, or says which found no room and why.
pub(super) fn place(
    cluster: &mut Cluster,
    parts: &[Part],
    bundles: &[Bundle],
    work: &mut u64,
) -> Result<Vec<Taken>, Problems> {
    let regions = bundles.iter().map(|bundle| bundle.regions(cluster, parts, REGIONS_TRIED)).collect();
    let mut tries = Tries::new(cluster, parts, bundles, regions);
    let scarce = (0..parts.len()).find(|at| tries.rules.most(*at) < u64::from(parts[*at].count));
    if scarce.is_none() && tries.run(work) {
        return Ok(tries.taken());
    }
    let proven = scarce.is_some() || tries.proven;
    let at = scarce.or(tries.stuck.as_ref().map(|stuck| stuck.part)).unwrap_or(0);
    tries.show_stuck(at);
    let mut problem = explain(cluster, &parts[at]);
    let seen = tries.why(cluster, at);
    add(&mut problem, seen);
    problem.fitting = problem.fitting.min(tries.placed(at)).min(parts[at].count.saturating_sub(1));
    problem.unproven = !proven;
    Err(vec![(at, problem)])
}

/// Whether pods can come one after the other to places that were chosen for their room alone. If
/// not, others might do, which nobody looked for.
pub(super) fn judge(
    cluster: &mut Cluster,
    parts: &[Part],
    found: Vec<Taken>,
) -> Result<Vec<Taken>, Problems> {
    let mut tries = Tries::new(cluster, parts, &[], Vec::new());
    let places = found.iter().enumerate();
    let mut left: Vec<(usize, NodeIx, u32)> = places
        .flat_map(|(part, nodes)| nodes.iter().map(move |(node, count)| (part, *node, *count)))
        .collect();
    loop {
        let before = tries.moves.len();
        for (part, node, count) in &mut left {
            while *count > 0 && tries.rules.may_sit(*part, *node) {
                tries.put(*part, *node);
                *count -= 1;
            }
        }
        left.retain(|(_, _, count)| *count > 0);
        let Some((part, _, _)) = left.first().copied() else { return Ok(found) };
        if tries.moves.len() == before {
            let mut problem = explain(cluster, &parts[part]);
            add(&mut problem, tries.why(cluster, part));
            problem.fitting = problem.fitting.min(tries.placed(part));
            problem.unproven = true;
            return Err(vec![(part, problem)]);
        }
    }
}

/// What was seen of the nodes that would take some, with respect to whom pods mind.
fn add(problem: &mut PlaceProblem, (out, seen): (u32, BTreeMap<NodeProblem, u32>)) {
    *problem.full = Full::default();
    problem.out = problem.out.saturating_add(out);
    for (what, count) in seen {
        *problem.excluded.entry(what).or_insert(0) += count;
    }
}

/// Who got no place, and what had been put until then.
struct Stuck {
    part: usize,
    moves: Vec<(usize, NodeIx)>,
}

/// One way to begin: a region per part, and a domain of one counter.
struct Start {
    within: Vec<Option<Vec<bool>>>,
    anchor: Option<(usize, u32)>,
}

/// What is tried, and how far that came.
struct Tries {
    rules: Rules,
    starts: Vec<Start>,
    /// All regions and all domains are among the starts.
    whole: bool,
    moves: Vec<(usize, NodeIx)>,
    /// The try that came furthest.
    stuck: Option<Stuck>,
    proven: bool,
    ranks: Vec<u64>,
}

impl Tries {
    fn new(cluster: &mut Cluster, parts: &[Part], bundles: &[Bundle], regions: Vec<Vec<Region>>) -> Self {
        let rules = Rules::new(cluster, parts);
        let mut starts: Vec<Start> = vec![Start { within: vec![None; parts.len()], anchor: None }];
        let mut whole = true;
        for (bundle, regions) in bundles.iter().zip(regions) {
            whole &= regions.len() < REGIONS_TRIED && starts.len() * regions.len() <= STARTS_MAX;
            let lead = &parts[bundle.parts[0]];
            let tree = cluster.topologies().tree(lead.topology.as_ref());
            let nodes = cluster.slots().len();
            let masks: Vec<Option<Vec<bool>>> = regions
                .iter()
                .map(|region| {
                    let tree = tree.filter(|_| !matches!(region, Region::Anywhere))?;
                    Some((0..nodes).map(|node| contains(tree, region, NodeIx::of(node))).collect())
                })
                .collect();
            let with = |start: &Start, mask: &Option<Vec<bool>>| {
                let mut within = start.within.clone();
                bundle.parts.iter().for_each(|at| within[*at].clone_from(mask));
                Start { within, anchor: None }
            };
            starts = starts
                .iter()
                .flat_map(|start| masks.iter().map(|mask| with(start, mask)))
                .take(STARTS_MAX)
                .collect();
        }
        let ranks = cluster.slots().iter().map(|slot| slot.rank).collect();
        Self { rules, starts, whole, moves: Vec::new(), stuck: None, proven: false, ranks }
    }

    /// Puts all pods somewhere, or nothing.
    fn run(&mut self, work: &mut u64) -> bool {
        let starts = std::mem::take(&mut self.starts);
        for start in &starts {
            if self.try_orders(start, work) {
                return true;
            }
            for anchor in self.anchors(start) {
                let anchored = Start { within: start.within.clone(), anchor: Some(anchor) };
                if *work == 0 {
                    return false;
                }
                if self.try_orders(&anchored, work) {
                    return true;
                }
            }
        }
        let mut proven = self.whole;
        for start in &starts {
            match exhaust::exhaust(self, start, work) {
                Some(true) => return true,
                Some(false) => {}
                None => proven = false,
            }
        }
        self.proven = proven;
        false
    }

    /// The scarcest part first; one that got stuck goes first the next time.
    fn try_orders(&mut self, start: &Start, work: &mut u64) -> bool {
        let mut order: Vec<usize> = (0..self.rules.parts.len()).collect();
        order.sort_by_key(|at| {
            let part = &self.rules.parts[*at];
            (self.rules.most(*at).saturating_mul(1024) / u64::from(part.count.max(1)), *at)
        });
        *work = work.saturating_sub((order.len() * self.ranks.len() / 8) as u64);
        for _ in 0..=order.len() {
            self.clear();
            match self.try_order(&order, start, work) {
                None => return true,
                Some(stuck) => {
                    let at = order.iter().position(|part| *part == stuck).expect("it is one of them");
                    if at == 0 {
                        break;
                    }
                    order[..=at].rotate_right(1);
                }
            }
        }
        self.clear();
        false
    }

    /// Returns the part that got stuck, if one did.
    fn try_order(&mut self, order: &[usize], start: &Start, work: &mut u64) -> Option<usize> {
        let mut left: Vec<u32> = self.rules.parts.iter().map(|part| part.count).collect();
        let nodes: Vec<Vec<NodeIx>> =
            (0..left.len()).map(|part| self.in_order_of_choice(part, start)).collect();
        loop {
            let before = self.moves.len();
            for &part in order {
                let at_once = self.rules.spreads(part).next().is_none();
                for &node in &nodes[part] {
                    while left[part] > 0 && *work > 0 {
                        *work -= 1;
                        if !self.rules.may_sit(part, node) {
                            break;
                        }
                        self.put(part, node);
                        left[part] -= 1;
                        if !at_once {
                            break;
                        }
                    }
                }
            }
            let stuck = order.iter().copied().find(|part| left[*part] > 0)?;
            if self.moves.len() == before || *work == 0 {
                if self.stuck.as_ref().is_none_or(|best| best.moves.len() <= self.moves.len()) {
                    self.stuck = Some(Stuck { part: stuck, moves: self.moves.clone() });
                }
                return Some(stuck);
            }
        }
    }

    /// Nodes of a part in the order in which they are used: few of them, then tight ones; where
    /// pods must be spread, one of each domain after the other.
    fn in_order_of_choice(&self, part: usize, start: &Start) -> Vec<NodeIx> {
        let rules = &self.rules;
        let count = rules.parts[part].count;
        let mut nodes: Vec<(NodeIx, u32)> =
            self.nodes_of(part, start).map(|node| (node, rules.room(part, node))).collect();
        if rules.is_exclusive(part) {
            nodes.sort_by_key(|(node, room)| (*room, self.ranks[node.index()]));
        } else {
            // The tightest that takes all, else the largest first.
            nodes.sort_by_key(|(node, room)| {
                let all = *room >= count;
                (!all, if all { *room } else { u32::MAX - *room }, self.ranks[node.index()])
            });
        }
        let mut nodes: Vec<NodeIx> = nodes.into_iter().map(|(node, _)| node).collect();
        if let Some(counter) = rules.spreads(part).next() {
            let mut seen: BTreeMap<Option<u32>, u32> = BTreeMap::new();
            let mut turns: Vec<(u32, NodeIx)> = Vec::with_capacity(nodes.len());
            for node in nodes {
                let turn = seen.entry(rules.domain(counter, node)).or_default();
                turns.push((*turn, node));
                *turn += 1;
            }
            turns.sort_by_key(|(turn, _)| *turn);
            nodes = turns.into_iter().map(|(_, node)| node).collect();
        }
        nodes
    }

    /// The nodes that a start leaves to a part.
    fn nodes_of<'a>(&'a self, part: usize, start: &'a Start) -> impl Iterator<Item = NodeIx> + 'a {
        let rules = &self.rules;
        let within = move |node: &NodeIx| start.within[part].as_ref().is_none_or(|mask| mask[node.index()]);
        let anchored = move |node: &NodeIx| match start.anchor {
            Some((counter, domain)) => {
                let tied = rules.parts[part].near.contains(&counter) || rules.raises(part, counter);
                !tied || rules.domain(counter, *node) == Some(domain)
            }
            None => true,
        };
        rules.parts[part].candidates.iter().copied().filter(within).filter(anchored)
    }

    /// Domains in which pods that want to be together could be, where nobody is yet that says which:
    /// those that take most of them, least to spare first.
    fn anchors(&self, start: &Start) -> Vec<(usize, u32)> {
        let rules = &self.rules;
        let mut anchors = Vec::new();
        for (at, part) in rules.parts.iter().enumerate() {
            for &counter in part.near.iter().filter(|counter| rules.is_unset(**counter)) {
                let domains = self.roomiest(at, counter, start, ANCHORS_MAX);
                anchors.extend(domains.map(|domain| (counter, domain)));
            }
        }
        anchors
    }

    /// The domains of a counter that take most pods of a part, least to spare first; of equal ones the one
    /// whose first node comes first by name (numbers of domains follow the order in which nodes came).
    fn roomiest(
        &self,
        part: usize,
        counter: usize,
        start: &Start,
        most: usize,
    ) -> impl Iterator<Item = u32> + use<> {
        let rules = &self.rules;
        let mut rooms: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for node in self.nodes_of(part, start) {
            if let Some(domain) = rules.domain(counter, node) {
                let (room, first) = rooms.entry(domain).or_insert((0, u64::MAX));
                *room += u64::from(rules.room(part, node));
                *first = (*first).min(self.ranks[node.index()]);
            }
        }
        let count = u64::from(rules.parts[part].count);
        let mut rooms: Vec<(u32, (u64, u64))> = rooms.into_iter().collect();
        rooms.sort_by_key(|(_, (room, first))| (Reverse((*room).min(count)), *room, *first));
        rooms.into_iter().take(most).map(|(domain, _)| domain)
    }

    fn put(&mut self, part: usize, node: NodeIx) {
        self.rules.put(part, node);
        self.moves.push((part, node));
    }

    fn take_back(&mut self) {
        if let Some((part, node)) = self.moves.pop() {
            self.rules.lift(part, node);
        }
    }

    fn clear(&mut self) {
        while !self.moves.is_empty() {
            self.take_back();
        }
    }

    fn taken(&self) -> Vec<Taken> {
        let mut taken: Vec<BTreeMap<NodeIx, u32>> = vec![BTreeMap::new(); self.rules.parts.len()];
        for (part, node) in &self.moves {
            *taken[*part].entry(*node).or_default() += 1;
        }
        taken.into_iter().map(|nodes| nodes.into_iter().collect()).collect()
    }

    /// Puts what had been put when this part got stuck; of another part, what is there now.
    fn show_stuck(&mut self, part: usize) {
        self.clear();
        match self.stuck.take().filter(|stuck| stuck.part == part) {
            Some(stuck) => stuck.moves.into_iter().for_each(|(part, node)| self.put(part, node)),
            None => {
                let start = Start { within: vec![None; self.rules.parts.len()], anchor: None };
                let mut work = u64::from(u32::MAX);
                self.try_order(&[part], &start, &mut work);
            }
        }
    }

    fn placed(&self, part: usize) -> u32 {
        let placed = self.moves.iter().filter(|(at, _)| *at == part).count();
        u32::try_from(placed).unwrap_or(u32::MAX)
    }

    /// Of the nodes that would take a pod of this part as far as they alone are concerned: how many
    /// do not, and how many for which reason, as things are put now.
    fn why(&self, cluster: &Cluster, part: usize) -> (u32, BTreeMap<NodeProblem, u32>) {
        let (mut out, mut why) = (0, BTreeMap::new());
        for &node in &self.rules.parts[part].candidates {
            let problems: Vec<NodeProblem> = match self.rules.problem(part, node) {
                Some(problem) => vec![problem],
                None => {
                    let short = self.rules.short(part, node);
                    short.map(|resource| cluster.short_of(resource)).collect()
                }
            };
            out += u32::from(!problems.is_empty());
            for problem in problems {
                *why.entry(problem).or_insert(0) += 1;
            }
        }
        (out, why)
    }
}

#[cfg(test)]
mod tests;
