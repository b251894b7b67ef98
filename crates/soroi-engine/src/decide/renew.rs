//! Numbers in reasons grow old: a gang that lacks two GPUs may lack three a moment later, and sleeps
//! on, because that helps nobody. Some seconds after such a change the gangs concerned, the first
//! of the queues first, are given the numbers as they are. The kind of a reason is never left to
//! this, and nothing happens while nothing changes.

use super::search::NoAnswer;
use super::wanted::Wanted;
use crate::engine::Engine;
use crate::event::{GangId, Millis};
use crate::place::place;
use crate::queue::{Turn, WantIx};
use crate::reason::Reason;

/// How old numbers may be (DESIGN section 6, "Reasons without storms").
const RENEW_AFTER: Millis = 5_000;
/// How many wants get new numbers at a time, the first in the order of their gangs: an upper bound
/// for what this costs, some tens of microseconds each. The others keep theirs until something
/// else about them is decided.
const RENEWED_MAX: usize = 64;

/// Which numbers are old.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stale {
    /// How far the changes of the nodes are in the numbers.
    nodes_seen: u64,
    /// Since when some are old.
    since: Option<Millis>,
}

impl Stale {
    /// When the numbers are to be renewed.
    pub(crate) fn due(&self) -> Option<Millis> {
        self.since.map(|since| since.saturating_add(RENEW_AFTER))
    }
}

impl Engine {
    /// Notes whether anything moved that a reason has in numbers.
    pub(super) fn note_stale_numbers(&mut self, now: Millis) {
        let waits = !self.waiting.is_empty();
        let index = self.waiting.certificates();
        let nodes = self.stale.nodes_seen != self.cluster.changes_end() && index.is_short_of_places();
        if waits && self.stale.since.is_none() && (nodes || !index.moved().is_empty()) {
            self.stale.since = Some(now);
        }
    }

    /// Renews the numbers of reasons that are old enough.
    pub(super) fn renew_numbers(&mut self, now: Millis) {
        if self.stale.due().is_none_or(|due| due > now) {
            return;
        }
        let mut old = self.waiting.certificates().take_moved();
        if self.stale.nodes_seen != self.cluster.changes_end() {
            old.extend(self.waiting.certificates().short_of_places());
        }
        let turn = |want: WantIx| Some((self.waiting.turns(want).next()?.clone(), want));
        let mut first: Vec<(Turn, WantIx)> = old.into_iter().filter_map(turn).collect();
        first.sort();
        for (turn, want) in first.into_iter().take(RENEWED_MAX) {
            match self.ask_again(&turn.id, want) {
                Some(no) => self.certify(want, no),
                // Its certificate should have been falsified; whoever looks at it now finds out.
                None => self.waiting.wake(want),
            }
        }
        // Searching tries things out on the nodes, which is no change of them.
        self.stale = Stale { nodes_seen: self.cluster.changes_end(), since: None };
    }

    fn ask_again(&mut self, id: &GangId, want: WantIx) -> Option<NoAnswer> {
        match self.waiting.ask(want).clone() {
            Wanted::Start(start) => self.answer(id, &start).err(),
            Wanted::Places(request) => {
                let problems = place(&mut self.cluster, &request).err()?;
                Some(self.no_places_for(&request, problems))
            }
            Wanted::More(growth) => self.room_for_more(&growth).err(),
        }
    }
}

impl NoAnswer {
    /// For lack of places alone.
    pub(super) fn of_places(reason: Reason, request: crate::place::PlaceRequest) -> Self {
        Self { reason, blockers: Default::default(), shortages: [request].into() }
    }
}
