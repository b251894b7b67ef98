//! Who comes first when the pods of several groups come mixed up?
//!
//! A group can be decided when its last pod is there. If two are created at once, the younger may have its
//! last pod a few milliseconds before the older, and would take the room that is the older one's by age. So
//! the younger stands aside while pods of an older one of its line are still coming in: until that one can be
//! decided, but no longer than a pause after its last pod, and no longer than a while after its first one.
//! A group that stays incomplete stops nobody.

use std::collections::BTreeMap;

use crate::engine::Engine;
use crate::event::{Gang, GangId, Millis};
use crate::queue::{LineKey, Turn};
use crate::reason::{NotYet, Reason};

/// How long after its last pod a group counts as coming in. Clients create pods within milliseconds of each
/// other; whoever takes longer does not create them at once.
const PAUSE: Millis = 200;
/// How long after its first pod it does at most.
const WHILE: Millis = 2_000;

/// Groups whose pods come in, and who stands aside for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arriving {
    groups: BTreeMap<LineKey, BTreeMap<Turn, Arrival>>,
    /// Where each of them is noted.
    places: BTreeMap<GangId, (LineKey, Turn)>,
    /// Who stands aside, and in which line that is.
    aside: BTreeMap<GangId, LineKey>,
}

#[derive(Clone, Debug)]
struct Arrival {
    pods: u32,
    first: Millis,
    last: Millis,
}

impl Arrival {
    fn until(&self) -> Millis {
        self.last.saturating_add(PAUSE).min(self.first.saturating_add(WHILE))
    }
}

impl Arriving {
    /// Until when a gang of this turn stands aside; `None`: it need not.
    fn older_until(&self, line: &LineKey, turn: &Turn, now: Millis) -> Option<Millis> {
        let older = self.groups.get(line)?.range(..turn).map(|(_, arrival)| arrival.until());
        older.filter(|until| *until > now).max()
    }

    /// Whether a gang stands aside.
    pub(crate) fn has_aside(&self, id: &GangId) -> bool {
        self.aside.contains_key(id)
    }

    fn come(&mut self, line: LineKey, turn: Turn, pods: u32, now: Millis) {
        let place = (line, turn);
        let before = self.places.get(&place.1.id).filter(|before| **before == place);
        if before.is_none() {
            self.gone(&place.1.id);
        }
        let new = Arrival { pods, first: now, last: now };
        let at = self.groups.entry(place.0.clone()).or_default().entry(place.1.clone()).or_insert(new);
        if at.pods < pods {
            at.last = now;
        }
        at.pods = pods;
        self.places.insert(place.1.id.clone(), place);
    }

    /// Its line, if it came in until now.
    fn gone(&mut self, id: &GangId) -> Option<LineKey> {
        let (line, turn) = self.places.remove(id)?;
        let groups = self.groups.get_mut(&line)?;
        groups.remove(&turn);
        if groups.is_empty() {
            self.groups.remove(&line);
        }
        Some(line)
    }
}

/// The pods that a group has, if it could be decided had it all.
fn pods_of_incomplete(fact: &Gang, reason: &Reason) -> Option<u32> {
    let Reason::NotYet(NotYet::MembersMissing(_) | NotYet::WorkloadBehind) = reason else { return None };
    let pods = fact.pod_sets.iter().fold(0u32, |sum, set| sum.saturating_add(set.count));
    (fact.minima.is_some() && pods > 0).then_some(pods)
}

impl Engine {
    /// Whether a gang that could be decided stands aside, and until when.
    pub(super) fn stands_aside(&mut self, line: &LineKey, turn: &Turn, now: Millis) -> Option<Millis> {
        let until = self.arriving.older_until(line, turn, now)?;
        self.arriving.aside.insert(turn.id.clone(), line.clone());
        Some(until)
    }

    /// Notes that a gang cannot be decided, for this reason: perhaps its pods are coming in.
    pub(super) fn note_arrival(&mut self, id: &GangId, reason: &Reason, now: Millis) {
        let fact = self.gangs.get(id).and_then(|state| state.fact.as_ref());
        let Some((fact, pods)) = fact.and_then(|fact| Some((fact, pods_of_incomplete(fact, reason)?))) else {
            return self.note_arrived(id, now);
        };
        let (line, turn) = (self.line_for(fact), Turn::of(fact));
        self.arriving.aside.remove(id);
        self.arriving.come(line, turn, pods, now);
    }

    /// It comes in no more: it is there, or gone. Who stood aside for it looks again.
    pub(crate) fn note_arrived(&mut self, id: &GangId, now: Millis) {
        self.arriving.aside.remove(id);
        let Some(line) = self.arriving.gone(id) else { return };
        let aside = self.arriving.aside.iter().filter(|(_, at)| **at == line);
        for other in aside.map(|(other, _)| other.clone()).collect::<Vec<_>>() {
            let next = self.stand(&other, now);
            self.look_again(&other, next);
        }
    }
}
