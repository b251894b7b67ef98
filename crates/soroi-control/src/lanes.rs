//! Who writes next? The executor: bounded, fair between gangs, one request per object at a time.
//!
//! Each gang has a lane. What waits in a lane is not a history but the present wish: it is
//! replaced as a whole whenever the gang is looked at anew. A request that failed is never simply
//! repeated: after a pause the object is read back, and only what the gang wishes *then* is sent.
//!
//! Knows targets and answers. Must never know what a write means.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use soroi_engine::event::{Millis, Name};
use soroi_watch::{Backoff, SplitMix64};
use tokio::task::JoinSet;

use crate::call::{Answer, Api, Call, Refusal};
use crate::kind::Target;

/// The first pause after a failure; a conflict is over as soon as the other write is seen.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause: long enough for a server in trouble, short enough for a person who waits.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// One request that somebody wants sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    pub(crate) target: Target,
    pub(crate) call: Call,
}

/// A request that ended.
#[derive(Debug)]
pub(crate) struct Done {
    /// The lane that it was sent for.
    pub(crate) lane: Name,
    pub(crate) write: Write,
    pub(crate) answer: Answer,
}

/// The requests under way and those that wait.
pub(crate) struct Lanes {
    api: Api,
    limit: usize,
    random: SplitMix64,
    tasks: JoinSet<Done>,
    waiting: BTreeMap<Name, VecDeque<Write>>,
    /// Lanes that may have something to send now.
    ready: BTreeSet<Name>,
    /// Lanes that wait for an object about which another lane has a request under way, or not yet
    /// read back.
    behind: BTreeMap<Target, BTreeSet<Name>>,
    /// The lane that was served last; the next in order has its turn.
    turn: Option<Name>,
    busy: BTreeMap<Target, Name>,
    trouble: BTreeMap<Target, Trouble>,
    /// The targets in trouble of each lane.
    troubled: BTreeMap<Name, BTreeSet<Target>>,
    due: BTreeSet<(Millis, Target)>,
}

/// A target whose last request failed.
struct Trouble {
    lane: Name,
    pauses: Backoff,
    until: Millis,
    /// It must be read back before anything else is sent.
    unread: bool,
    /// How it was refused last, which was said then.
    told: Option<Refusal>,
}

impl Trouble {
    /// Whether it was not refused like this the last time.
    fn is_news(&mut self, refusal: &Refusal) -> bool {
        let news = self.told.as_ref() != Some(refusal);
        self.told = Some(refusal.clone());
        news
    }
}

impl Lanes {
    pub(crate) fn new(api: Api, limit: usize, seed: u64) -> Self {
        Self {
            api,
            limit: limit.max(1),
            random: SplitMix64::new(seed),
            tasks: JoinSet::new(),
            waiting: BTreeMap::new(),
            ready: BTreeSet::new(),
            behind: BTreeMap::new(),
            turn: None,
            busy: BTreeMap::new(),
            trouble: BTreeMap::new(),
            troubled: BTreeMap::new(),
            due: BTreeSet::new(),
        }
    }

    /// What the lane wishes now, in order of importance. Replaces what waited there; what is under
    /// way goes on.
    pub(crate) fn set(&mut self, lane: &Name, writes: Vec<Write>) {
        if writes.is_empty() {
            self.waiting.remove(lane);
            self.ready.remove(lane);
            self.forget_past(lane);
        } else {
            self.waiting.insert(lane.clone(), writes.into());
            self.ready.insert(lane.clone());
        }
    }

    /// Troubles that are over leave their back-off behind, in case the same is tried again. When the
    /// lane wishes nothing any more, it is not.
    fn forget_past(&mut self, lane: &Name) {
        for target in self.troubled.get(lane).cloned().unwrap_or_default() {
            if self.trouble.get(&target).is_none_or(|trouble| trouble.until == 0 && !trouble.unread) {
                self.clear(&target);
            }
        }
    }

    fn clear(&mut self, target: &Target) {
        let Some(trouble) = self.trouble.remove(target) else { return };
        if let Some(targets) = self.troubled.get_mut(&trouble.lane) {
            targets.remove(target);
            if targets.is_empty() {
                self.troubled.remove(&trouble.lane);
            }
        }
    }

    /// Whether a request about this object is under way, or its outcome is still unknown.
    pub(crate) fn is_busy(&self, target: &Target) -> bool {
        self.busy.contains_key(target) || self.trouble.get(target).is_some_and(|trouble| trouble.unread)
    }

    /// Whether a request of this lane is under way, or the outcome of one is still unknown.
    pub(crate) fn is_owed_an_answer(&self, lane: &Name) -> bool {
        let unread = |target: &Target| self.trouble.get(target).is_some_and(|trouble| trouble.unread);
        self.busy.values().any(|of| of == lane)
            || self.troubled.get(lane).is_some_and(|targets| targets.iter().any(unread))
    }

    /// How many requests wait in a lane.
    pub(crate) fn waiting_in(&self, lane: &Name) -> usize {
        self.waiting.get(lane).map_or(0, VecDeque::len)
    }

