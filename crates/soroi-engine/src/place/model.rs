//! The part of the cluster that matters for one gang, as small arrays; and the search in it.
//!
//! Knows amounts, allowed nodes and regions as numbers. Must never know names, labels or taints:
//! those were settled when it was made. Two ways to search: [`Model::make_way`] places one part
//! after the other and lets placed pods move when a later one needs their node (as augmenting
//! paths do in bipartite matching); `exhaust` tries everything, in an order that finds good answers
//! early, skips what is the same by symmetry, and gives up when its work is used up.

mod build;
mod exhaust;

use std::collections::BTreeMap;

pub(super) use build::contains;

use super::Taken;
use crate::cluster::NodeIx;
use crate::event::Amount;

/// Placed pods make way for each other in chains of at most this many moves: deeper ones are
/// found by no human either, and each costs a stack frame.
const CHAIN_MAX: usize = 128;
/// Combinations of regions that are tried by making way, before everything is tried in turn.
const COMBINATIONS_MAX: usize = 64;
/// Gangs of more pods are not searched exhaustively: there is a stack frame for each node used,
/// and no hope to see all possibilities.
const EXHAUST_PODS_MAX: u64 = 512;

/// What the search says.
pub(super) enum Verdict {
    /// Here: nodes per part.
    Found(Vec<Taken>),
    /// There is no way.
    Impossible,
    /// None was found, but not everything was tried.
    GaveUp,
}

/// One part, or one domain of a part that is pinned to several.
#[derive(Clone, Debug)]
struct Piece {
    part: usize,
    /// Resource and amount, by the model's own numbers of resources.
    requests: Vec<(usize, Amount)>,
    count: u32,
    /// Per node: whether it may go there at all.
    allowed: Vec<bool>,
    /// Per layer of slices: the domain of each node, and the size.
    slices: Vec<(Vec<u32>, u32)>,
}

/// Pieces that share a region, and the regions to choose from (node numbers).
#[derive(Clone, Debug)]
struct Choice {
    pieces: Vec<usize>,
    regions: Vec<Vec<usize>>,
}

/// Pods of a piece that came to a node, or left it.
#[derive(Clone, Copy, Debug)]
struct Move {
    piece: usize,
    node: usize,
    count: u32,
    there: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Model {
    parts: usize,
    nodes: Vec<NodeIx>,
    /// Equal for nodes that no constraint tells apart.
    kinds: Vec<usize>,
    resources: usize,
    /// Per node and resource.
    free: Vec<Amount>,
    pieces: Vec<Piece>,
    choices: Vec<Choice>,
    /// Per piece and node: pods there.
    placed: Vec<u32>,
    /// What was moved to make way, for moving it back.
    moves: Vec<Move>,
    /// Per choice: the region in use.
    chosen: Vec<usize>,
    /// Per piece: its choice.
    choice_of: Vec<usize>,
    work: u64,
    stuck: Option<(usize, u32)>,
    /// Per part: pods that fit if it is alone.
    alone: Vec<u64>,
    /// Not all nodes or regions are in the model.
    cut: bool,
}

impl Model {
    /// How many pods of a part fit if no other is there.
    pub(super) fn room_alone(&self, part: usize) -> u64 {
        self.alone[part]
    }

    /// A part that got stuck when the others had been placed, and how many of its pods had a place then.
    pub(super) fn stuck(&self) -> Option<(usize, u32)> {
        self.stuck
    }

    /// Searches with at most this much work, which is used up.
    pub(super) fn solve(&mut self, work: &mut u64) -> Verdict {
        self.work = *work;
        let verdict = self.search();
        *work = self.work;
        verdict
    }

    fn search(&mut self) -> Verdict {
        if self.choices.iter().any(|choice| choice.regions.is_empty()) {
            return if self.cut { Verdict::GaveUp } else { Verdict::Impossible };
        }
        let combinations = self.choices.iter().try_fold(1usize, |all, c| all.checked_mul(c.regions.len()));
        for number in 0..combinations.unwrap_or(usize::MAX).min(COMBINATIONS_MAX) {
            self.choose(number);
            if self.make_way() && (0..self.pieces.len()).all(|piece| self.is_sliced(piece)) {
                return Verdict::Found(self.taken());
            }
        }
        let pods: u64 = self.pieces.iter().map(|piece| u64::from(piece.count)).sum();
        if pods > EXHAUST_PODS_MAX {
            return Verdict::GaveUp;
        }
        self.clear();
        match self.exhaust() {
            Some(true) => Verdict::Found(self.taken()),
            Some(false) if !self.cut => Verdict::Impossible,
            _ => Verdict::GaveUp,
        }
    }

