//! The place that a gang would like best, among those that are as close together as they should be; and,
//! where another packing than best fit is set, the one that is best by that.
//!
//! Asked once it is known where the gang fits. What comes first is what must be: every rule, and what the
//! topology request says, as far as the first answer got with it. Then comes what the pods would like
//! (`rules::taste`), summed up over the gang: each pod in its turn, as kube-scheduler would score the node
//! that it gets. Then how well they are packed: what is liked no better stays where it was found.
//!
//! Pods come to the nodes that they like best at that moment, in several domains and with several domains
//! to start from. The first answer is one of the tries, so that nothing gets worse.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::super::Taken;
use super::super::bundle::Bundle;
use super::super::closer::reached;
use super::super::model::contains;
use super::super::part::{Part, Region, Wish};
use super::packed::Packed;
use super::{Start, Tries};
use crate::cluster::{Cluster, NodeIx};
use crate::packing::{Packing, Score};

/// Regions of one bundle that are tried: those in which the pods would like most nodes.
const REGIONS_TRIED: usize = 8;
/// Domains for pods that like to be together, tried as the place of the first of them.
const LEANS_MAX: usize = 4;
/// Looks at a node (10 to 50 ns each): whoever has preferences waits some 20 ms for them at most.
const WORK_MAX: u64 = 500_000;

/// Whether any of these pods may like one node better than another, or be packed otherwise.
pub(in super::super) fn concerns(cluster: &Cluster, parts: &[Part], packing: Packing) -> bool {
    let soft = cluster.has_soft_taints() || packing != Packing::BestFit;
    parts.iter().any(|part| is_free(part) && (soft || part.need.ask.shape.prefers.is_some()))
}

/// Where all the pods go, given where they could: there, or where they would like it better.
pub(in super::super) fn prefer(
    cluster: &mut Cluster,
    parts: &[Part],
    bundles: &[Bundle],
    found: Vec<Taken>,
    packing: Packing,
) -> Vec<Taken> {
    let mut parts = parts.to_vec();
    for (part, taken) in parts.iter_mut().zip(&found) {
        part.count = taken.iter().map(|(_, count)| count).sum();
    }
    let best_fit = packing == Packing::BestFit;
    if best_fit
        && parts.iter().all(|part| part.count == 0 || part.need.ask.shape.prefers.is_none())
        && !on_soft_taint(cluster, &parts, &found)
    {
        return found;
    }
    let mut tries = Tries::new(cluster, &parts, &[], Vec::new());
    tries.rules.learn_tastes(cluster, &parts);
    let free: Vec<usize> =
        (0..parts.len()).filter(|at| is_free(&parts[*at]) && parts[*at].count > 0).collect();
    if best_fit && !free.iter().any(|at| tries.rules.has_taste(*at)) {
        return found;
    }
    let packed = (!best_fit).then(|| Packed::new(packing, cluster, &parts));
    let starts = starts(cluster, &tries, &parts, bundles, &found, packing);
    Wishes { tries, packed, found, free, work: WORK_MAX }.best(cluster, &parts, &starts)
}

/// Whether its places are chosen here: portions of pods and pinned ones are not.
fn is_free(part: &Part) -> bool {
    part.grain.is_fine() && !part.wish.is_settled() && part.wish != Wish::Nowhere
}

fn on_soft_taint(cluster: &Cluster, parts: &[Part], found: &[Taken]) -> bool {
    let disliked = |part: &Part, node: NodeIx| {
        let facts = cluster.slot_of(node).facts.as_ref();
        facts.is_some_and(|facts| crate::fit::disliked(&part.need.ask, facts) > 0)
    };
    parts.iter().zip(found).any(|(part, taken)| taken.iter().any(|(node, _)| disliked(part, *node)))
}

/// Where to look: per bundle the regions that are as close together as what was found.
fn starts(
    cluster: &mut Cluster,
    tries: &Tries,
    parts: &[Part],
    bundles: &[Bundle],
    found: &[Taken],
    packing: Packing,
) -> Vec<Start> {
    let mut starts = vec![Start { within: vec![None; parts.len()], anchor: None }];
    for bundle in bundles {
        let masks = masks(cluster, tries, parts, bundle, found, packing);
        let with = |start: &Start, mask: &Option<Vec<bool>>| {
            let mut within = start.within.clone();
            bundle.parts.iter().for_each(|at| within[*at].clone_from(mask));
            Start { within, anchor: None }
        };
        let all = starts.iter().flat_map(|start| masks.iter().map(|mask| with(start, mask)));
        starts = all.take(super::STARTS_MAX).collect();
    }
    starts
}

