//! The engine's front door: tell it what happened, ask it what should happen.

use crate::decision::{ClusterQueueStatus, Decision, LocalQueueStatus, Settings};
use crate::event::{Event, Millis, Outcome};

/// The state of a cluster and what follows from it.
#[derive(Debug)]
pub struct Engine {
    _settings: Settings,
}

impl Engine {
    /// An engine that knows nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self { _settings: settings }
    }

    /// Takes in a fact. Cheap, idempotent, and independent of the order in which objects of
    /// different types arrive.
    pub fn apply(&mut self, _event: Event, _now: Millis) {}

    /// Takes in how a decision turned out. May come before or after the watch event that shows
    /// the same.
    pub fn confirm(&mut self, _outcome: Outcome, _now: Millis) {}

    /// Decides all that can be decided now. What is returned is already reserved.
    pub fn decide(&mut self, _now: Millis) -> Vec<Decision> {
        Vec::new()
    }

    /// When time alone changes an answer next (a time-out, the end of a back-off).
    pub fn next_wakeup(&self) -> Option<Millis> {
        None
    }

    /// ClusterQueues whose status changed since the last call, in name order.
    pub fn changed_cluster_queues(&mut self) -> Vec<ClusterQueueStatus> {
        Vec::new()
    }

    /// LocalQueues whose status changed since the last call, in name order.
    pub fn changed_local_queues(&mut self) -> Vec<LocalQueueStatus> {
        Vec::new()
    }

    /// Verifies the invariants of DESIGN section 9 that the engine alone can see; number 5 by
    /// deciding from scratch. For tests: costs as much as a restart.
    ///
    /// # Errors
    /// One line per violation.
    pub fn check(&self, _now: Millis) -> Result<(), Vec<String>> {
        Ok(())
    }
}
