//! Who watches a run? For metrics: told what happens, asked nothing.
//!
//! Knows what can be counted. Must never know how it is shown.

use soroi_engine::Decision;
use soroi_engine::decision::ClusterQueueStatus;
use soroi_engine::event::{Millis, Name};

/// Is told what happens, in the control loop: must return at once.
pub trait Observer: Send + Sync {
    /// The engine was asked, which took so long.
    fn cycle(&self, _took: Millis) {}

    /// The engine decided.
    fn decided(&self, _decision: &Decision) {}

    /// A request was answered: what was asked (`bind`, `patch`, …) and what came of it (`done`,
    /// `missing`, `conflict`, `refused`, `unknown`).
    fn answered(&self, _call: &'static str, _answer: &'static str) {}

    /// The account of a ClusterQueue changed.
    fn cluster_queue(&self, _status: &ClusterQueueStatus) {}

    /// A ClusterQueue is gone.
    fn cluster_queue_gone(&self, _name: &Name) {}
}

/// Watches nothing.
pub(crate) struct Nobody;

impl Observer for Nobody {}
