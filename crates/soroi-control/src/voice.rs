//! Telling people, beside the work: events are sent in their own time and never hold up a gang.
//!
//! Knows how many may be under way. What is said, and how often, is known in `events`.

use std::collections::VecDeque;

use jiff::Timestamp;
use soroi_engine::event::Millis;
use tokio::task::JoinSet;

use crate::events::{self, Occurrence, Recorder, Send};

/// Events under way at once. Few: they must not compete with bindings.
const UNDER_WAY_MAX: usize = 8;
/// Events that may wait. Beyond that the oldest are dropped: they are for people, who could not
/// read so many.
const WAITING_MAX: usize = 4096;

/// Sends events.
pub(crate) struct Voice {
    client: kube::Client,
    recorder: Recorder,
    waiting: VecDeque<Send>,
    tasks: JoinSet<()>,
}

impl Voice {
    pub(crate) fn new(client: kube::Client, instance: &str) -> Self {
        Self { client, recorder: Recorder::new(instance), waiting: VecDeque::new(), tasks: JoinSet::new() }
    }

    /// Something happened.
    pub(crate) fn say(&mut self, occurrence: Occurrence, now: Timestamp) {
        self.waiting.extend(self.recorder.record(occurrence, now));
    }

    /// Sends what may be sent now.
    pub(crate) fn pump(&mut self, now: Timestamp) {
        self.waiting.extend(self.recorder.due(now));
        while self.waiting.len() > WAITING_MAX {
            self.waiting.pop_front();
        }
        while self.tasks.try_join_next().is_some() {}
        while self.tasks.len() < UNDER_WAY_MAX
            && let Some(send) = self.waiting.pop_front()
        {
            let client = self.client.clone();
            self.tasks.spawn(async move {
                if let Err(error) = events::send(&client, &send).await {
                    tracing::debug!(%error, "an event could not be written");
                }
            });
        }
    }

    /// When something that was put off may be said.
    pub(crate) fn next_due(&self) -> Option<Millis> {
        self.recorder.next_due().map(|when| when.as_millisecond())
    }

    /// Waits until an event was sent while others wait. Never ends when none does.
    pub(crate) async fn free(&mut self) {
        if self.waiting.is_empty() || self.tasks.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}
