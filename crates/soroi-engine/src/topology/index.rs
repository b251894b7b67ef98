//! How many pods of one shape fit where: per node and per domain, and in order.
//!
//! One ordered set holds, for every group of siblings (the children of a domain, or all domains of
//! a level), its members by how many pods they take. "The tightest rack that takes 40", "the
//! fullest node", "the largest block" are one look-up each, and a node that changes costs a few
//! set operations per level.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smallvec::SmallVec;

use super::grain::Grain;
use super::tree::{DomainIx, Tree};
use crate::cluster::{ChangeLog, Need, NodeIx, NodeSlot, RANK_BITS, Rank};
use crate::fit::has_labels;
use crate::reason::NodeProblem;
use crate::resources::{ResourceIx, ResourceNames};

const IX_BITS: u32 = 24;
const COUNT_BITS: u32 = 40;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
const GROUP_SHIFT: u32 = COUNT_BITS + RANK_BITS + IX_BITS;
/// The groups of whole levels count down from here, those of domains up from 0.
const LEVEL_GROUPS: u32 = (1 << (128 - GROUP_SHIFT)) - 1;

/// Siblings to choose among.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group(u32);

/// A member of a group and how many pods it takes: `(count, number of the node or domain)`.
pub(crate) type Member = (u64, u32);

/// What became of a node when it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    count: u32,
    leaf: Option<DomainIx>,
    rank: Rank,
    /// Index into `verdicts`.
    verdict: u32,
    /// The verdict as far as facts alone decide it, and the version of these facts.
    of_facts: u32,
    version: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Room {
    /// What the nodes or domains below take together.
    below: u64,
    /// Of that, what goes into this domain in whole slices.
    pods: u64,
    nodes: u32,
}

/// Why a node takes no pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// It does.
    Fits,
    /// It is not among the nodes that were asked about.
    Aside,
    /// These keep the pod away; all of them, where resources are short.
    Out(SmallVec<[NodeProblem; 1]>),
}

const FITS: u32 = 0;
const ASIDE: u32 = 1;

/// The index of one shape over one topology.
#[derive(Clone, Debug)]
pub(crate) struct FitIndex {
    pub(crate) need: Arc<Need>,
    pub(crate) grain: Grain,
    /// When it was last asked, for eviction.
    pub(crate) asked: u64,
    synced: Option<u64>,
    generation: u64,
    records: Vec<Record>,
    rooms: Vec<Room>,
    order: BTreeSet<u128>,
    verdicts: Verdicts,
}

#[derive(Clone, Debug)]
struct Verdicts {
    ix: BTreeMap<Verdict, u32>,
    counts: Vec<(Verdict, u32)>,
}

impl FitIndex {
    pub(crate) fn new(need: Arc<Need>, grain: Grain) -> Self {
        Self {
            need,
            grain,
            asked: 0,
            synced: None,
            generation: 0,
            records: Vec::new(),
            rooms: Vec::new(),
            order: BTreeSet::new(),
            verdicts: Verdicts::new(),
        }
    }

    /// Takes in what changed since the last time.
    pub(crate) fn catch_up(
        &mut self,
        tree: &Tree,
        nodes: &[NodeSlot],
        changes: &mut ChangeLog,
        names: &ResourceNames,
    ) {
        let end = changes.read_all();
        let news = match self.synced {
            Some(synced) if self.generation == tree.generation => changes.since(synced),
            _ => None,
        };
        match news {
            None => self.build(tree, nodes, names),
            Some(news) => {
                self.records.resize(nodes.len(), Record::NOWHERE);
                self.rooms.resize(tree.domain_count(), Room::default());
                for &node in news {
                    let record = self.look(node, tree, nodes, names);
                    self.put(node, record, tree);
                }
            }
        }
        self.generation = tree.generation;
        self.synced = Some(end);
    }

    /// How many pods fit in a domain.
    pub(crate) fn pods_in(&self, domain: DomainIx) -> u64 {
        self.rooms[domain.index()].pods
    }

    /// How many nodes of a domain take at least one pod.
    pub(crate) fn nodes_in(&self, domain: DomainIx) -> u32 {
        self.rooms[domain.index()].nodes
    }

    /// How many pods fit on a node.
    pub(crate) fn pods_on(&self, node: NodeIx) -> u32 {
        self.records.get(node.index()).map_or(0, |record| record.count)
    }

    /// Whether a node takes such pods, room aside.
    pub(crate) fn suits(&self, node: NodeIx) -> bool {
        self.records.get(node.index()).is_some_and(|record| record.of_facts == FITS)
    }

