//! The cheapest victims: those of lower priority rather than others, then few, then those that lose
//! little work, then new ones.
//!
//! For few candidates every set that could be the cheapest is looked at. For many, those that free places
//! where it costs least come first, then whoever is cheap, and who turns out not to be needed is spared,
//! the dearest first; the best of a dozen around that set is the answer.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::classic::Field;
use super::{Candidate, Room};
use crate::event::{GangId, Millis};

/// Up to this many candidates the cheapest set is looked for among all sets: 4,096 of them, most of which
/// need no look.
const EXACT_MAX: usize = 12;

/// How often the search among all sets may ask for places. Each question costs a placement (some 20 µs).
const ROOM_ASKED_MAX: u32 = 1_500;

/// The same around a set that was found among many candidates.
const ROOM_ASKED_NEAR_MAX: u32 = 48;

/// Up to this many candidates a second way is tried to begin with: its work grows with their square.
const SECOND_LOOK_MAX: usize = 64;

/// What it costs to evict some gangs. Less is better.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cost {
    /// Highest first: what is compared is the highest priority, how many have it, the next one, ...
    priorities: Vec<i32>,
    work: u128,
    /// Newest first.
    reserved_at: Vec<Reverse<Millis>>,
    ids: Vec<GangId>,
}

impl Field<'_> {
    /// What it costs to evict these. Who leaves already costs nothing.
    pub(super) fn cost(&self, entries: &[usize]) -> Cost {
        let staying = entries.iter().map(|entry| &self.candidates[self.entries[*entry].at]);
        let staying: Vec<_> = staying.filter(|candidate| !candidate.leaving).collect();
        let mut priorities: Vec<i32> = staying.iter().map(|candidate| candidate.priority).collect();
        priorities.sort_unstable_by_key(|priority| Reverse(*priority));
        let mut reserved_at: Vec<_> =
            staying.iter().map(|candidate| Reverse(candidate.reserved_at)).collect();
        reserved_at.sort_unstable();
        let mut ids: Vec<GangId> = staying.iter().map(|candidate| candidate.id.clone()).collect();
        ids.sort_unstable();
        let work = staying.iter().map(|candidate| u128::from(candidate.work)).sum();
        Cost { priorities, work, reserved_at, ids }
    }

    /// Cheap ones first.
    fn by_cost(&self, mut entries: Vec<usize>) -> Vec<usize> {
        let candidate = |entry: usize| &self.candidates[self.entries[entry].at];
        let key = |entry: usize| {
            let Candidate { leaving, priority, work, reserved_at, .. } = candidate(entry);
            (!leaving, *priority, *work, Reverse(*reserved_at))
        };
        // Names are compared only where nothing else differs.
        entries.sort_by(|one, other| {
            key(*one).cmp(&key(*other)).then_with(|| candidate(*one).id.cmp(&candidate(*other).id))
        });
        entries
    }
}

/// The cheapest allowed victims with which the preemptor has quota and places; with quota it may
/// borrow or not. Entries, in order.
pub(super) fn victims(field: &mut Field<'_>, borrowing: bool, room: &mut dyn Room) -> Option<Vec<usize>> {
    let legal = longest_legal(field, borrowing);
    let mut greedy = greedy(field, borrowing, &legal, room);
    let usable = (0..field.entries.len()).filter(|entry| field.is_valid(*entry, borrowing));
    let usable: Vec<usize> = usable.collect();
    if (EXACT_MAX + 1..=SECOND_LOOK_MAX).contains(&usable.len()) {
        let other = cheap_first(field, borrowing, &usable, room);
        let cheaper =
            other.filter(|other| greedy.as_ref().is_none_or(|one| field.cost(other) < field.cost(one)));
        greedy = cheaper.or(greedy);
    }
    let (pool, asks) = match (&greedy, usable.len()) {
        (_, ..=EXACT_MAX) => (usable, ROOM_ASKED_MAX),
        (None, _) => return None,
        (Some(near), _) if near.len() >= EXACT_MAX => return greedy,
        (Some(near), _) => {
            let others = field.by_cost(legal).into_iter().filter(|entry| !near.contains(entry));
            (near.iter().copied().chain(others).take(EXACT_MAX).collect(), ROOM_ASKED_NEAR_MAX)
        }
    };
    let best = Sets::new(field, borrowing, room, pool, asks).search(greedy);
    best.map(|victims| without_needless_leavers(field, borrowing, room, victims))
}