/// The nodes of each region to try, best liked first; `None`: all nodes.
fn masks(
    cluster: &mut Cluster,
    tries: &Tries,
    parts: &[Part],
    bundle: &Bundle,
    found: &[Taken],
    packing: Packing,
) -> Vec<Option<Vec<bool>>> {
    let lead = &parts[bundle.parts[0]];
    let level = match lead.wish {
        Wish::Required(level) => level,
        Wish::Preferred(level) => reached(cluster, parts, bundle, found, level),
        _ => return vec![None],
    };
    let nodes = cluster.slots().len();
    let Some(tree) = cluster.topologies().tree(lead.topology.as_ref()) else { return vec![None] };
    if level == 0 {
        // Spread over several of the coarsest domains: over those, since there were no fewer.
        let used: Vec<_> = bundle.parts.iter().flat_map(|at| &found[*at]).map(|(node, _)| *node).collect();
        let used: Vec<_> = used.into_iter().filter_map(|node| tree.domain_of(node, 1)).collect();
        let there = |node| tree.domain_of(NodeIx::of(node), 1).is_some_and(|domain| used.contains(&domain));
        return vec![(tree.depth() > 0).then(|| (0..nodes).map(there).collect())];
    }
    let mut required = parts.to_vec();
    bundle.parts.iter().for_each(|at| required[*at].wish = Wish::Required(level));
    let mut regions = bundle.regions(cluster, &required, usize::MAX);
    if packing == Packing::Spread {
        // The roomiest ones first.
        regions.reverse();
    }
    let Some(tree) = cluster.topologies().tree(lead.topology.as_ref()) else { return vec![None] };
    let of_node = |node: NodeIx| match level > tree.depth() {
        true => tree.leaf_of(node).map(|_| Region::Node(node)),
        false => tree.domain_of(node, level).map(Region::Domain),
    };
    let hopes = hopes(tries, bundle, of_node);
    let mut regions: Vec<(i64, usize, Region)> = regions
        .into_iter()
        .enumerate()
        .map(|(at, region)| (hopes.get(&number(&region)).copied().unwrap_or(0), at, region))
        .collect();
    regions.sort_by_key(|(hope, at, _)| (Reverse(*hope), *at));
    regions.truncate(REGIONS_TRIED);
    let mask = |region: &Region| Some((0..nodes).map(|at| contains(tree, region, NodeIx::of(at))).collect());
    regions.iter().map(|(_, _, region)| mask(region)).collect()
}

/// How much the pods of a bundle would like each region if all of them got the best nodes there, as things
/// are now.
fn hopes(tries: &Tries, bundle: &Bundle, of_node: impl Fn(NodeIx) -> Option<Region>) -> BTreeMap<u32, i64> {
    let mut hopes: BTreeMap<u32, i64> = BTreeMap::new();
    for &part in &bundle.parts {
        let rules = &tries.rules;
        let mut best: Vec<(i64, u32, u32)> = Vec::new();
        for (node, score) in rules.parts[part].candidates.iter().zip(rules.scores(part)) {
            best.extend(of_node(*node).map(|region| (score, rules.room(part, *node), number(&region))));
        }
        best.sort_by_key(|(score, _, _)| Reverse(*score));
        let mut left: BTreeMap<u32, u32> = BTreeMap::new();
        for (score, room, region) in best {
            let left = left.entry(region).or_insert(rules.parts[part].count);
            let here = room.min(*left);
            *left -= here;
            *hopes.entry(region).or_default() += score * i64::from(here);
        }
    }
    hopes
}

/// Tells regions of one level apart.
fn number(region: &Region) -> u32 {
    match region {
        Region::Domain(domain) => domain.0,
        Region::Node(node) => node.0,
        Region::Spread | Region::Anywhere | Region::Pinned(_) => u32::MAX,
    }
}

/// What a way to place the gang is worth: more is better.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Worth {
    liked: i64,
    /// Less what packing counts as lost.
    packed: i128,
}

/// Tries with what they are worth.
struct Wishes {
    tries: Tries,
    /// `None`: by best fit, as they were found.
    packed: Option<Packed>,
    found: Vec<Taken>,
    /// Parts that may go elsewhere than where they were found.
    free: Vec<usize>,
    work: u64,
}

/// A node for pods of a part: its number among the part's candidates, itself, and how many at most.
type Seat = (usize, NodeIx, u32);

/// One way to go about it.
struct Try<'a> {
    start: &'a Start,
    /// All parts, in the order of their turns.
    order: Vec<usize>,
    /// Those of them that stay where they were found.
    kept: Vec<usize>,
    /// For a part that likes itself: the domain that it begins with.
    lean: Option<(usize, u32)>,
}

