//! Who is next, and whom could this event help?
//!
//! Gangs that wait stand in *lines*: one per ClusterQueue, one per Volcano Queue, one for gangs
//! without a queue, one for admitted gangs that still want places. Gangs of a line that want the
//! same share a *want*. A want that was decided and cannot be met has a [`Certificate`]: why not,
//! in a form that an event can falsify. It sleeps until then, and all of its gangs with it, so that
//! an event costs work for the wants that it can help, not for the gangs that wait.
//!
//! This module knows order and waiting. It never knows how a want is met.

pub mod certificate;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::event::{Gang, GangId, Millis, Name, QueueingStrategy};
use crate::reason::Reason;

pub use certificate::{Blocker, CapabilityBlocker, Certificate, QuotaBlocker};

/// A gang's turn: larger priority first, then the earlier time, then names and uid, so that two
/// gangs never tie (Kueue orders by uid after the time; names come first here because they are what
/// people see).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    /// Larger first.
    pub priority: Reverse<i32>,
    /// Earlier first.
    pub queued_at: Millis,
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Its identity.
    pub id: GangId,
}

impl Turn {
    /// The turn of a gang.
    pub fn of(gang: &Gang) -> Self {
        Self {
            priority: Reverse(gang.priority),
            queued_at: gang.queued_at,
            namespace: gang.namespace.clone(),
            name: gang.name.clone(),
            id: gang.id.clone(),
        }
    }
}

/// Which line a gang stands in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineKey {
    /// Admitted gangs that hold quota and want places.
    Admitted,
    /// That of a ClusterQueue.
    ClusterQueue(Name),
    /// That of a Volcano Queue, for gangs without a ClusterQueue.
    VolcanoQueue(Name),
    /// Gangs without any queue.
    Free,
}

/// A want, by number. Numbers are used again; they order nothing that can be seen outside.
pub type WantIx = usize;

/// Everybody who waits, with `N` describing what a want asks.
#[derive(Clone, Debug)]
pub struct Waiting<N> {
    lines: BTreeMap<LineKey, Line>,
    /// Lines with somebody who may be decided.
    awake: BTreeSet<LineKey>,
    /// StrictFIFO lines in which somebody came or went.
    moved: BTreeSet<LineKey>,
    wants: Vec<Option<Want<N>>>,
    unused: Vec<WantIx>,
    by_ask: BTreeMap<(LineKey, N), WantIx>,
    /// Where each waiting gang stands.
    stands: BTreeMap<GangId, (Turn, WantIx)>,
    certificates: certificate::Index,
}

#[derive(Clone, Debug, Default)]
struct Line {
    strategy: QueueingStrategy,
    turns: BTreeMap<Turn, WantIx>,
    /// The first gang of each want.
    firsts: BTreeMap<Turn, WantIx>,
    /// Of these, those of wants that are awake.
    heads: BTreeMap<Turn, WantIx>,
}

#[derive(Clone, Debug)]
struct Want<N> {
    line: LineKey,
    ask: N,
    turns: BTreeSet<Turn>,
    certificate: Option<Certificate>,
    /// The reason whose kind all of its gangs were told.
    told: Option<Arc<Reason>>,
}

impl<N> Default for Waiting<N> {
    fn default() -> Self {
        Self {
            lines: BTreeMap::new(),
            awake: BTreeSet::new(),
            moved: BTreeSet::new(),
            wants: Vec::new(),
            unused: Vec::new(),
            by_ask: BTreeMap::new(),
            stands: BTreeMap::new(),
            certificates: certificate::Index::default(),
        }
    }
}

impl<N: Clone + Ord> Waiting<N> {
    /// Puts a gang into a line of this order, or moves it to its new turn or want.
    pub fn join(&mut self, line: LineKey, strategy: QueueingStrategy, turn: Turn, ask: N) {
        if let Some(at) = self.lines.get_mut(&line)
            && at.strategy != strategy
        {
            at.strategy = strategy;
            self.awake.insert(line.clone());
        }
        if let Some((old, want)) = self.stands.get(&turn.id)
            && *old == turn
            && self.want(*want).line == line
            && self.want(*want).ask == ask
        {
            return;
        }
        self.leave(&turn.id.clone());
        let ix = self.want_for(&line, ask);
        self.stands.insert(turn.id.clone(), (turn.clone(), ix));
        let awake = self.want(ix).certificate.is_none();
        if strategy == QueueingStrategy::StrictFifo {
            self.moved.insert(line.clone());
        }
        let at = self.lines.entry(line.clone()).or_default();
        at.strategy = strategy;
        at.turns.insert(turn.clone(), ix);
        let want = self.wants[ix].as_mut().expect("a want in use exists");
        if let Some(first) = want.turns.first() {
            at.firsts.remove(first);
            at.heads.remove(first);
        }
        want.turns.insert(turn);
        let first = want.turns.first().expect("a turn was just inserted");
        at.firsts.insert(first.clone(), ix);
        if awake {
            at.heads.insert(first.clone(), ix);
            self.awake.insert(line);
        }
    }

