//! What do queues show, and who still needs them? Their status as the engine accounts for it, the
//! finalizers of what is in use, and the queues that Volcano's users expect to exist.
//!
//! Knows the statuses to be shown. Must never know how they came about.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::json;
use soroi_api::labels::kueue as keys;
use soroi_api::volcano;
use soroi_engine::decision::{ClusterQueueStatus, LocalQueueStatus};
use soroi_engine::event::{GangId, Millis, Name};

use crate::call::Call;
use crate::kind::{Kind, Target};
use crate::lanes::Write;
use crate::project;
use crate::world::World;
use crate::world::store::{Meta, Place};

/// How long the account of a queue rests before it is shown. What a decision changes, and changes
/// again when it is written down, is one write then; and it does not get between a gang and its
/// start.
const REST: SignedDuration = SignedDuration::from_millis(100);

/// Statuses that are prepared at one look: as many as are sent before somebody looks again, and few enough that a
/// thousand queues are not gone through each time.
const STATUSES_AT_ONCE: usize = 32;

/// The latest account of each queue, and whose status does not show it yet.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    cluster_queues: BTreeMap<Name, ClusterQueueStatus>,
    local_queues: BTreeMap<Place, LocalQueueStatus>,
    /// The weighted shares of Cohorts, under fair sharing.
    cohorts: BTreeMap<Name, i64>,
    /// Those of which the account changed, and until when that rests.
    resting: BTreeMap<Target, Timestamp>,
    /// Those that have rested, and do not show their account yet.
    behind: BTreeSet<Target>,
    /// Of these, the one that was written last: the next has its turn.
    turn: Option<Target>,
    /// Gangs of several Workloads: the engine counts gangs, a queue's status Workloads.
    larger: BTreeMap<GangId, Larger>,
    /// Objects that changed, and those that are being deleted and still in use.
    unsettled: BTreeSet<Target>,
}

/// What a gang adds to the counters of its queues beside one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Larger {
    pub(crate) cluster_queue: Option<Name>,
    pub(crate) local_queue: Option<Place>,
    /// It waits, holds quota, is admitted: how many more Workloads do so too.
    pub(crate) counts: [u32; 3],
}

impl Queues {
    /// A ClusterQueue should show this.
    pub(crate) fn cluster_queue(&mut self, status: ClusterQueueStatus, now: Timestamp) {
        self.fell_behind(Target::new(Kind::ClusterQueue, &"".into(), &status.name), now);
        self.cluster_queues.insert(status.name.clone(), status);
    }

    /// A Cohort should show this weighted share.
    pub(crate) fn cohort(&mut self, name: &Name, share: i64, now: Timestamp) {
        self.fell_behind(Target::new(Kind::Cohort, &"".into(), name), now);
        self.cohorts.insert(name.clone(), share);
    }

    /// A LocalQueue should show this.
    pub(crate) fn local_queue(&mut self, status: LocalQueueStatus, now: Timestamp) {
        self.fell_behind(Target::new(Kind::LocalQueue, &status.namespace, &status.name), now);
        self.local_queues.insert((status.namespace.clone(), status.name.clone()), status);
    }

    /// A gang stands for so many Workloads more than one; `None`: for none.
    pub(crate) fn larger(&mut self, gang: &GangId, after: Option<Larger>, now: Timestamp) {
        let before = match &after {
            Some(after) => self.larger.insert(gang.clone(), after.clone()),
            None => self.larger.remove(gang),
        };
        if before == after {
            return;
        }
        for larger in before.iter().chain(&after) {
            let cluster =
                larger.cluster_queue.iter().map(|name| Target::new(Kind::ClusterQueue, &"".into(), name));
            let local = larger.local_queue.iter().map(|(ns, name)| Target::new(Kind::LocalQueue, ns, name));
            for target in cluster.chain(local) {
                self.fell_behind(target, now);
            }
        }
    }

    /// These changed, or may be able to go now.
    pub(crate) fn touched(&mut self, targets: BTreeSet<Target>, now: Timestamp) {
        for target in &targets {
            self.fell_behind(target.clone(), now);
        }
        self.unsettled.extend(targets);
    }

    fn fell_behind(&mut self, target: Target, now: Timestamp) {
        if !self.behind.contains(&target) {
            self.resting.entry(target).or_insert_with(|| rested(now));
        }
    }

    /// A queue was written to: what it does not show by that rests again.
    pub(crate) fn written(&mut self, target: &Target, now: Timestamp) {
        if self.behind.contains(target) {
            self.turn = Some(target.clone());
        }
        if self.behind.remove(target) || self.resting.contains_key(target) {
            self.resting.insert(target.clone(), rested(now));
        }
    }