    /// Why a node takes no such pod, however empty it is; `None`: it does, or it was not asked about.
    pub(crate) fn out(&self, node: NodeIx) -> Option<&[NodeProblem]> {
        let record = self.records.get(node.index())?;
        match &self.verdicts.counts.get(record.of_facts as usize)?.0 {
            Verdict::Out(problems) => Some(problems),
            _ => None,
        }
    }

    /// The member of a group that takes `count` pods with the least to spare.
    pub(crate) fn tightest(&self, group: Group, count: u64) -> Option<Member> {
        self.order.range(key(group, count, 0, 0)..=group_end(group)).next().map(member)
    }

    /// The member of a group that takes most.
    pub(crate) fn largest(&self, group: Group) -> Option<Member> {
        let last = self.order.range(key(group, 0, 0, 0)..=group_end(group)).next_back()?;
        let (count, _) = member(last);
        self.tightest(group, count)
    }

    /// Members of a group that take at least `count` pods, least to spare first.
    pub(crate) fn at_least(&self, group: Group, count: u64) -> impl Iterator<Item = Member> + '_ {
        self.order.range(key(group, count, 0, 0)..=group_end(group)).map(member)
    }

    /// Chooses the fewest members of a group that together take `count` pods: the largest ones,
    /// and for the rest the one with the least to spare; ties in order of names. Returns how many
    /// pods found no room.
    pub(crate) fn pick(&self, group: Group, count: u64, chosen: impl FnMut(u32, u64)) -> u64 {
        self.pick_except(group, count, |_| false, chosen)
    }

    /// As [`Self::pick`], passing over some members.
    pub(crate) fn pick_except(
        &self,
        group: Group,
        count: u64,
        passed: impl Fn(u32) -> bool,
        mut chosen: impl FnMut(u32, u64),
    ) -> u64 {
        let between = |from: u64, below: u128| {
            self.order.range(key(group, from, 0, 0)..below).map(member).filter(|(_, ix)| !passed(*ix))
        };
        let mut rest = count;
        let mut used_from = group_end(group) + 1;
        while rest > 0 {
            let Some((most, _)) = between(1, used_from).next_back() else { break };
            for (_, ix) in between(most, used_from) {
                if rest <= most {
                    let tighter = between(rest, key(group, most, 0, 0)).next();
                    chosen(tighter.map_or(ix, |(_, ix)| ix), rest);
                    return 0;
                }
                chosen(ix, most);
                rest -= most;
            }
            used_from = key(group, most, 0, 0);
        }
        rest
    }

    /// Number of nodes that were asked about, how many of these are out, and how many for which
    /// reason.
    pub(crate) fn excluded(&self) -> (u32, u32, BTreeMap<NodeProblem, u32>) {
        let (mut nodes, mut out) = (0, 0);
        let mut excluded = BTreeMap::new();
        for (verdict, count) in &self.verdicts.counts {
            match verdict {
                Verdict::Aside => {}
                Verdict::Fits => nodes += count,
                Verdict::Out(problems) => {
                    nodes += count;
                    out += count;
                    for problem in problems.iter().filter(|_| *count > 0) {
                        *excluded.entry(problem.clone()).or_insert(0) += count;
                    }
                }
            }
        }
        (nodes, out, excluded)
    }

    /// What another index of the same need says differently.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        let name = |text: &str| Some(format!("index of {:?}: {text}", self.need.ix));
        if self.rooms != other.rooms {
            return name("rooms differ");
        }
        if self.order != other.order {
            return name("orders differ");
        }
        if self.excluded() != other.excluded() {
            return name("verdicts differ");
        }
        let counts = |index: &Self| index.records.iter().map(|r| r.count).collect::<Vec<_>>();
        if counts(self) != counts(other) { name("counts differ") } else { None }
    }

    fn build(&mut self, tree: &Tree, nodes: &[NodeSlot], names: &ResourceNames) {
        self.records = vec![Record::NOWHERE; nodes.len()];
        self.rooms = vec![Room::default(); tree.domain_count()];
        self.verdicts = Verdicts::new();
        let mut keys = Vec::with_capacity(3 * nodes.len());
        for ix in 0..nodes.len() {
            let node = NodeIx::of(ix);
            let record = self.look(node, tree, nodes, names);
            self.verdicts.move_one(None, Some(record.verdict));
            self.records[ix] = record;
            let Some(leaf) = record.leaf.filter(|_| record.count > 0) else { continue };
            keys.extend(
                node_groups(tree, leaf).map(|group| key(group, record.count.into(), record.rank, ix as u32)),
            );
            let mut at = Some(leaf);
            while let Some(domain) = at {
                self.rooms[domain.index()].nodes += 1;
                at = parent(tree, domain);
            }
            self.rooms[leaf.index()].below += u64::from(record.count);
        }
        self.sum_up(tree);
        for ix in 1..self.rooms.len() {
            let room = self.rooms[ix];
            if room.pods > 0 {
                keys.extend(domain_keys(tree, DomainIx(ix as u32), room.pods));
            }
        }
        keys.sort_unstable();
        self.order = keys.into_iter().collect();
    }

    /// The rooms of all domains from those of the leaves, the finest first.
    fn sum_up(&mut self, tree: &Tree) {
        let mut order: Vec<u32> = (0..self.rooms.len() as u32).collect();
        order.sort_by_key(|ix| std::cmp::Reverse(tree.domain(DomainIx(*ix)).level));
        for ix in order.into_iter().map(DomainIx) {
            let room = &mut self.rooms[ix.index()];
            room.pods = self.grain.round(tree.domain(ix).level, room.below);
            let pods = room.pods;
            if let Some(parent) = parent(tree, ix) {
                self.rooms[parent.index()].below += pods;
            }
        }
    }

    /// What a node is to this shape now.
    fn look(&mut self, node: NodeIx, tree: &Tree, nodes: &[NodeSlot], names: &ResourceNames) -> Record {
        let slot = &nodes[node.index()];
        let old = self.records[node.index()];
        let leaf = tree.leaf_of(node);
        let of_facts = if old.version == Some(slot.version) {
            old.of_facts
        } else {
            let verdict = verdict_of_facts(&self.need, slot, (tree, leaf), names);
            self.verdicts.number(verdict)
        };
        let (count, verdict) = match of_facts {
            FITS if slot.barred > 0 => (0, ASIDE),
            FITS => match slot.space.fit_count(&self.need.requests) {
                0 => {
                    let short = slot.space.short(&self.need.requests);
                    (0, self.verdicts.number(Verdict::Out(short.map(|r| insufficient(r, names)).collect())))
                }
                count => (count - count % self.grain.at(tree.depth() + 1), FITS),
            },
            out => (0, out),
        };
        Record { count, leaf, rank: slot.rank, verdict, of_facts, version: Some(slot.version) }
    }

    fn put(&mut self, node: NodeIx, new: Record, tree: &Tree) {
        let old = std::mem::replace(&mut self.records[node.index()], new);
        if old.verdict != new.verdict || old.version.is_none() {
            self.verdicts.move_one(old.version.map(|_| old.verdict), Some(new.verdict));
        }
        if (old.count, old.leaf, old.rank) == (new.count, new.leaf, new.rank) {
            return;
        }
        let ix = node.0;
        if let Some(leaf) = old.leaf.filter(|_| old.count > 0) {
            for group in node_groups(tree, leaf) {
                self.order.remove(&key(group, old.count.into(), old.rank, ix));
            }
        }
        if let Some(leaf) = new.leaf.filter(|_| new.count > 0) {
            for group in node_groups(tree, leaf) {
                self.order.insert(key(group, new.count.into(), new.rank, ix));
            }
        }
        if old.leaf == new.leaf {
            self.shift(new.leaf, tree, old.count, new.count);
        } else {
            self.shift(old.leaf, tree, old.count, 0);
            self.shift(new.leaf, tree, 0, new.count);
        }
    }

    /// A node below `leaf` took `old` pods and takes `new` ones now.
    fn shift(&mut self, leaf: Option<DomainIx>, tree: &Tree, old: u32, new: u32) {
        if old == new {
            return;
        }
        let nodes_change = (old > 0) != (new > 0);
        let (mut old_below, mut new_below) = (u64::from(old), u64::from(new));
        let mut at = leaf;
        while let Some(domain) = at {
            let room = &mut self.rooms[domain.index()];
            let before = room.pods;
            room.below = room.below + new_below - old_below;
            room.pods = self.grain.round(tree.domain(domain).level, room.below);
            room.nodes = room.nodes + u32::from(new > 0) - u32::from(old > 0);
            let after = room.pods;
            (old_below, new_below) = (before, after);
            if before == after && !nodes_change {
                return;
            }
            if domain != DomainIx::ROOT && before != after {
                if before > 0 {
                    for key in domain_keys(tree, domain, before) {
                        self.order.remove(&key);
                    }
                }
                if after > 0 {
                    self.order.extend(domain_keys(tree, domain, after));
                }
            }
            at = parent(tree, domain);
        }
    }
}

