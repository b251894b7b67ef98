//! What the queues' statuses show, kept up to date gang by gang.

use std::collections::{BTreeMap, BTreeSet};

use crate::decision::{ClusterQueueStatus, FlavorUsage, LocalQueueStatus};
use crate::engine::Engine;
use crate::event::{ClusterQueue, GangId, LocalQueue, Name, Readiness, StopPolicy};
use crate::quota::{FlavorResource, Sum, kueue, saturate};
use crate::reason::{NotYet, QueueInactive};

use super::gang::Phase;

/// Namespace and name of a LocalQueue.
type Door = (Name, Name);

/// Counts, and what changed since somebody asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct News {
    pub(crate) cluster_queues: BTreeSet<Name>,
    pub(crate) local_queues: BTreeSet<Door>,
    cohorts: BTreeSet<Name>,
    told_cohorts: BTreeMap<Name, i64>,
    shares: BTreeMap<GangId, Share>,
    by_cluster_queue: BTreeMap<Name, Tally>,
    by_local_queue: BTreeMap<Door, Tally>,
    told_cluster_queues: BTreeMap<Name, ClusterQueueStatus>,
    told_local_queues: BTreeMap<Door, LocalQueueStatus>,
}

/// What one gang adds to the counts of its queues.
#[derive(Clone, Debug, Default, PartialEq)]
struct Share {
    cluster_queue: Option<Name>,
    local_queue: Option<Door>,
    counts: [u32; 3],
    usage: BTreeMap<FlavorResource, Sum>,
    /// It waits for admission checks.
    checked: bool,
}

/// The sum of shares: pending, reserving, admitted; usage.
#[derive(Clone, Debug, Default)]
struct Tally {
    counts: [u32; 3],
    usage: BTreeMap<FlavorResource, Sum>,
    /// Of that, what those use who wait for admission checks.
    checked: BTreeMap<FlavorResource, Sum>,
}

impl Tally {
    fn add(&mut self, share: &Share, sign: i8) {
        for (sum, part) in self.counts.iter_mut().zip(share.counts) {
            *sum = if sign > 0 { sum.saturating_add(part) } else { sum.saturating_sub(part) };
        }
        for (what, part) in &share.usage {
            *self.usage.entry(what.clone()).or_default() += Sum::from(sign) * part;
            if share.checked {
                *self.checked.entry(what.clone()).or_default() += Sum::from(sign) * part;
            }
        }
    }
}

/// What those use who wait for admission checks.
fn checked(tally: Option<&Tally>, what: &FlavorResource) -> Sum {
    tally.and_then(|tally| tally.checked.get(what)).copied().unwrap_or(0)
}

impl News {
    fn add(&mut self, share: &Share, sign: i8) {
        if let Some(name) = &share.cluster_queue {
            self.by_cluster_queue.entry(name.clone()).or_default().add(share, sign);
            self.cluster_queues.insert(name.clone());
        }
        if let Some(door) = &share.local_queue {
            self.by_local_queue.entry(door.clone()).or_default().add(share, sign);
            self.local_queues.insert(door.clone());
        }
    }

    fn set(&mut self, id: &GangId, share: Share) {
        if self.shares.get(id) == Some(&share) {
            return;
        }
        self.forget(id);
        self.add(&share, 1);
        self.shares.insert(id.clone(), share);
    }

    /// The ClusterQueue that a gang was counted for.
    fn payer(&self, id: &GangId) -> Option<&Name> {
        self.shares.get(id)?.cluster_queue.as_ref()
    }

    /// All cohorts may have another share now.
    pub(crate) fn all_cohorts(&mut self, tree: &kueue::Tree) {
        self.cohorts.extend(tree.cohorts().map(|cohort| cohort.name.clone()));
    }

    pub(crate) fn forget(&mut self, id: &GangId) {
        if let Some(old) = self.shares.remove(id) {
            self.add(&old, -1);
        }
    }

    pub(crate) fn all_cluster_queues(&mut self, tree: &kueue::Tree) {
        self.cluster_queues.extend(tree.queues().map(|queue| queue.name.clone()));
    }

    pub(crate) fn all_local_queues(&mut self, queues: &BTreeMap<Door, LocalQueue>) {
        self.local_queues.extend(queues.keys().cloned());
    }
}

impl Engine {
    /// Counts a gang anew.
    pub(super) fn recount(&mut self, id: &GangId) {
        self.note_getting_ready(id);
        let Some(state) = self.gangs.get(id) else { return };
        let fact = state.fact.as_ref();
        let local_queue = fact.and_then(|fact| Some((fact.namespace.clone(), fact.local_queue.clone()?)));
        let door = fact.and_then(|fact| self.local_queue_of(fact));
        let payer = state.charges().find_map(|charge| charge.kueue.as_ref().map(|(queue, _)| queue.clone()));
        let off = fact.is_some_and(|fact| matches!(fact.readiness, Readiness::Off(_)));
        // As in Kueue, who is behind a stopped LocalQueue does not wait; behind a stopped ClusterQueue, yes.
        let shut = door.is_some_and(|door| door.stop != StopPolicy::None);
        let stays =
            matches!(state.held.as_ref().map(|held| &held.phase), Some(Phase::Committed | Phase::Replacing));
        let waits = fact.is_some_and(|fact| fact.readiness == Readiness::NotYet(NotYet::ChecksPending));
        let checked = stays && waits;
        let counts = match &state.held {
            None => [u32::from(fact.is_some() && !off && !shut), 0, 0],
            Some(held) => [0, 1, u32::from(held.phase != Phase::Assumed && !checked)],
        };
        let mut usage: BTreeMap<FlavorResource, Sum> = BTreeMap::new();
        for (what, amount) in
            state.charges().filter_map(|charge| charge.kueue.as_ref()).flat_map(|(_, usage)| usage)
        {
            *usage.entry(what.clone()).or_default() += Sum::from(*amount);
        }
        let cluster_queue = payer.or_else(|| door.map(|door| door.cluster_queue.clone()));
        if self.settings.fair_sharing.is_some()
            && let Some(payer) = self.news.payer(id).or(cluster_queue.as_ref())
        {
            let mut above = self.quotas.kueue.path(payer);
            above.pop();
            self.news.cohorts.extend(above);
        }
        self.news.set(id, Share { cluster_queue, local_queue, counts, usage, checked });
    }