impl Wishes {
    fn best(mut self, cluster: &Cluster, parts: &[Part], starts: &[Start]) -> Vec<Taken> {
        let all: Vec<usize> = (0..parts.len()).collect();
        let packs = self.packed.is_some();
        let choosy = |at: &usize| self.free.contains(at) && (packs || self.tries.rules.has_taste(*at));
        let (choosy, others): (Vec<usize>, Vec<usize>) = all.iter().partition(|at| choosy(at));
        let fixed: Vec<usize> = all.iter().copied().filter(|at| !self.free.contains(at)).collect();
        let chosen_first: Vec<usize> = choosy.iter().chain(&others).copied().collect();
        let kept_first: Vec<usize> = others.iter().chain(&choosy).copied().collect();
        let everywhere = Start { within: vec![None; parts.len()], anchor: None };
        let first = Try { start: &everywhere, order: all.clone(), kept: all.clone(), lean: None };
        let Some(mut most) = self.run(cluster, parts, &first) else { return self.found };
        let mut best = None;
        for start in starts {
            let mut ways = vec![(&chosen_first, &fixed, None)];
            if others.len() > fixed.len() {
                ways.push((&kept_first, &others, None));
            }
            let leans = self.leans(&choosy, start);
            ways.extend(leans.into_iter().map(|lean| (&chosen_first, &fixed, Some(lean))));
            for (order, kept, lean) in ways {
                let way = Try { start, order: order.clone(), kept: kept.clone(), lean };
                let total = self.run(cluster, parts, &way);
                // Of two that pack equally well the one that came by packing, where one is set.
                let better = |total: &Worth| *total > most || packs && best.is_none() && *total == most;
                if let Some(total) = total.filter(better) {
                    (most, best) = (total, Some(self.tries.taken()));
                }
            }
        }
        best.unwrap_or(self.found)
    }

    /// Domains in which a part that likes itself could begin: the tightest that takes all of it, else those
    /// that take most.
    fn leans(&self, tasteful: &[usize], start: &Start) -> Vec<(usize, u32)> {
        let mut leans = Vec::new();
        for &part in tasteful {
            for counter in self.tries.rules.likes_itself(part) {
                let domains = self.tries.roomiest(part, counter, start, LEANS_MAX);
                leans.extend(domains.map(|domain| (counter, domain)));
            }
        }
        leans
    }

    /// Puts all pods, and says how much they like it; `None`: not all of them found a place so.
    fn run(&mut self, cluster: &Cluster, parts: &[Part], way: &Try<'_>) -> Option<Worth> {
        self.tries.clear();
        let mut left: Vec<u32> = parts.iter().map(|part| part.count).collect();
        let bases: Vec<Vec<Seat>> =
            parts.iter().enumerate().map(|(at, part)| self.base(cluster, part, at, way)).collect();
        let mut total = Worth::default();
        loop {
            let before = self.tries.moves.len();
            for &part in &way.order {
                let more = match self.tries.rules.has_changing_taste(part) {
                    true => self.seat_in_turn(part, &bases[part], &mut left[part]),
                    false => self.seat_at_once(part, &bases[part], &mut left[part]),
                };
                total = Worth { liked: total.liked + more.liked, packed: total.packed + more.packed };
            }
            if left.iter().all(|left| *left == 0) {
                return Some(total);
            }
            if self.tries.moves.len() == before || self.work == 0 {
                return None;
            }
        }
    }

    /// The nodes of a part as (number among its candidates, node, how many at most), in the order in
    /// which those that it likes equally well are taken: where it leans to, where it was found, then
    /// few leaf domains, then few nodes.
    fn base(&self, cluster: &Cluster, part: &Part, at: usize, way: &Try<'_>) -> Vec<Seat> {
        let rules = &self.tries.rules;
        let found: BTreeMap<NodeIx, u32> = self.found[at].iter().copied().collect();
        let candidates = rules.parts[at].candidates.iter().enumerate();
        if way.kept.contains(&at) {
            let there = |(number, node): (usize, &NodeIx)| Some((number, *node, *found.get(node)?));
            return candidates.filter_map(there).collect();
        }
        let numbers: BTreeMap<NodeIx, usize> = candidates.map(|(number, node)| (*node, number)).collect();
        let tree = cluster.topologies().tree(part.topology.as_ref());
        let leaf = |node: NodeIx| tree.and_then(|tree| tree.leaf_of(node)).map_or(0, |leaf| leaf.0);
        let path = |node: NodeIx| tree.and_then(|tree| Some(tree.domain(tree.leaf_of(node)?).rank));
        let mut nodes: Vec<NodeIx> = Vec::new();
        let mut leaves: BTreeMap<u32, u64> = BTreeMap::new();
        for node in self.tries.nodes_of(at, way.start) {
            nodes.push(node);
            *leaves.entry(leaf(node)).or_default() += u64::from(rules.room(at, node));
        }
        let count = u64::from(part.count);
        let tight = |room: u64| (room < count, if room < count { u64::MAX - room } else { room });
        nodes.sort_by_cached_key(|node| {
            let leans =
                way.lean.is_some_and(|(counter, domain)| rules.domain(counter, *node) == Some(domain));
            let of_leaf = leaves.get(&leaf(*node)).copied().unwrap_or(0);
            let own = u64::from(rules.room(at, *node));
            let rank = self.tries.ranks[node.index()];
            (!leans, !found.contains_key(node), tight(of_leaf), path(*node), tight(own), rank)
        });
        nodes.into_iter().filter_map(|node| Some((*numbers.get(&node)?, node, u32::MAX))).collect()
    }