impl Record {
    const NOWHERE: Self =
        Self { count: 0, leaf: None, rank: 0, verdict: ASIDE, of_facts: ASIDE, version: None };
}

impl Verdicts {
    fn new() -> Self {
        let first = [Verdict::Fits, Verdict::Aside];
        Self {
            ix: first.iter().cloned().zip([FITS, ASIDE]).collect(),
            counts: first.into_iter().map(|verdict| (verdict, 0)).collect(),
        }
    }

    fn number(&mut self, verdict: Verdict) -> u32 {
        if let Some(&known) = self.ix.get(&verdict) {
            return known;
        }
        let ix = self.counts.len() as u32;
        self.ix.insert(verdict.clone(), ix);
        self.counts.push((verdict, 0));
        ix
    }

    fn move_one(&mut self, from: Option<u32>, to: Option<u32>) {
        if let Some(from) = from {
            self.counts[from as usize].1 -= 1;
        }
        if let Some(to) = to {
            self.counts[to as usize].1 += 1;
        }
    }
}

/// What the node's own facts say, however full it is. Of a node that is too small for such a pod
/// even when empty that is told before its taints and the like: to change those would be in vain.
fn verdict_of_facts(
    need: &Need,
    slot: &NodeSlot,
    (tree, leaf): (&Tree, Option<DomainIx>),
    names: &ResourceNames,
) -> Verdict {
    let Some(facts) = &slot.facts else { return Verdict::Aside };
    if !has_labels(&need.ask.node_labels, &facts.labels) {
        return Verdict::Aside;
    }
    let outside = || {
        let missing = tree.levels().iter().find(|level| !facts.labels.contains_key(*level));
        leaf.is_none().then(|| match missing {
            Some(label) => NodeProblem::NoLevel { label: label.clone() },
            None => NodeProblem::Topology,
        })
    };
    match need.node_problem(facts).or_else(outside) {
        Some(problem) => {
            let too_small = slot.space.short_if_empty(&need.requests);
            let mut problems: SmallVec<_> = too_small.map(|resource| insufficient(resource, names)).collect();
            if problems.is_empty() {
                problems.push(problem);
            }
            Verdict::Out(problems)
        }
        None => Verdict::Fits,
    }
}

