//! Not all pods fit, but perhaps enough of them.
//!
//! Which pod sets give up pods is a choice, and every choice is a question of its own. First come a
//! few orders of importance, each of which keeps as many as it can, the minima of roles first. If
//! none of them keeps enough, the smallest gangs that would do are tried one by one: if all of them
//! were, and each has no place, then that is the answer.

use std::cmp::Reverse;

use super::Taken;
use super::bundle::{Bundle, Kin, Merged};
use super::part::Part;
use super::search::whole;
use crate::cluster::Cluster;
use crate::minima::Minima;

/// Smallest gangs that are tried. With one pod set for each role there is one, unless the minimum
/// of the whole leaves a choice; each costs a placement.
const SMALLEST_TRIED: usize = 64;

/// Whether enough of the pods fit.
pub(super) enum Fewer {
    /// These do: pods per kin, and nodes per part.
    Found(Vec<u32>, Vec<Taken>),
    /// There is no way.
    Impossible,
    /// None was found, but not everything was tried.
    GaveUp,
}

/// As many pods as the search finds places for, if they meet the minima. The order that keeps most
/// pods wins (the first of equals: pod sets are kept in the order of the request).
pub(super) fn fewer(
    cluster: &mut Cluster,
    merged: &Merged,
    bundles: &[Bundle],
    minima: &Minima,
    work: &mut u64,
) -> Fewer {
    let kins = merged.kins();
    let room = |kin: &Kin| {
        let part = &merged.parts[kin.part];
        let room = part.view(cluster).map_or(0, |view| part.fitting(&view));
        u32::try_from(room).unwrap_or(u32::MAX).min(kin.count)
    };
    let alone: Vec<u32> = kins.iter().map(room).collect();
    if !minima.are_met(by_role(&kins, &alone)) {
        return Fewer::Impossible;
    }
    let mut choice =
        Choice { cluster, parts: &merged.parts, bundles, kins, alone, minima, work, proven: true };
    let mut best: Option<(u64, Vec<u32>, Vec<Taken>)> = None;
    for order in choice.orders() {
        let Some((counts, taken)) = choice.keep_most(&order) else { continue };
        let total = counts.iter().map(|count| u64::from(*count)).sum();
        if best.as_ref().is_none_or(|(most, _, _)| total > *most) {
            best = Some((total, counts, taken));
        }
    }
    let found = best.map(|(_, counts, taken)| (counts, taken)).or_else(|| choice.any_smallest());
    match found {
        Some((counts, taken)) => Fewer::Found(counts, taken),
        None if choice.proven => Fewer::Impossible,
        None => Fewer::GaveUp,
    }
}

/// How many pods are kept, by role.
fn by_role<'k>(
    kins: &'k [Kin],
    counts: &'k [u32],
) -> impl Iterator<Item = (Option<&'k crate::event::Name>, u32)> {
    kins.iter().map(|kin| kin.role.as_ref()).zip(counts.iter().copied())
}

/// What may be given up, and what must not.
struct Choice<'a> {
    cluster: &'a mut Cluster,
    parts: &'a [Part],
    bundles: &'a [Bundle],
    kins: Vec<Kin>,
    /// Per kin, how many pods fit if nobody else is there.
    alone: Vec<u32>,
    minima: &'a Minima,
    work: &'a mut u64,
    /// Every "no" so far was one.
    proven: bool,
}