    /// Where nothing changes what the part would like: the best nodes, one after the other.
    fn seat_at_once(&mut self, part: usize, base: &[Seat], left: &mut u32) -> Worth {
        if *left == 0 {
            return Worth::default();
        }
        let scores = self.tries.rules.scores(part);
        self.work = self.work.saturating_sub(base.len() as u64);
        if self.packed.is_some() {
            return self.seat_packed(part, base, &scores, left);
        }
        let mut order: Vec<(i64, NodeIx, u32)> =
            base.iter().map(|(number, node, most)| (scores[*number], *node, *most)).collect();
        order.sort_by_key(|(score, _, _)| Reverse(*score));
        let one_each = self.tries.rules.spreads(part).next().is_some();
        let mut total = Worth::default();
        for (score, node, most) in order {
            if *left == 0 || self.work == 0 {
                break;
            }
            let most = most.saturating_sub(self.tries.rules.placed(part, node));
            let most = if one_each { most.min(1) } else { most };
            total.liked += score * i64::from(self.put_some(part, node, most, left));
        }
        total
    }

    /// The same where each pod changes how well the next one packs on its node.
    fn seat_packed(&mut self, part: usize, base: &[Seat], scores: &[i64], left: &mut u32) -> Worth {
        let mut total = Worth::default();
        let mut open: BTreeSet<(Reverse<i64>, Score, usize)> = BTreeSet::new();
        for (at, (number, node, _)) in base.iter().enumerate() {
            open.extend(self.packs(part, *node).map(|score| (Reverse(scores[*number]), score, at)));
        }
        while *left > 0
            && self.work > 0
            && let Some((liked, score, at)) = open.pop_first()
        {
            let (_, node, most) = base[at];
            let most = most.saturating_sub(self.tries.rules.placed(part, node)).min(1);
            if self.put_some(part, node, most, left) == 0 {
                // Whatever keeps it away now may not do so in the next round.
                continue;
            }
            total.liked += liked.0;
            total.packed -= score.cost();
            open.extend(self.packs(part, node).map(|score| (liked, score, at)));
        }
        total
    }

    /// How good a node is by packing; `None`: it has no room, or packing is not asked.
    fn packs(&self, part: usize, node: NodeIx) -> Option<Score> {
        self.packed.as_ref()?.score(&self.tries.rules, part, node)
    }

    /// Where each pod changes what the next one would like: the best node of the moment, again and again.
    fn seat_in_turn(&mut self, part: usize, base: &[Seat], left: &mut u32) -> Worth {
        let mut total = Worth::default();
        while *left > 0 && self.work > 0 {
            let scores = self.tries.rules.scores(part);
            self.work = self.work.saturating_sub(base.len() as u64);
            let mut best: Option<(i64, Option<Reverse<Score>>, NodeIx, u32)> = None;
            for (number, node, most) in base {
                let most = most.saturating_sub(self.tries.rules.placed(part, *node));
                let worth = (scores[*number], self.packs(part, *node).map(Reverse));
                let better = best.as_ref().is_none_or(|best| (worth.0, &worth.1) > (best.0, &best.1));
                if better && most > 0 && self.tries.rules.may_sit(part, *node) {
                    best = Some((worth.0, worth.1, *node, most));
                }
            }
            let Some((liked, score, node, most)) = best else { break };
            let rules = &self.tries.rules;
            let alone = rules.likes_distance(part) || rules.spreads(part).next().is_some();
            let most = if alone || score.is_some() { 1 } else { most };
            let put = self.put_some(part, node, most, left);
            total.liked += liked * i64::from(put);
            total.packed -= score.map_or(0, |Reverse(score)| score.cost());
        }
        total
    }

    /// Puts pods on a node while they may sit there, up to so many of the part in all; how many.
    fn put_some(&mut self, part: usize, node: NodeIx, most: u32, left: &mut u32) -> u32 {
        let mut put = 0;
        while put < most.min(*left) && self.tries.rules.may_sit(part, node) {
            self.work = self.work.saturating_sub(1);
            self.tries.put(part, node);
            put += 1;
        }
        *left -= put;
        put
    }
}