fn insufficient(resource: ResourceIx, names: &ResourceNames) -> NodeProblem {
    match resource {
        ResourceIx::PODS => NodeProblem::TooManyPods,
        _ => NodeProblem::Insufficient { resource: names.name(resource).clone() },
    }
}

impl Group {
    /// The children of a domain: nodes, if it is of the last level above them.
    pub(crate) fn children(domain: DomainIx) -> Self {
        Self(domain.0)
    }

    /// All domains of a level, `depth + 1` being the nodes.
    pub(crate) fn level(level: usize) -> Self {
        match level {
            0 | 1 => Self::children(DomainIx::ROOT),
            _ => Self(LEVEL_GROUPS - level as u32),
        }
    }
}

fn node_groups(tree: &Tree, leaf: DomainIx) -> impl Iterator<Item = Group> {
    let all = (tree.depth() > 0).then(|| Group::level(tree.depth() + 1));
    [Group::children(leaf)].into_iter().chain(all)
}

fn domain_keys(tree: &Tree, ix: DomainIx, pods: u64) -> impl Iterator<Item = u128> {
    let domain = tree.domain(ix);
    let (rank, level, parent) = (domain.rank, domain.level, domain.parent);
    let all = (level > 1).then(|| Group::level(level));
    [Group::children(parent)].into_iter().chain(all).map(move |group| key(group, pods, rank, ix.0))
}

fn parent(tree: &Tree, domain: DomainIx) -> Option<DomainIx> {
    (domain != DomainIx::ROOT).then(|| tree.domain(domain).parent)
}

fn key(group: Group, count: u64, rank: Rank, ix: u32) -> u128 {
    u128::from(group.0) << GROUP_SHIFT
        | u128::from(count.min(COUNT_MAX)) << (RANK_BITS + IX_BITS)
        | u128::from(rank) << IX_BITS
        | u128::from(ix)
}

fn group_end(group: Group) -> u128 {
    key(group, COUNT_MAX, (1 << RANK_BITS) - 1, (1 << IX_BITS) - 1)
}

fn member(key: &u128) -> Member {
    let count = (key >> (RANK_BITS + IX_BITS)) as u64 & COUNT_MAX;
    (count, (key & ((1 << IX_BITS) - 1)) as u32)
}