    /// Takes a gang out of its line.
    pub fn leave(&mut self, id: &GangId) {
        let Some((turn, ix)) = self.stands.remove(id) else { return };
        let want = self.wants[ix].as_mut().expect("a want in use exists");
        let line = self.lines.get_mut(&want.line).expect("a gang stands in a line that exists");
        line.turns.remove(&turn);
        want.turns.remove(&turn);
        let awake = line.heads.remove(&turn).is_some();
        if line.firsts.remove(&turn).is_some()
            && let Some(next) = want.turns.first()
        {
            line.firsts.insert(next.clone(), ix);
            if awake {
                line.heads.insert(next.clone(), ix);
            }
        }
        if line.strategy == QueueingStrategy::StrictFifo {
            // The one who blocked it may be gone; `head` looks again.
            self.awake.insert(want.line.clone());
            self.moved.insert(want.line.clone());
        }
        if want.turns.is_empty() {
            let want = self.wants[ix].take().expect("a want in use exists");
            self.certificates.remove(ix, want.certificate.as_ref());
            self.by_ask.remove(&(want.line.clone(), want.ask));
            self.unused.push(ix);
            self.forget_line_if_empty(&want.line);
        }
    }

    /// The lines in which somebody may be decided now, in key order.
    pub fn awake_lines(&self) -> impl Iterator<Item = &LineKey> {
        self.awake.iter()
    }

    /// Who is to be decided next in a line: the first gang whose want is awake; in a StrictFIFO
    /// line the first gang of all, if it is awake. A line without one goes to sleep.
    pub fn head(&mut self, line: &LineKey) -> Option<(Turn, WantIx)> {
        let at = self.lines.get(line)?;
        let first = at.heads.first_key_value().map(|(turn, ix)| (turn.clone(), *ix));
        let blocked = at.strategy == QueueingStrategy::StrictFifo
            && first.as_ref().map(|(turn, _)| turn) != at.turns.keys().next();
        if blocked || first.is_none() {
            self.awake.remove(line);
            return None;
        }
        first
    }

    /// How many wants that sleep have a gang in the line before this turn. In a StrictFIFO line
    /// nobody passes anybody, so there is none.
    pub fn sleepers_before(&self, line: &LineKey, turn: &Turn) -> usize {
        let Some(at) = self.lines.get(line) else { return 0 };
        at.firsts.range(..turn).count() - at.heads.range(..turn).count()
    }

    /// The first gang of a line, if the line is StrictFIFO: all others wait for it.
    pub fn strict_head(&self, line: &LineKey) -> Option<&Turn> {
        let at = self.lines.get(line).filter(|at| at.strategy == QueueingStrategy::StrictFifo)?;
        at.turns.keys().next()
    }

    /// Of the StrictFIFO lines in which somebody came or went since the last call, the first gang
    /// and the next: who is first is another one perhaps.
    pub fn take_moved_heads(&mut self) -> Vec<GangId> {
        let moved = std::mem::take(&mut self.moved);
        let lines = moved.iter().filter_map(|line| self.lines.get(line));
        lines.flat_map(|line| line.turns.keys().take(2)).map(|turn| turn.id.clone()).collect()
    }

    /// What a want asks.
    pub fn ask(&self, want: WantIx) -> &N {
        &self.want(want).ask
    }

    /// The line that a want stands in.
    pub fn line_of(&self, want: WantIx) -> &LineKey {
        &self.want(want).line
    }

    /// The gangs of a want, in their order.
    pub fn turns(&self, want: WantIx) -> impl Iterator<Item = &Turn> {
        self.want(want).turns.iter()
    }

    /// All gangs of a line, in their order, with their wants.
    pub fn line(&self, line: &LineKey) -> impl Iterator<Item = (&Turn, WantIx)> {
        self.lines.get(line).into_iter().flat_map(|at| at.turns.iter().map(|(turn, ix)| (turn, *ix)))
    }

    /// All lines, in key order.
    pub fn lines(&self) -> impl Iterator<Item = &LineKey> {
        self.lines.keys()
    }

    /// Where a gang stands: its turn and want.
    pub fn stand(&self, id: &GangId) -> Option<(&Turn, WantIx)> {
        self.stands.get(id).map(|(turn, ix)| (turn, *ix))
    }

    /// Whether a gang stands first in its line.
    pub fn is_first(&self, id: &GangId) -> bool {
        let Some((turn, want)) = self.stand(id) else { return false };
        self.lines.get(self.line_of(want)).and_then(|at| at.turns.keys().next()) == Some(turn)
    }