    /// Takes the combination of regions with this number; the first regions of all come first.
    fn choose(&mut self, number: usize) {
        let mut rest = number;
        for (choice, chosen) in self.choices.iter().zip(&mut self.chosen) {
            *chosen = rest % choice.regions.len();
            rest /= choice.regions.len();
        }
    }

    /// Places everything in the chosen regions, pods making way for each other.
    fn make_way(&mut self) -> bool {
        let mut order = self.by_scarcity();
        for _ in 0..=self.pieces.len() {
            self.clear();
            let stuck = order.iter().position(|piece| !self.place_all(*piece));
            if let Some(at) = stuck {
                let piece = order[at];
                let placed = &self.placed[piece * self.nodes.len()..(piece + 1) * self.nodes.len()];
                self.stuck = Some((self.pieces[piece].part, placed.iter().sum()));
            }
            match stuck {
                None => return true,
                Some(0) => return false,
                Some(at) if self.work > 0 => order[..=at].rotate_right(1),
                Some(_) => return false,
            }
        }
        false
    }

    /// The piece with the least room for each of its pods first.
    fn by_scarcity(&mut self) -> Vec<usize> {
        let mut order: Vec<(u64, u32, usize)> = (0..self.pieces.len())
            .map(|piece| {
                let room: u64 = self.rooms(piece).iter().map(|(_, pods)| u64::from(*pods)).sum();
                let count = self.pieces[piece].count;
                (room.saturating_mul(1024) / u64::from(count.max(1)), count, piece)
            })
            .collect();
        order.sort_unstable();
        order.into_iter().map(|(_, _, piece)| piece).collect()
    }

    fn place_all(&mut self, piece: usize) -> bool {
        let mut rest = self.pieces[piece].count;
        let mut rooms = self.rooms(piece);
        rooms.sort_by_key(|(node, pods)| (std::cmp::Reverse(*pods), *node));
        for at in 0..rooms.len() {
            if rest == 0 {
                return true;
            }
            let (mut node, mut pods) = rooms[at];
            if pods >= rest {
                let tighter = rooms[at..].iter().rev().find(|(_, pods)| *pods >= rest);
                (node, pods) = tighter.map_or((node, pods), |(node, _)| (*node, rest));
            }
            let here = pods.min(rest);
            self.put(piece, node, here);
            rest -= here;
        }
        (0..rest).all(|_| {
            let mut seen = vec![false; self.nodes.len()];
            self.spend(seen.len() / 8);
            self.squeeze_in(piece, &mut seen, 0)
        })
    }

    /// Places one more pod of a piece, moving others out of its way if need be.
    fn squeeze_in(&mut self, piece: usize, seen: &mut [bool], depth: usize) -> bool {
        if let Some(node) = self.first_room(piece) {
            self.shift(Move { piece, node, count: 1, there: true });
            return true;
        }
        if depth == CHAIN_MAX {
            return false;
        }
        for at in 0..self.region(piece).len() {
            let node = self.region(piece)[at];
            if seen[node] || !self.pieces[piece].allowed[node] || self.work == 0 {
                continue;
            }
            seen[node] = true;
            for others in self.obstacles(piece, node) {
                let before = self.moves.len();
                for &(other, count) in &others {
                    self.shift(Move { piece: other, node, count, there: false });
                }
                self.shift(Move { piece, node, count: 1, there: true });
                let mut homeless = others.iter().flat_map(|(other, count)| (0..*count).map(|_| *other));
                if homeless.all(|other| self.squeeze_in(other, seen, depth + 1)) {
                    return true;
                }
                self.move_back(before);
            }
        }
        false
    }

    fn first_room(&mut self, piece: usize) -> Option<usize> {
        let nodes = self.region(piece);
        let found = nodes.iter().position(|node| self.fits_uncounted(piece, *node) > 0);
        let looked_at = found.map_or(nodes.len(), |at| at + 1);
        let node = found.map(|at| nodes[at]);
        self.spend(looked_at);
        node
    }

    /// Sets of placed pods on a node without which one more pod of the piece fits: of one other
    /// piece each, and last of all others.
    fn obstacles(&mut self, piece: usize, node: usize) -> Vec<Vec<(usize, u32)>> {
        self.spend(self.pieces.len());
        let others: Vec<(usize, u32)> = (0..self.pieces.len())
            .filter(|other| *other != piece)
            .map(|other| (other, self.placed[other * self.nodes.len() + node]))
            .filter(|(_, count)| *count > 0)
            .collect();
        let mut sets = Vec::new();
        for &(other, count) in &others {
            let enough = (1..=count).find(|moved| {
                self.lift(other, node, *moved);
                let fits = self.fits(piece, node) > 0;
                self.put(other, node, *moved);
                fits
            });
            sets.extend(enough.map(|moved| vec![(other, moved)]));
        }
        if sets.is_empty() && others.len() > 1 {
            for &(other, count) in &others {
                self.lift(other, node, count);
            }
            let fits = self.fits(piece, node) > 0;
            for &(other, count) in &others {
                self.put(other, node, count);
            }
            if fits {
                sets.push(others);
            }
        }
        sets
    }