/// Whether all of these may go, in their order: each is still beyond its queue's quota when its turn comes.
fn is_legal(field: &mut Field<'_>, borrowing: bool, members: &[usize]) -> bool {
    let mut gone = 0;
    for entry in members {
        if !field.is_valid(*entry, borrowing) {
            break;
        }
        field.remove(*entry);
        gone += 1;
    }
    members[..gone].iter().for_each(|entry| field.put_back(*entry));
    gone == members.len()
}

/// Whoever is cheap and may go with those before him, until it suffices; then spared who is not needed. Of some
/// queue this may take others than the order in which their right to be there ends.
fn cheap_first(
    field: &mut Field<'_>,
    borrowing: bool,
    usable: &[usize],
    room: &mut dyn Room,
) -> Option<Vec<usize>> {
    let mut legal: Vec<usize> = Vec::new();
    for entry in field.by_cost(usable.to_vec()) {
        let at = legal.partition_point(|known| *known < entry);
        legal.insert(at, entry);
        if !is_legal(field, borrowing, &legal) {
            legal.remove(at);
        }
    }
    let order = field.by_cost(legal);
    let enough = shortest(field, borrowing, &order, 1, room)?;
    Some(spare(field, borrowing, room, order[..enough].to_vec()))
}

/// Entries in order as long as each is allowed after the ones before it.
fn longest_legal(field: &mut Field<'_>, borrowing: bool) -> Vec<usize> {
    let mut legal = Vec::new();
    for entry in 0..field.entries.len() {
        if field.is_valid(entry, borrowing) {
            field.remove(entry);
            legal.push(entry);
        }
    }
    legal.iter().for_each(|entry| field.put_back(*entry));
    legal
}

/// Who frees places cheaply, then who is cheap, until it suffices; then spared who is not needed.
fn greedy(
    field: &mut Field<'_>,
    borrowing: bool,
    legal: &[usize],
    room: &mut dyn Room,
) -> Option<Vec<usize>> {
    let by_cost = field.by_cost(legal.to_vec());
    let mut of_position: BTreeMap<usize, usize> = BTreeMap::new();
    by_cost.iter().for_each(|entry| _ = of_position.insert(field.entries[*entry].at, *entry));
    let suggested = room.suggest(&field.positions(&by_cost)).unwrap_or_default();
    let mut order: Vec<usize> = suggested.iter().filter_map(|at| of_position.get(at).copied()).collect();
    let first = order.len();
    let known: std::collections::BTreeSet<usize> = order.iter().copied().collect();
    order.extend(by_cost.into_iter().filter(|entry| !known.contains(entry)));
    let enough = shortest(field, borrowing, &order, first, room)?;
    let chosen = field.by_cost(order[..enough].to_vec());
    Some(spare(field, borrowing, room, chosen))
}

