//! All ways to put the pods of a small gang, one after the other. What was put where decides what
//! follows, whatever the order: ways that come to the same are followed once.

use std::collections::BTreeSet;

use super::{Start, Tries};
use crate::cluster::NodeIx;

/// Gangs of more pods have too many ways.
const PODS_MAX: u64 = 24;
/// Nodes among which everything is tried.
const NODES_MAX: usize = 64;

/// Whether there is a way from this start, which is taken then; `None`: that is not known.
pub(super) fn exhaust(tries: &mut Tries, start: &Start, work: &mut u64) -> Option<bool> {
    tries.clear();
    let parts = tries.rules.parts.len();
    let pods: u64 = tries.rules.parts.iter().map(|part| u64::from(part.count)).sum();
    let nodes: Vec<Vec<NodeIx>> = (0..parts).map(|part| tries.nodes_of(part, start).collect()).collect();
    if pods > PODS_MAX || nodes.iter().any(|nodes| nodes.len() > NODES_MAX) {
        return None;
    }
    let left = tries.rules.parts.iter().map(|part| part.count).collect();
    let mut ways = Ways { nodes, left, seen: BTreeSet::new() };
    let found = ways.follow(tries, work);
    match found {
        true => Some(true),
        false if *work > 0 => Some(false),
        false => None,
    }
}

struct Ways {
    nodes: Vec<Vec<NodeIx>>,
    left: Vec<u32>,
    seen: BTreeSet<Vec<u8>>,
}

impl Ways {
    fn follow(&mut self, tries: &mut Tries, work: &mut u64) -> bool {
        if self.left.iter().all(|left| *left == 0) {
            return true;
        }
        if !self.is_new(tries) || !self.is_hopeful(tries, work) {
            return false;
        }
        for part in 0..self.left.len() {
            if self.left[part] == 0 {
                continue;
            }
            for at in 0..self.nodes[part].len() {
                if *work == 0 {
                    return false;
                }
                *work -= 1;
                let node = self.nodes[part][at];
                if !tries.rules.may_sit(part, node) {
                    continue;
                }
                tries.put(part, node);
                self.left[part] -= 1;
                if self.follow(tries, work) {
                    return true;
                }
                self.left[part] += 1;
                tries.take_back();
            }
        }
        false
    }

    fn is_new(&mut self, tries: &Tries) -> bool {
        let placed = |(part, nodes): (usize, &Vec<NodeIx>)| {
            nodes.iter().map(|node| tries.rules.placed(part, *node) as u8).collect::<Vec<u8>>()
        };
        self.seen.insert(self.nodes.iter().enumerate().flat_map(placed).collect())
    }

    /// Whether each part alone still finds room.
    fn is_hopeful(&self, tries: &Tries, work: &mut u64) -> bool {
        let room = |part: usize| {
            let nodes = self.nodes[part].iter();
            nodes.map(|node| u64::from(tries.rules.room(part, *node))).sum::<u64>()
        };
        *work = work.saturating_sub(self.nodes.iter().map(|nodes| nodes.len() as u64).sum());
        (0..self.left.len()).all(|part| room(part) >= u64::from(self.left[part]))
    }
}
