//! Telling people, beside the work: events are sent in their own time and never hold up a gang.
//!
//! Knows how many may be under way, and when. What is said, and how often, is known in `events`.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use soroi_engine::event::Millis;
use tokio::task::JoinSet;

use crate::events::{self, Occurrence, Recorder, Send};

/// Events under way at once.
const UNDER_WAY_MAX: usize = 8;
/// The same while gangs have requests under way: an event costs the API server as much as a binding.
const UNDER_WAY_BUSY: usize = 1;
/// Events that may wait. Beyond that the oldest are dropped: they are for people, who could not
/// read so many.
const WAITING_MAX: usize = 8_192;
/// How long an event rests: a gang that starts has its pods bound by then, and the API server does
/// one thing after the other.
const REST: SignedDuration = SignedDuration::from_millis(100);
/// How long it rests at most while gangs have requests under way. Whoever reads events does so after the
/// statuses, which have said the same by then.
const REST_MAX: SignedDuration = SignedDuration::from_secs(3);

/// Sends events.
pub(crate) struct Voice {
    client: kube::Client,
    recorder: Recorder,
    /// With the time from which it may be sent, and that from which it is sent whatever is under way.
    waiting: VecDeque<Resting>,
    tasks: JoinSet<()>,
}

/// An event that waits.
struct Resting {
    send: Send,
    /// From when on it may be sent.
    from: Timestamp,
    /// From when on it is sent even while gangs have requests under way.
    anyway: Timestamp,
}

impl Resting {
    fn since(send: Send, now: Timestamp) -> Self {
        let after = |rest| now.saturating_add(rest).unwrap_or(Timestamp::MAX);
        Self { send, from: after(REST), anyway: after(REST_MAX) }
    }

    fn due(&self, busy: bool) -> Timestamp {
        if busy { self.anyway } else { self.from }
    }
}

impl Voice {
    pub(crate) fn new(client: kube::Client, instance: &str) -> Self {
        Self { client, recorder: Recorder::new(instance), waiting: VecDeque::new(), tasks: JoinSet::new() }
    }

    /// Something happened.
    pub(crate) fn say(&mut self, occurrence: Occurrence, now: Timestamp) {
        let sends = self.recorder.record(occurrence, now);
        self.waiting.extend(sends.into_iter().map(|send| Resting::since(send, now)));
    }

    /// Sends what may be sent now. `busy`: gangs have requests under way.
    pub(crate) fn pump(&mut self, now: Timestamp, busy: bool) {
        let counts = self.recorder.due(now);
        self.waiting.extend(counts.into_iter().map(|send| Resting::since(send, now)));
        while self.waiting.len() > WAITING_MAX {
            self.waiting.pop_front();
        }
        while self.tasks.try_join_next().is_some() {}
        while self.tasks.len() < room(busy)
            && self.waiting.front().is_some_and(|first| first.due(busy) <= now)
            && let Some(Resting { send, .. }) = self.waiting.pop_front()
        {
            let client = self.client.clone();
            self.tasks.spawn(async move {
                if let Err(error) = events::send(&client, &send).await {
                    tracing::debug!(%error, "an event could not be written");
                }
            });
        }
    }

    /// When something that was put off may be said. `busy` as in [`Self::pump`].
    pub(crate) fn next_due(&self, busy: bool) -> Option<Millis> {
        // With all under way, the end of one is waited for.
        let first = self.waiting.front().filter(|_| self.tasks.len() < room(busy));
        // Rounded up: what is due in a part of a millisecond is not due yet.
        let rested = first.map(|first| first.due(busy).as_millisecond().saturating_add(1));
        self.recorder.next_due().map(|when| when.as_millisecond()).into_iter().chain(rested).min()
    }

    /// Waits until an event was sent while others wait. Never ends when none does.
    pub(crate) async fn free(&mut self) {
        if self.waiting.is_empty() || self.tasks.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// How many events may be under way at once.
fn room(busy: bool) -> usize {
    if busy { UNDER_WAY_BUSY } else { UNDER_WAY_MAX }
}