    /// The first gang of a want that sleeps; `None` if it does not, or if there is none of this
    /// number any more.
    pub fn sleeper(&self, want: WantIx) -> Option<&Turn> {
        let want = self.wants.get(want)?.as_ref()?;
        want.turns.first().filter(|_| want.certificate.is_some())
    }

    /// How many gangs wait.
    pub fn len(&self) -> usize {
        self.stands.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.stands.is_empty()
    }

    /// Why a want cannot be met; `None` while that is not decided.
    pub fn certificate(&self, want: WantIx) -> Option<&Certificate> {
        self.want(want).certificate.as_ref()
    }

    /// Notes why a want cannot be met. It sleeps until one of the blockers is falsified.
    pub fn certify(&mut self, ix: WantIx, certificate: Certificate) {
        let want = self.wants[ix].as_mut().expect("a want in use exists");
        self.certificates.remove(ix, want.certificate.as_ref());
        self.certificates.insert(ix, &certificate);
        want.certificate = Some(certificate);
        if let (Some(line), Some(first)) = (self.lines.get_mut(&want.line), want.turns.first()) {
            line.heads.remove(first);
        }
    }

    /// Notes that all gangs of a want are told the reason of its certificate. Whether they were
    /// told one of that kind before.
    pub fn tell(&mut self, ix: WantIx) -> bool {
        let want = self.wants[ix].as_mut().expect("a want in use exists");
        let Some(certificate) = &want.certificate else { return true };
        let known = want.told.as_ref().is_some_and(|told| told.same_kind(&certificate.reason));
        if !known {
            want.told = Some(certificate.reason.clone());
        }
        known
    }

    /// Notes that all gangs of a want that is not decided are told why it is not. Whether they were told one of that
    /// kind before.
    pub fn tell_undecided(&mut self, ix: WantIx, reason: &Arc<Reason>) -> bool {
        let want = self.wants[ix].as_mut().expect("a want in use exists");
        let known = want.told.as_ref().is_some_and(|told| told.same_kind(reason));
        want.told = Some(reason.clone());
        known
    }

    /// The wants of a line that may be decided, in the order of their first gangs.
    pub fn awake_wants(&self, line: &LineKey) -> Vec<WantIx> {
        self.lines.get(line).map_or_else(Vec::new, |at| at.heads.values().copied().collect())
    }

    /// Drops a want's certificate: something that may help it has happened.
    pub fn wake(&mut self, ix: WantIx) {
        let Some(want) = self.wants.get_mut(ix).and_then(Option::as_mut) else { return };
        let Some(certificate) = want.certificate.take() else { return };
        self.certificates.remove(ix, Some(&certificate));
        if let (Some(line), Some(first)) = (self.lines.get_mut(&want.line), want.turns.first()) {
            line.heads.insert(first.clone(), ix);
            self.awake.insert(want.line.clone());
        }
    }

    /// Drops the certificates of wants of a line that ask something of this kind.
    pub fn wake_in(&mut self, line: &LineKey, asks: impl Fn(&N) -> bool) {
        let Some(at) = self.lines.get(line) else { return };
        let wants = at.firsts.values().copied().filter(|ix| asks(&self.want(*ix).ask));
        for ix in wants.collect::<Vec<_>>() {
            self.wake(ix);
        }
    }

    /// Drops all certificates: an object changed on which anything may depend.
    pub fn wake_all(&mut self) {
        (0..self.wants.len()).for_each(|ix| self.wake(ix));
        self.awake = self.lines.keys().cloned().collect();
    }

    /// The index of what could falsify the certificates.
    pub fn certificates(&mut self) -> &mut certificate::Index {
        &mut self.certificates
    }

    fn want(&self, ix: WantIx) -> &Want<N> {
        self.wants[ix].as_ref().expect("a want in use exists")
    }

    fn want_for(&mut self, line: &LineKey, ask: N) -> WantIx {
        let key = (line.clone(), ask);
        if let Some(ix) = self.by_ask.get(&key) {
            return *ix;
        }
        let ix = self.unused.pop().unwrap_or(self.wants.len());
        let want = Want {
            line: key.0.clone(),
            ask: key.1.clone(),
            turns: BTreeSet::new(),
            certificate: None,
            told: None,
        };
        if ix == self.wants.len() {
            self.wants.push(Some(want));
        } else {
            self.wants[ix] = Some(want);
        }
        self.by_ask.insert(key, ix);
        ix
    }

    fn forget_line_if_empty(&mut self, line: &LineKey) {
        if self.lines.get(line).is_some_and(|at| at.turns.is_empty()) {
            self.lines.remove(line);
            self.awake.remove(line);
        }
    }
}