    /// Nothing is under way, waits, or has to be read back.
    pub(crate) fn is_idle(&self) -> bool {
        self.busy.is_empty() && self.waiting.is_empty() && self.due.is_empty()
    }

    /// When a pause ends next, if there is room for a request then; otherwise an answer comes first.
    pub(crate) fn next_due(&self) -> Option<Millis> {
        self.due.first().map(|(until, _)| *until).filter(|_| self.busy.len() < self.limit)
    }

    /// Sends as much as may be under way at once, one request per lane in turn.
    pub(crate) fn pump(&mut self, now: Millis) {
        self.end_pauses(now);
        while self.busy.len() < self.limit {
            let after = self.turn.clone().map_or(Bound::Unbounded, Bound::Excluded);
            let next = self.ready.range((after, Bound::Unbounded)).next();
            let Some(lane) = next.or_else(|| self.ready.first()).cloned() else { break };
            match self.take(&lane) {
                Some(write) => self.send(lane.clone(), write),
                None => {
                    self.ready.remove(&lane);
                    for write in self.waiting.get(&lane).into_iter().flatten() {
                        self.behind.entry(write.target.clone()).or_default().insert(lane.clone());
                    }
                }
            }
            self.turn = Some(lane);
        }
    }

    fn take(&mut self, lane: &Name) -> Option<Write> {
        let waiting = self.waiting.get_mut(lane)?;
        let free = |write: &Write| {
            let target = &write.target;
            !self.busy.contains_key(target)
                && self.trouble.get(target).is_none_or(|trouble| trouble.until == 0 && !trouble.unread)
        };
        let at = waiting.iter().position(free)?;
        let write = waiting.remove(at);
        if waiting.is_empty() {
            self.waiting.remove(lane);
        }
        write
    }

    fn send(&mut self, lane: Name, write: Write) {
        self.busy.insert(write.target.clone(), lane.clone());
        let api = self.api.clone();
        self.tasks.spawn(async move {
            let answer = api.call(&write.target, &write.call).await;
            Done { lane, write, answer }
        });
    }

    /// Reads back what failed long enough ago.
    fn end_pauses(&mut self, now: Millis) {
        while let Some((until, target)) = self.due.first().cloned()
            && until <= now
            && self.busy.len() < self.limit
        {
            self.due.pop_first();
            if let Some(trouble) = self.trouble.get_mut(&target) {
                trouble.until = 0;
                let lane = trouble.lane.clone();
                self.send(lane, Write { target, call: Call::Read });
            }
        }
    }

    /// The next request that ended. Never ends when none is under way.
    pub(crate) async fn next(&mut self) -> Done {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(done)) => return done,
                // A panic in a request is a panic here: nothing may be lost silently.
                Some(Err(failed)) => match failed.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_) => continue,
                },
                None => std::future::pending().await,
            }
        }
    }

    /// Takes note that a request ended. Afterwards the lane should be looked at anew.
    pub(crate) fn ended(&mut self, done: &Done, now: Millis) {
        let target = &done.write.target;
        self.busy.remove(target);
        let read = done.write.call == Call::Read;
        match &done.answer {
            Answer::Object(_) | Answer::Accepted if !read => self.clear(target),
            Answer::Object(_) | Answer::Missing if read => {
                if let Some(trouble) = self.trouble.get_mut(target) {
                    trouble.unread = false;
                }
            }
            Answer::Missing if matches!(done.write.call, Call::Delete(_)) => self.clear(target),
            _ => self.pause(done, now),
        }
        let behind = self.behind.remove(target).unwrap_or_default();
        let lanes = std::iter::once(&done.lane).chain(&behind);
        self.ready.extend(lanes.filter(|lane| self.waiting.contains_key(*lane)).cloned());
    }

    fn pause(&mut self, done: &Done, now: Millis) {
        let random = &mut self.random;
        let target = &done.write.target;
        if let Some(trouble) = self.trouble.get(target).filter(|trouble| trouble.lane != done.lane)
            && let Some(targets) = self.troubled.get_mut(&trouble.lane)
        {
            targets.remove(target);
        }
        self.troubled.entry(done.lane.clone()).or_default().insert(target.clone());
        let trouble = self.trouble.entry(target.clone()).or_insert_with(|| Trouble {
            lane: done.lane.clone(),
            pauses: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE, random.next_u64()),
            until: 0,
            unread: true,
            told: None,
        });
        let pause = trouble.pauses.next_wait();
        let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX).max(1);
        trouble.lane = done.lane.clone();
        trouble.until = now.saturating_add(pause);
        trouble.unread = true;
        self.due.insert((trouble.until, target.clone()));
        match &done.answer {
            Answer::Refused(refusal) if !refusal.is_conflict() && trouble.is_news(refusal) => {
                tracing::warn!(%target, code = refusal.code, message = %refusal.message, "refused");
            }
            answer => tracing::debug!(%target, ?answer, pause, "will be read back"),
        }
    }
}

#[cfg(test)]
mod tests;
