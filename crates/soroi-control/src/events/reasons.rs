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
    /// Those that want something written: few, while most gangs only wait.
    wanting: BTreeSet<GangId>,
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
    /// It is not told before.
    from: Timestamp,
}

impl<K: PartialEq, T: PartialEq + Clone> Reasons<K, T> {
    /// Numbers of a gang are refreshed every `refresh` at most, and `per_second` over all.
    pub fn new(refresh: SignedDuration, per_second: u32, now: Timestamp) -> Self {
        let each = SignedDuration::from_nanos(1_000_000_000 / i64::from(per_second.max(1)));
        let bucket = Bucket::full(per_second.max(1), each, now);
        Self { refresh, bucket, gangs: BTreeMap::new(), wanting: BTreeSet::new() }
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
        if shown.kind.as_ref() == Some(&kind) && shown.value.as_ref() == Some(&value) {
            shown.wanted = None;
            self.wanting.remove(gang);
            return;
        }
        let since = shown.wanted.as_ref().map_or(now, |wanted| wanted.since);
        let from = if settles { super::later(since, SETTLES) } else { now };
        shown.wanted = Some(Wanted { kind, value, since, from });
        self.wanting.insert(gang.clone());
    }

    /// A gang does not wait any more (admitted, ended), or something else was written to its
    /// status: whatever it waits for next is shown at once.
    pub fn forget(&mut self, gang: &GangId) {
        self.gangs.remove(gang);
        self.wanting.remove(gang);
    }

    /// What is to be written now, and again until it is, for it counts as shown: all new kinds, then
    /// refreshed numbers as far as the bounds allow, those of gangs that are the `head` of their
    /// queue first, then those that wait longest. To be asked after [`Self::want`] and at
    /// [`Self::next_due`].
    pub fn due(&mut self, now: Timestamp, head: impl Fn(&GangId) -> bool) -> Vec<(GangId, T)> {
        let mut kinds = Vec::new();
        let mut numbers = Vec::new();
        for (gang, shown) in self.wanting() {
            let Some(wanted) = shown.wanted.as_ref().filter(|wanted| wanted.from <= now) else { continue };
            if shown.kind.as_ref() != Some(&wanted.kind) {
                kinds.push(gang.clone());
            } else if now.duration_since(shown.written_at) >= self.refresh {
                numbers.push((!head(gang), wanted.since, gang.clone()));
            }
        }
        numbers.sort();
        let mut due = Vec::new();
        for gang in kinds {
            self.bucket.take(now);
            due.extend(self.write(gang, now));
        }
        for (_, _, gang) in numbers {
            if !self.bucket.take(now) {
                break;
            }
            due.extend(self.write(gang, now));
        }
        due
    }

    fn wanting(&self) -> impl Iterator<Item = (&GangId, &Shown<K, T>)> {
        self.wanting.iter().filter_map(|gang| Some((gang, self.gangs.get(gang)?)))
    }

    fn write(&mut self, gang: GangId, now: Timestamp) -> Option<(GangId, T)> {
        self.wanting.remove(&gang);
        let shown = self.gangs.get_mut(&gang)?;
        let wanted = shown.wanted.take()?;
        shown.kind = Some(wanted.kind);
        shown.value = Some(wanted.value.clone());
        shown.written_at = now;
        Some((gang, wanted.value))
    }

    /// When something may be told next; `None`: nothing waits.
    pub fn next_due(&self) -> Option<Timestamp> {
        let each = self.wanting().filter_map(|(_, shown)| {
            let wanted = shown.wanted.as_ref()?;
            let numbers = shown.kind.as_ref() == Some(&wanted.kind);
            let refreshed = || super::later(shown.written_at, self.refresh).max(self.bucket.next());
            Some(if numbers { refreshed().max(wanted.from) } else { wanted.from })
        });
        each.min()
    }
}

#[cfg(test)]
mod tests;
