//! Numbers in reasons grow old: a gang that lacks two GPUs may lack three a moment later, and sleeps
//! on, because that helps nobody. Some seconds after such a change the gangs concerned are given
//! the numbers as they are: a few at a time, the first of the queues first. The kind of a reason is
//! never left to this, and nothing happens while nothing changes.

use std::collections::BTreeSet;

use super::search::NoAnswer;
use super::wanted::Wanted;
use crate::engine::Engine;
use crate::event::Millis;
use crate::place::place;
use crate::queue::{Turn, WantIx};
use crate::reason::Reason;

/// How old numbers may be.
const RENEW_AFTER: Millis = 5_000;
/// How many wants get new numbers at a time, the first in the order of their gangs: an upper bound
/// for what this adds to a decision, some ten microseconds each.
const RENEWED_MAX: usize = 8;
/// The others follow after this pause, in a decision that has nothing better to do. What is written in the end is bounded far below this rate.
const RENEW_PAUSE: Millis = 250;

/// Which numbers are old.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stale {
    /// How far the changes of the nodes are in the numbers, but for `nodes_moved`.
    nodes_seen: u64,
    /// Some changed while `left` was worked off: not all of the numbers have that in them.
    nodes_moved: bool,
    /// When some are to be renewed.
    due: Option<Millis>,
    /// Wants whose numbers were old enough and are not renewed yet; some may be gone since.
    left: BTreeSet<WantIx>,
}

impl Stale {
    /// When numbers are to be renewed.
    pub(crate) fn due(&self) -> Option<Millis> {
        self.due
    }
}

impl Engine {
    /// Notes whether anything moved that a reason has in numbers.
    pub(super) fn note_stale_numbers(&mut self, now: Millis) {
        let waits = !self.waiting.is_empty();
        let index = self.waiting.certificates();
        let moved = self.stale.nodes_moved || self.stale.nodes_seen != self.cluster.changes_end();
        let nodes = moved && index.is_short_of_places();
        if waits && self.stale.due.is_none() && (nodes || !index.moved().is_empty()) {
            self.stale.due = Some(now.saturating_add(RENEW_AFTER));
        }
    }

    /// Renews the numbers of reasons that are old enough. Something urgent goes first: they wait
    /// for the next decision then, but not for ever.
    pub(super) fn renew_numbers(&mut self, urgent: bool, now: Millis) {
        let patience = if urgent { RENEW_AFTER } else { 0 };
        if self.stale.due.is_none_or(|due| due.saturating_add(patience) > now) {
            return;
        }
        self.stale.nodes_moved |= self.stale.nodes_seen != self.cluster.changes_end();
        let mut old = std::mem::take(&mut self.stale.left);
        if old.is_empty() {
            old = self.waiting.certificates().take_moved();
            if std::mem::take(&mut self.stale.nodes_moved) {
                old.extend(self.waiting.certificates().short_of_places());
            }
        }
        let turn = |want: WantIx| Some((self.waiting.sleeper(want)?.clone(), want));
        let mut first: Vec<(Turn, WantIx)> = old.into_iter().filter_map(turn).collect();
        first.sort();
        let later = first.split_off(first.len().min(RENEWED_MAX));
        for (turn, want) in first {
            match self.ask_again(&turn, want, now) {
                Some(no) => self.certify(want, no),
                // Its certificate should have been falsified; whoever looks at it now finds out.
                None => self.waiting.wake(want),
            }
        }
        self.stale.left = later.into_iter().map(|(_, want)| want).collect();
        self.stale.due = (!self.stale.left.is_empty()).then(|| now.saturating_add(RENEW_PAUSE));
        // Searching tries things out on the nodes, which is no change of them.
        self.stale.nodes_seen = self.cluster.changes_end();
    }

    fn ask_again(&mut self, turn: &Turn, want: WantIx, now: Millis) -> Option<NoAnswer> {
        match self.waiting.ask(want).clone() {
            Wanted::Start(start) => self.answer_in_turn(turn, &start, now).err(),
            Wanted::Places(request) => {
                let problems = place(&mut self.cluster, &request).err()?;
                Some(self.no_places_for(&request, problems))
            }
            Wanted::More(growth) => self.no_room_for_more(&growth),
        }
    }
}

impl NoAnswer {
    /// For a reason that ends only when the gang's objects change.
    pub(super) fn of(reason: Reason) -> Self {
        Self { reason, blockers: Default::default(), shortages: Default::default(), unmet: None }
    }

    /// For lack of places alone.
    pub(super) fn of_places(reason: Reason, request: crate::place::PlaceRequest) -> Self {
        Self { reason, blockers: Default::default(), shortages: [request].into(), unmet: None }
    }
}