    /// When the next one has rested. Those that have already wait for an answer, not for a time.
    pub(crate) fn next_due(&self) -> Option<Millis> {
        let due = self.resting.values().min()?;
        // Rounded up: what is due in a part of a millisecond is not due yet.
        Some(due.as_millisecond().saturating_add(1))
    }

    /// The writes that are missing. What is seen to be shown is not looked at again before it
    /// changes, so that this costs as much as changes do. `volcano`: Volcano's Queues are served.
    pub(crate) fn writes(&mut self, world: &World, volcano: bool, now: Timestamp) -> Vec<Write> {
        let mut writes = if volcano { expected(world) } else { Vec::new() };
        self.unsettled.retain(|target| {
            let write = keep(world, target);
            let leaving = meta(world, target).is_some_and(|meta| meta.terminating);
            let settled = write.is_none() && !leaving;
            writes.extend(write);
            !settled
        });
        self.behind.extend(self.resting.extract_if(.., |_, due| *due <= now).map(|(target, _)| target));
        let most = writes.len() + STATUSES_AT_ONCE;
        let mut shown = Vec::new();
        for target in self.in_turn() {
            if writes.len() >= most {
                break;
            }
            match self.status(world, target, now) {
                Some(write) => writes.push(write),
                None => shown.push(target.clone()),
            }
        }
        shown.iter().for_each(|target| _ = self.behind.remove(target));
        writes
    }

    /// Those that are behind, the next one after the last that was written first.
    fn in_turn(&self) -> impl Iterator<Item = &Target> {
        let after = self.turn.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let before = self.turn.as_ref().map(|turn| self.behind.range(..=turn));
        self.behind.range((after, Bound::Unbounded)).chain(before.into_iter().flatten())
    }

    /// The write that makes a queue show its account; `None` if it does.
    fn status(&self, world: &World, target: &Target, now: Timestamp) -> Option<Write> {
        let place = (target.namespace.clone(), target.name.clone());
        match target.kind {
            Kind::ClusterQueue => {
                let known = world.cluster_queues.get(&place)?;
                let mut account = self.cluster_queues.get(&target.name)?.clone();
                let more = self.more(|larger| larger.cluster_queue.as_ref() == Some(&target.name));
                add([&mut account.pending, &mut account.reserving, &mut account.admitted], more);
                let before = &known.facts.status;
                let after = project::queue::cluster_queue(&account, Some(before), known.meta.generation, now);
                write(Kind::ClusterQueue, &known.meta, before, &after)
            }
            Kind::Cohort => {
                let share = *self.cohorts.get(&target.name)?;
                let shown = *world.shares.get(&target.name)?;
                let status = project::queue::cohort(share);
                let call = Call::MergeStatus(json!({ "status": status }));
                (shown != Some(share)).then(|| Write { target: target.clone(), call })
            }
            Kind::LocalQueue => {
                let known = world.local_queues.get(&place)?;
                let mut account = self.local_queues.get(&place)?.clone();
                let more = self.more(|larger| larger.local_queue.as_ref() == Some(&place));
                add([&mut account.pending, &mut account.reserving, &mut account.admitted], more);
                let before = &known.facts.status;
                let after = project::queue::local_queue(&account, Some(before), known.meta.generation, now);
                write(Kind::LocalQueue, &known.meta, before, &after)
            }
            _ => None,
        }
    }

    fn more(&self, of: impl Fn(&Larger) -> bool) -> [u32; 3] {
        let mut sum = [0; 3];
        for larger in self.larger.values().filter(|larger| of(larger)) {
            add(sum.each_mut(), larger.counts);
        }
        sum
    }
}

fn rested(now: Timestamp) -> Timestamp {
    now.saturating_add(REST).unwrap_or(Timestamp::MAX)
}

fn add(sums: [&mut u32; 3], more: [u32; 3]) {
    for (sum, more) in sums.into_iter().zip(more) {
        *sum = sum.saturating_add(more);
    }
}

/// The queues that Volcano makes at its start.
fn expected(world: &World) -> Vec<Write> {
    let missing = |name: &str| world.volcano_queues.get(&("".into(), name.into())).is_none();
    let make = |name: &str, spec: serde_json::Value| Write {
        target: Target::new(Kind::VolcanoQueue, &"".into(), &name.into()),
        call: Call::Create(json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
            "metadata": { "name": name }, "spec": spec,
        })),
    };
    let root = missing(volcano::ROOT_QUEUE)
        .then(|| make(volcano::ROOT_QUEUE, json!({ "weight": 1, "reclaimable": false })));
    let default = missing(volcano::DEFAULT_QUEUE).then(|| {
        let spec = json!({ "weight": 1, "reclaimable": true, "parent": volcano::ROOT_QUEUE });
        make(volcano::DEFAULT_QUEUE, spec)
    });
    root.into_iter().chain(default).collect()
}

