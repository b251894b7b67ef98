//! What do queues show? Their status as the engine accounts for it, and who still needs them.
//!
//! Knows the statuses to be shown. Must never know how they came about.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use soroi_engine::decision::{ClusterQueueStatus, LocalQueueStatus};
use soroi_engine::event::Name;

use crate::call::Call;
use crate::kind::{Kind, Target};
use crate::lanes::Write;
use crate::project;
use crate::world::World;
use crate::world::store::{Meta, Place};

/// The latest account of each queue, until it is seen on the queue.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    cluster_queues: BTreeMap<Name, ClusterQueueStatus>,
    local_queues: BTreeMap<Place, LocalQueueStatus>,
}

impl Queues {
    /// A ClusterQueue should show this.
    pub(crate) fn cluster_queue(&mut self, status: ClusterQueueStatus) {
        self.cluster_queues.insert(status.name.clone(), status);
    }

    /// A LocalQueue should show this.
    pub(crate) fn local_queue(&mut self, status: LocalQueueStatus) {
        self.local_queues.insert((status.namespace.clone(), status.name.clone()), status);
    }

    /// The writes that are missing. What is seen to be shown is forgotten, so that this costs as
    /// much as changes do.
    pub(crate) fn writes(&mut self, world: &World, now: Timestamp) -> Vec<Write> {
        let mut writes = Vec::new();
        self.cluster_queues.retain(|name, account| {
            let Some(known) = world.cluster_queues.get(&("".into(), name.clone())) else { return false };
            let before = &known.facts.status;
            let after = project::queue::cluster_queue(account, Some(before), known.meta.generation, now);
            let write = write(Kind::ClusterQueue, &known.meta, before, &after);
            let shown = write.is_none();
            writes.extend(write);
            !shown
        });
        self.local_queues.retain(|place, account| {
            let Some(known) = world.local_queues.get(place) else { return false };
            let before = &known.facts.status;
            let after = project::queue::local_queue(account, Some(before), known.meta.generation, now);
            let write = write(Kind::LocalQueue, &known.meta, before, &after);
            let shown = write.is_none();
            writes.extend(write);
            !shown
        });
        writes
    }
}

fn write<T: Serialize>(kind: Kind, meta: &Meta, before: &T, after: &T) -> Option<Write> {
    let patch = project::status_patch(Some(&meta.version), Some(before), after)?;
    let target = Target::new(kind, &meta.namespace, &meta.name);
    Some(Write { target, call: Call::MergeStatus(patch) })
}