/// How many of these, in order, suffice; at least `first`. Looked for in steps that double, so that the
/// work is that of the answer and not that of all candidates.
fn shortest(
    field: &mut Field<'_>,
    borrowing: bool,
    order: &[usize],
    first: usize,
    room: &mut dyn Room,
) -> Option<usize> {
    let mut suffices = |count: usize| suffice(field, borrowing, &order[..count], room);
    let (mut low, mut step) = (first.max(1).min(order.len()), 1);
    if order.is_empty() {
        return None;
    }
    if suffices(low) {
        return Some(low);
    }
    let mut high = loop {
        let next = (low + step).min(order.len());
        if low == next {
            return None;
        }
        if suffices(next) {
            break next;
        }
        (low, step) = (next, step * 2);
    };
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if suffices(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// Whether it suffices when these have left.
fn suffice(field: &mut Field<'_>, borrowing: bool, gone: &[usize], room: &mut dyn Room) -> bool {
    gone.iter().for_each(|entry| field.remove(*entry));
    let quota = field.quota_suffices(borrowing);
    gone.iter().for_each(|entry| field.put_back(*entry));
    quota && room.suffices(&field.positions(gone))
}

/// Without those that are not needed, looked at from the dearest, whole halves at a time: few are needed of
/// many.
fn spare(field: &mut Field<'_>, borrowing: bool, room: &mut dyn Room, chosen: Vec<usize>) -> Vec<usize> {
    let mut kept: Vec<usize> = chosen;
    // Ranges of `kept`, cheapest first in it; the last to be looked at lies at the bottom.
    let mut ranges = vec![(0, kept.len())];
    while let Some((from, to)) = ranges.pop() {
        if from == to {
            continue;
        }
        let rest: Vec<usize> = kept[..from].iter().chain(&kept[to..]).copied().collect();
        if suffice(field, borrowing, &rest, room) {
            // What lies behind was looked at already, so positions before it do not move.
            kept = rest;
        } else if to - from > 1 {
            let middle = from + (to - from) / 2;
            ranges.push((from, middle));
            ranges.push((middle, to));
        }
    }
    kept
}

/// Whoever leaves anyway costs nothing, but is not waited for in vain.
fn without_needless_leavers(
    field: &mut Field<'_>,
    borrowing: bool,
    room: &mut dyn Room,
    mut victims: Vec<usize>,
) -> Vec<usize> {
    let leaving = |field: &Field<'_>, entry: usize| field.candidates[field.entries[entry].at].leaving;
    for at in (0..victims.len()).rev() {
        if leaving(field, victims[at]) {
            let mut rest = victims.clone();
            rest.remove(at);
            if suffice(field, borrowing, &rest, room) {
                victims = rest;
            }
        }
    }
    victims
}

/// A set of entries of a pool, by bits.
type Set = u16;

/// The search among all sets of a pool.
struct Sets<'f, 'c, 'r> {
    field: &'f mut Field<'c>,
    borrowing: bool,
    room: &'r mut dyn Room,
    /// Dearest first.
    pool: Vec<usize>,
    asks_left: u32,
    known: BTreeMap<Set, bool>,
    best: Option<(Cost, Vec<usize>)>,
}

impl<'f, 'c, 'r> Sets<'f, 'c, 'r> {
    fn new(
        field: &'f mut Field<'c>,
        borrowing: bool,
        room: &'r mut dyn Room,
        pool: Vec<usize>,
        asks_left: u32,
    ) -> Self {
        let mut pool = field.by_cost(pool);
        pool.reverse();
        Self { field, borrowing, room, pool, asks_left, known: BTreeMap::new(), best: None }
    }

    fn search(mut self, start: Option<Vec<usize>>) -> Option<Vec<usize>> {
        self.best = start.map(|start| (self.field.cost(&start), start));
        self.look(0, 0);
        self.best.map(|(_, mut victims)| {
            victims.sort_unstable();
            victims
        })
    }

    /// All sets that hold `chosen`, and of the pool from `from` on whatever helps.
    fn look(&mut self, from: usize, chosen: Set) {
        let all: Set = self.pool.iter().enumerate().fold(0, |set, (at, _)| set | 1 << at);
        let rest = all & !((1 << from) - 1);
        if self.asks_left == 0 || !self.is_legal(chosen) || !self.suffices(chosen | rest) {
            return;
        }
        let members = self.members(chosen);
        let cost = self.field.cost(&members);
        // More members only make it dearer.
        if self
            .best
            .as_ref()
            .is_some_and(|(best, _)| (&cost.priorities, cost.work) > (&best.priorities, best.work))
        {
            return;
        }
        if self.suffices(chosen) {
            if self.best.as_ref().is_none_or(|(best, _)| cost < *best) {
                self.best = Some((cost, members));
            }
            return;
        }
        if from < self.pool.len() {
            self.look(from + 1, chosen);
            self.look(from + 1, chosen | 1 << from);
        }
    }

    /// Entries in order.
    fn members(&self, set: Set) -> Vec<usize> {
        let pool = self.pool.iter().enumerate();
        let mut members: Vec<usize> =
            pool.filter(|(at, _)| set & 1 << at != 0).map(|(_, entry)| *entry).collect();
        members.sort_unstable();
        members
    }

    /// Whether each is still beyond its queue's quota when its turn to leave comes.
    fn is_legal(&mut self, set: Set) -> bool {
        let members = self.members(set);
        is_legal(self.field, self.borrowing, &members)
    }

    fn suffices(&mut self, set: Set) -> bool {
        if let Some(known) = self.known.get(&set) {
            return *known;
        }
        let members = self.members(set);
        self.asks_left = self.asks_left.saturating_sub(1);
        let suffices = suffice(self.field, self.borrowing, &members, self.room);
        self.known.insert(set, suffices);
        suffices
    }
}
