//! Which reasons are written now? Reasons without storms.
//!
//! The *kind* of a reason is true at once, but for one that says that an object is missing: watches of
//! different kinds are in no order, and at a first start our own queues are only being made, so it is
//! told when it is still true after a moment. Its numbers are refreshed at most every few seconds per
//! gang, the first gangs of the queues before the others, and only so many per second over all.
//! Kinds count in that number too, but never wait for it: while many kinds change, numbers rest.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use soroi_engine::event::GangId;

use super::bucket::Bucket;

/// How long a reason that mostly passes at once, such as a missing object, has to stand before it is told:
/// longer than watches are apart, and
/// soon enough for a person.
const SETTLES: SignedDuration = SignedDuration::from_millis(500);

/// The reasons that gangs show, and those that they should. `K` is what counts as the kind, `T` the
/// whole that is shown.
#[derive(Debug)]
pub struct Reasons<K, T> {
    refresh: SignedDuration,
    bucket: Bucket,
    gangs: BTreeMap<GangId, Shown<K, T>>,
    lines: Lines,
}

/// Gangs for which something is to be written, by when that may be.
#[derive(Debug, Default)]
struct Lines {
    /// A new kind of reason.
    kinds: BTreeSet<(Timestamp, GangId)>,
    /// New numbers. Such gangs are many on a busy cluster, so nobody goes through all of them.
    numbers: BTreeSet<(Timestamp, GangId)>,
}

impl Lines {
    fn of(&mut self, numbers: bool) -> &mut BTreeSet<(Timestamp, GangId)> {
        if numbers { &mut self.numbers } else { &mut self.kinds }
    }
}

#[derive(Debug)]
struct Shown<K, T> {
    kind: Option<K>,
    value: Option<T>,
    written_at: Timestamp,
    wanted: Option<Wanted<K, T>>,
}

#[derive(Debug)]
struct Wanted<K, T> {
    kind: K,
    value: T,
    since: Timestamp,
    /// Only its numbers are new.
    numbers: bool,
    /// It is not told before.
    from: Timestamp,
}

impl<K: PartialEq, T: PartialEq + Clone> Reasons<K, T> {
    /// Numbers of a gang are refreshed every `refresh` at most, and `per_second` over all.
    pub fn new(refresh: SignedDuration, per_second: u32, now: Timestamp) -> Self {
        let each = SignedDuration::from_nanos(1_000_000_000 / i64::from(per_second.max(1)));
        let bucket = Bucket::full(per_second.max(1), each, now);
        Self { refresh, bucket, gangs: BTreeMap::new(), lines: Lines::default() }
    }

    /// A gang waits for this. What is to be written comes from [`Self::due`]. `settles`: it mostly passes
    /// at once, as when an object is not heard of yet.
    pub fn want(&mut self, gang: &GangId, kind: K, value: T, settles: bool, now: Timestamp) {
        let shown = self.gangs.entry(gang.clone()).or_insert_with(|| Shown {
            kind: None,
            value: None,
            written_at: Timestamp::MIN,
            wanted: None,
        });
        let before = shown.wanted.take();
        if let Some(before) = &before {
            self.lines.of(before.numbers).remove(&(before.from, gang.clone()));
        }
        if shown.kind.as_ref() == Some(&kind) && shown.value.as_ref() == Some(&value) {
            return;
        }
        let since = before.map_or(now, |wanted| wanted.since);
        let from = if settles { super::later(since, SETTLES) } else { now };
        let numbers = shown.kind.as_ref() == Some(&kind);
        let from = if numbers { from.max(super::later(shown.written_at, self.refresh)) } else { from };
        shown.wanted = Some(Wanted { kind, value, since, numbers, from });
        self.lines.of(numbers).insert((from, gang.clone()));
    }

    /// A gang does not wait any more (admitted, ended), or something else was written to its
    /// status: whatever it waits for next is shown at once.
    pub fn forget(&mut self, gang: &GangId) {
        let Some(wanted) = self.gangs.remove(gang).and_then(|shown| shown.wanted) else { return };
        self.lines.of(wanted.numbers).remove(&(wanted.from, gang.clone()));
    }

    /// What is to be written now, and again until it is, for it counts as shown: all new kinds, then
    /// refreshed numbers as far as the bounds allow, those of gangs that are the `head` of their
    /// queue first, then those that wait longest. To be asked after [`Self::want`] and at
    /// [`Self::next_due`].
    pub fn due(&mut self, now: Timestamp, head: impl Fn(&GangId) -> bool) -> Vec<(GangId, T)> {
        let mut due = Vec::new();
        for gang in up_to(&self.lines.kinds, now) {
            self.bucket.take(now);
            due.extend(self.write(gang, now));
        }
        if !self.bucket.has(now) {
            return due;
        }
        let since = |gang: &GangId| self.gangs.get(gang)?.wanted.as_ref().map(|wanted| wanted.since);
        let numbers = up_to(&self.lines.numbers, now).into_iter();
        let mut numbers: Vec<_> = numbers.map(|gang| (!head(&gang), since(&gang), gang)).collect();
        numbers.sort();
        for (_, _, gang) in numbers {
            if !self.bucket.take(now) {
                break;
            }
            due.extend(self.write(gang, now));
        }
        due
    }

    fn write(&mut self, gang: GangId, now: Timestamp) -> Option<(GangId, T)> {
        let shown = self.gangs.get_mut(&gang)?;
        let wanted = shown.wanted.take()?;
        self.lines.of(wanted.numbers).remove(&(wanted.from, gang.clone()));
        shown.kind = Some(wanted.kind);
        shown.value = Some(wanted.value.clone());
        shown.written_at = now;
        Some((gang, wanted.value))
    }

    /// When something may be told next; `None`: nothing waits.
    pub fn next_due(&self) -> Option<Timestamp> {
        let kind = self.lines.kinds.first().map(|(from, _)| *from);
        let numbers = self.lines.numbers.first().map(|(from, _)| (*from).max(self.bucket.next()));
        kind.into_iter().chain(numbers).min()
    }
}

/// Of gangs by time those whose time has come, in the order of their names.
fn up_to(gangs: &BTreeSet<(Timestamp, GangId)>, now: Timestamp) -> Vec<GangId> {
    let due = gangs.iter().take_while(|(from, _)| *from <= now);
    let mut due: Vec<GangId> = due.map(|(_, gang)| gang.clone()).collect();
    due.sort();
    due
}

#[cfg(test)]
mod tests;