/// What an object lacks: the finalizer that keeps it while it is in use, the end of that when
/// nobody needs it any more, or what Volcano's controller fills in.
fn keep(world: &World, target: &Target) -> Option<Write> {
    if target.kind == Kind::VolcanoQueue {
        return fill_in(world, target);
    }
    if target.kind == Kind::Cohort {
        // Nothing is in the way of its end: queues may name one that has no object.
        return None;
    }
    let meta = meta(world, target)?;
    let kept = meta.finalizers.iter().any(|one| &**one == keys::RESOURCE_IN_USE);
    match (meta.terminating, kept) {
        (true, true) if !is_used(world, target) => {
            crate::jobs::batch::let_go(meta, target.kind, keys::RESOURCE_IN_USE)
        }
        (false, false) if target.kind != Kind::LocalQueue => {
            let all = meta.finalizers.iter().map(|one| &**one).chain([keys::RESOURCE_IN_USE]);
            let body = json!({ "metadata": {
                "resourceVersion": &*meta.version, "finalizers": all.collect::<Vec<_>>(),
            }});
            Some(Write { target: target.clone(), call: Call::Merge(body) })
        }
        _ => None,
    }
}

fn meta<'a>(world: &'a World, target: &Target) -> Option<&'a Meta> {
    let place = (target.namespace.clone(), target.name.clone());
    match target.kind {
        Kind::ClusterQueue => world.cluster_queues.get(&place).map(|known| &known.meta),
        Kind::LocalQueue => world.local_queues.get(&place).map(|known| &known.meta),
        Kind::Flavor => world.flavors.get(&place).map(|known| &known.meta),
        kind => world.exists(kind, &target.name),
    }
}

/// Whether somebody would miss it: a Workload its queue, a queue its flavor, a flavor its topology.
fn is_used(world: &World, target: &Target) -> bool {
    let name = &target.name;
    match target.kind {
        Kind::ClusterQueue => {
            let mut workloads = world.workloads.iter().map(|known| &known.facts.facts);
            let holds = |held: &soroi_engine::event::Admitted| held.cluster_queue == *name;
            workloads.any(|facts| !facts.finished && facts.admitted.as_ref().is_some_and(holds))
                || world
                    .plans
                    .iter()
                    .any(|plan| plan.facts.plan.admission.cluster_queue.as_ref() == Some(name))
        }
        Kind::Flavor => world.cluster_queues.iter().any(|known| {
            let groups = known.facts.queue.spec.resource_groups.iter();
            groups.flat_map(|group| &group.flavors).any(|flavor| *flavor.name == **name)
        }),
        Kind::Topology => {
            world.flavors.iter().any(|known| known.facts.object.spec.topology_name.as_deref() == Some(name))
        }
        _ => false,
    }
}

/// A queue is open unless somebody closed it, and hangs below the root unless somebody said where.
fn fill_in(world: &World, target: &Target) -> Option<Write> {
    let known = world.volcano_queues.get(&("".into(), target.name.clone()))?;
    if known.meta.terminating {
        return None;
    }
    let call = if !known.facts.has_parent && *target.name != *volcano::ROOT_QUEUE {
        Call::Merge(json!({ "spec": { "parent": volcano::ROOT_QUEUE } }))
    } else if !known.facts.has_state {
        Call::MergeStatus(json!({ "status": { "state": "Open", "allocated": {}, "reservation": {} } }))
    } else {
        return None;
    };
    Some(Write { target: target.clone(), call })
}

fn write<T: Serialize>(kind: Kind, meta: &Meta, before: &T, after: &T) -> Option<Write> {
    let patch = project::status_patch(Some(&meta.version), Some(before), after)?;
    let target = Target::new(kind, &meta.namespace, &meta.name);
    Some(Write { target, call: Call::MergeStatus(patch) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::Schedulers;
    use crate::parsed::Context;

    #[test]
    fn what_has_rested_while_nobody_looked_is_due() {
        let at = |millis| Timestamp::from_millisecond(millis).unwrap();
        let context = Context {
            charging: Default::default(),
            schedulers: Schedulers::default(),
            defaults: Default::default(),
            shared: Default::default(),
        };
        let world = World::new(std::sync::Arc::new(context), &crate::config::Config::default());
        let queue = Target::new(Kind::ClusterQueue, &"".into(), &"main".into());
        let mut queues = Queues::default();
        queues.touched(BTreeSet::from([queue]), at(0));
        // Looked at a moment too early, and asked for the next time a moment too late.
        assert_eq!(queues.writes(&world, false, at(99)), Vec::new());
        assert_eq!(queues.next_due(), Some(101));
        queues.writes(&world, false, at(101));
        assert_eq!(queues.next_due(), None);
    }
}