    pub(crate) fn take_cluster_queue_news(&mut self) -> Vec<ClusterQueueStatus> {
        let mut changed = Vec::new();
        for name in std::mem::take(&mut self.news.cluster_queues) {
            let Some(queue) = self.quotas.kueue.queue(&name) else {
                self.news.told_cluster_queues.remove(&name);
                continue;
            };
            let status = self.cluster_queue_status(queue);
            if self.news.told_cluster_queues.get(&name) != Some(&status) {
                self.news.told_cluster_queues.insert(name, status.clone());
                changed.push(status);
            }
        }
        changed
    }

    pub(crate) fn take_local_queue_news(&mut self) -> Vec<LocalQueueStatus> {
        let mut changed = Vec::new();
        for door in std::mem::take(&mut self.news.local_queues) {
            let Some(queue) = self.world.local_queues.get(&door) else {
                self.news.told_local_queues.remove(&door);
                continue;
            };
            let status = self.local_queue_status(queue);
            if self.news.told_local_queues.get(&door) != Some(&status) {
                self.news.told_local_queues.insert(door, status.clone());
                changed.push(status);
            }
        }
        changed
    }

    fn cluster_queue_status(&self, queue: &ClusterQueue) -> ClusterQueueStatus {
        let tally = self.news.by_cluster_queue.get(&queue.name);
        let [pending, reserving, admitted] = tally.map_or([0; 3], |tally| tally.counts);
        let tree = &self.quotas.kueue;
        let usage = |without: &dyn Fn(&FlavorResource) -> Sum| -> Vec<FlavorUsage> {
            let each = flavor_resources(queue).map(|what| FlavorUsage {
                total: saturate(tree.used(&queue.name, &what) - without(&what)),
                borrowed: saturate((tree.borrowed(&queue.name, &what) - without(&what)).max(0)),
                flavor: what.flavor,
                resource: what.resource,
            });
            each.collect()
        };
        ClusterQueueStatus {
            name: queue.name.clone(),
            inactive: self.inactive.get(&queue.name).cloned(),
            pending,
            reserving,
            admitted,
            usage: usage(&|_| 0),
            admitted_usage: usage(&|what| checked(tally, what)),
            share: self.settings.fair_sharing.as_ref().and_then(|_| tree.queue_share(&queue.name)),
        }
    }

    /// Under fair sharing: the cohorts that exist as objects and of which the share changed.
    pub(crate) fn take_cohort_news(&mut self) -> Vec<(Name, i64)> {
        let names = std::mem::take(&mut self.news.cohorts);
        let tree = &self.quotas.kueue;
        let objects = names.into_iter().filter(|name| tree.cohorts().any(|cohort| cohort.name == *name));
        let shares: Vec<(Name, i64)> =
            objects.filter_map(|name| Some((name.clone(), tree.cohort_share(&name)?))).collect();
        let told = &mut self.news.told_cohorts;
        let news =
            shares.into_iter().filter(|(name, share)| told.insert(name.clone(), *share) != Some(*share));
        news.collect()
    }

    fn local_queue_status(&self, door: &LocalQueue) -> LocalQueueStatus {
        let tally = self.news.by_local_queue.get(&(door.namespace.clone(), door.name.clone()));
        let [pending, reserving, admitted] = tally.map_or([0; 3], |tally| tally.counts);
        let queue = self.quotas.kueue.queue(&door.cluster_queue);
        let inactive = if door.stop != StopPolicy::None {
            Some(QueueInactive::Stopped)
        } else if queue.is_none() {
            Some(QueueInactive::ClusterQueueMissing)
        } else {
            self.inactive.get(&door.cluster_queue).map(|_| QueueInactive::ClusterQueueInactive)
        };
        let used =
            |what: &FlavorResource| tally.and_then(|tally| tally.usage.get(what)).copied().unwrap_or(0);
        let usage = |without: &dyn Fn(&FlavorResource) -> Sum| -> Vec<FlavorUsage> {
            let each = queue.into_iter().flat_map(flavor_resources).map(|what| FlavorUsage {
                total: saturate(used(&what) - without(&what)),
                borrowed: 0,
                flavor: what.flavor,
                resource: what.resource,
            });
            each.collect()
        };
        LocalQueueStatus {
            namespace: door.namespace.clone(),
            name: door.name.clone(),
            inactive,
            pending,
            reserving,
            admitted,
            usage: usage(&|_| 0),
            admitted_usage: usage(&|what| checked(tally, what)),
        }
    }
}

/// What a queue has quota for, in the order of its spec.
fn flavor_resources(queue: &ClusterQueue) -> impl Iterator<Item = FlavorResource> {
    let flavors = queue.groups.iter().flat_map(|group| &group.flavors);
    flavors.flat_map(|flavor| {
        flavor
            .quotas
            .iter()
            .map(|quota| FlavorResource { flavor: flavor.flavor.clone(), resource: quota.resource.clone() })
    })
}