impl Choice<'_> {
    fn orders(&self) -> Vec<Vec<usize>> {
        let in_turn: Vec<usize> = (0..self.kins.len()).collect();
        let backwards: Vec<usize> = in_turn.iter().rev().copied().collect();
        let mut roomiest = in_turn.clone();
        roomiest.sort_by_key(|at| (Reverse(self.alone[*at]), *at));
        let mut orders = vec![in_turn, backwards, roomiest];
        if self.kins.len() == 1 {
            orders.truncate(1);
        }
        orders
    }

    /// Places for so many pods of each kin.
    fn places(&mut self, counts: &[u32]) -> Option<Vec<Taken>> {
        let mut parts = self.parts.to_vec();
        parts.iter_mut().for_each(|part| part.count = 0);
        for (kin, count) in self.kins.iter().zip(counts) {
            parts[kin.part].count += count;
        }
        match whole(self.cluster, &parts, self.bundles, self.work) {
            Ok(taken) => Some(taken),
            Err(problems) => {
                self.proven &= problems.iter().all(|(_, problem)| !problem.unproven);
                None
            }
        }
    }

    /// What each role must have, then as many of each kin in turn as still fit beside those before
    /// it; `None` if that is not enough.
    fn keep_most(&mut self, order: &[usize]) -> Option<(Vec<u32>, Vec<Taken>)> {
        let mut kept = (vec![0; self.kins.len()], vec![Taken::new(); self.parts.len()]);
        let mut needed = self.minima.roles.clone();
        for &at in order {
            let Some(left) = self.kins[at].role.as_ref().and_then(|role| needed.get_mut(role)) else {
                continue;
            };
            let whole = (*left).checked_next_multiple_of(self.unit(at)).unwrap_or(u32::MAX);
            let most = whole.min(self.alone[at]);
            let mut rest = *left;
            self.raise(&mut kept, at, most);
            rest = rest.saturating_sub(kept.0[at]);
            *needed.get_mut(self.kins[at].role.as_ref()?)? = rest;
        }
        if needed.values().any(|left| *left > 0) {
            return None;
        }
        order.iter().for_each(|at| self.raise(&mut kept, *at, self.alone[*at]));
        self.minima.are_met(by_role(&self.kins, &kept.0)).then_some(kept)
    }

    /// Pods of a kin are kept in multiples of this: slices come whole.
    fn unit(&self, at: usize) -> u32 {
        self.parts[self.kins[at].part].grain.whole()
    }

    /// Keeps as many pods of a kin as fit beside the others that are kept, up to `most`.
    fn raise(&mut self, (counts, taken): &mut (Vec<u32>, Vec<Taken>), at: usize, most: u32) {
        let unit = self.unit(at);
        let (mut low, mut high) = (counts[at] / unit, most / unit);
        while low < high {
            let middle = high - (high - low) / 2;
            counts[at] = middle * unit;
            match self.places(counts) {
                Some(places) => (low, *taken) = (middle, places),
                None => high = middle - 1,
            }
        }
        counts[at] = low * unit;
    }

    /// The first of the smallest gangs that has places, and what fits beside it.
    fn any_smallest(&mut self) -> Option<(Vec<u32>, Vec<Taken>)> {
        if self.kins.len() == 1 {
            // Its order has asked for each number of pods already.
            return None;
        }
        let mut smallest = Smallest { found: Vec::new(), all: true };
        smallest.add(self, &mut vec![0; self.kins.len()], 0, self.minima.total());
        // A gang of whole slices may have to be larger than the smallest one.
        self.proven &= smallest.all && self.parts.iter().all(|part| part.grain.is_fine());
        for counts in smallest.found {
            if let Some(taken) = self.places(&counts) {
                let mut kept = (counts, taken);
                (0..self.kins.len()).for_each(|at| self.raise(&mut kept, at, self.alone[at]));
                return Some(kept);
            }
        }
        None
    }
}

/// The smallest gangs that meet the minima.
struct Smallest {
    found: Vec<Vec<u32>>,
    /// There are no others.
    all: bool,
}

impl Smallest {
    /// Adds those that begin with the counts chosen before this kin, with so many pods `left` for it
    /// and the ones after it. What is chosen leaves room for what must follow, so each choice ends
    /// with a gang.
    fn add(&mut self, choice: &Choice<'_>, counts: &mut Vec<u32>, at: usize, left: u32) {
        if self.found.len() >= SMALLEST_TRIED {
            self.all = false;
            return;
        }
        let Some(kin) = choice.kins.get(at) else {
            self.found.push(counts.clone());
            return;
        };
        let needed = choice.minima.beside(by_role(&choice.kins, counts)).roles;
        let own = kin.role.as_ref().and_then(|role| needed.get(role)).copied().unwrap_or(0);
        let others: u32 = needed.values().sum::<u32>() - own;
        let later = |of_role: bool| {
            let later =
                (at + 1..choice.kins.len()).filter(|at| !of_role || choice.kins[*at].role == kin.role);
            later.fold(0, |sum: u32, at| sum.saturating_add(choice.alone[at]))
        };
        let least = left.saturating_sub(later(false)).max(own.saturating_sub(later(true)));
        let most = choice.alone[at].min(left.saturating_sub(others));
        for here in (least..=most).rev() {
            counts[at] = here;
            self.add(choice, counts, at + 1, left - here);
        }
        counts[at] = 0;
    }
}