    /// Whether what is placed of a piece makes whole slices.
    fn is_sliced(&mut self, piece: usize) -> bool {
        let nodes = self.nodes.len();
        let placed = &self.placed[piece * nodes..(piece + 1) * nodes];
        let layers = &self.pieces[piece].slices;
        let is_whole = |(domains, size): &(Vec<u32>, u32)| {
            let mut sums: BTreeMap<u32, u32> = BTreeMap::new();
            for (domain, count) in domains.iter().zip(placed).filter(|(_, count)| **count > 0) {
                *sums.entry(*domain).or_default() += count;
            }
            sums.values().all(|sum| sum.is_multiple_of(*size))
        };
        let (whole, looked_at) = (layers.iter().all(is_whole), nodes * layers.len());
        self.spend(looked_at);
        whole
    }

    // --- the arrays ----------------------------------------------------------------------------

    fn region(&self, piece: usize) -> &[usize] {
        let choice = self.choice_of[piece];
        &self.choices[choice].regions[self.chosen[choice]]
    }

    /// Nodes of the piece's region that take at least one more of its pods, and how many.
    fn rooms(&mut self, piece: usize) -> Vec<(usize, u32)> {
        let choice = self.choice_of[piece];
        self.rooms_in(piece, choice, self.chosen[choice])
    }

    fn rooms_in(&mut self, piece: usize, choice: usize, region: usize) -> Vec<(usize, u32)> {
        let nodes = &self.choices[choice].regions[region];
        let looked_at = nodes.len();
        let rooms = nodes.iter().map(|node| (*node, self.fits_uncounted(piece, *node)));
        let rooms = rooms.filter(|(_, pods)| *pods > 0).collect();
        self.spend(looked_at);
        rooms
    }

    fn spend(&mut self, work: usize) {
        self.work = self.work.saturating_sub(work as u64);
    }

    fn fits(&mut self, piece: usize, node: usize) -> u32 {
        self.spend(1);
        self.fits_uncounted(piece, node)
    }

    fn fits_uncounted(&self, piece: usize, node: usize) -> u32 {
        let piece = &self.pieces[piece];
        if !piece.allowed[node] {
            return 0;
        }
        let free = &self.free[node * self.resources..];
        let most = piece.requests.iter().map(|(resource, amount)| free[*resource].max(0) / amount).min();
        u32::try_from(most.unwrap_or(0)).unwrap_or(u32::MAX)
    }

    fn put(&mut self, piece: usize, node: usize, count: u32) {
        self.placed[piece * self.nodes.len() + node] += count;
        for (resource, amount) in &self.pieces[piece].requests {
            self.free[node * self.resources + resource] -= amount * Amount::from(count);
        }
    }

    fn lift(&mut self, piece: usize, node: usize, count: u32) {
        self.placed[piece * self.nodes.len() + node] -= count;
        for (resource, amount) in &self.pieces[piece].requests {
            self.free[node * self.resources + resource] += amount * Amount::from(count);
        }
    }

    fn clear(&mut self) {
        let nodes = self.nodes.len();
        self.moves.clear();
        self.spend(self.placed.len() / 8);
        for at in 0..self.placed.len() {
            if self.placed[at] > 0 {
                self.lift(at / nodes, at % nodes, self.placed[at]);
            }
        }
    }

    fn shift(&mut self, step: Move) {
        match step.there {
            true => self.put(step.piece, step.node, step.count),
            false => self.lift(step.piece, step.node, step.count),
        }
        self.moves.push(step);
    }

    fn move_back(&mut self, len: usize) {
        while self.moves.len() > len {
            let Move { piece, node, count, there } = self.moves.pop().expect("longer than len");
            match there {
                true => self.lift(piece, node, count),
                false => self.put(piece, node, count),
            }
        }
    }

    fn taken(&self) -> Vec<Taken> {
        let mut all = vec![Taken::new(); self.parts];
        for (at, &count) in self.placed.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (piece, node) = (at / self.nodes.len(), at % self.nodes.len());
            all[self.pieces[piece].part].push((self.nodes[node], count));
        }
        all
    }
}
