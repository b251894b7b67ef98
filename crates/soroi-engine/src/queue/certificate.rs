//! Why a want cannot be met, in a form that an event can falsify.
//!
//! A certificate holds one blocker for every way of meeting the want that was looked at. As long
//! as no blocker is falsified, every way is still blocked, and the want may sleep. It also holds
//! what its reason takes for given (quota that suffices although places do not): when that is
//! falsified the want is decided again too, because its reason is another one then. The index finds
//! the wants that a change concerns without looking at the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::WantIx;
use crate::event::{Amount, Name};
use crate::quota::volcano::Limit;
use crate::quota::{FlavorResource, Quotas, Sum};
use crate::reason::Reason;

/// Why a want cannot be met.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// What its gangs are told.
    pub reason: Arc<Reason>,
    /// What an event must falsify before it is worth deciding again.
    pub blockers: BTreeSet<Blocker>,
}

/// Something that an event can falsify.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blocker {
    /// The ClusterQueue has less than this available.
    QuotaShort(QuotaBlocker),
    /// The ClusterQueue has this available.
    QuotaEnough(QuotaBlocker),
    /// A limit of a Volcano Queue leaves less than this.
    CapabilityShort(CapabilityBlocker),
    /// A limit of a Volcano Queue leaves this.
    CapabilityEnough(CapabilityBlocker),
    /// Nodes have too few places; the number names a shortage that the placement side watches.
    Places(ShortageIx),
    /// Whatever nodes gained could be what the gangs that could leave do not give.
    AnyRoom,
}

/// A flavor's resource in a ClusterQueue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuotaBlocker {
    /// The top of its cohorts: usage elsewhere does not concern it.
    pub root: Name,
    /// The flavor and resource.
    pub what: FlavorResource,
    /// The ClusterQueue.
    pub queue: Name,
    /// What must be available.
    pub needed: Sum,
}

/// A resource in a Volcano Queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapabilityBlocker {
    /// The queue, the resource, and what limits it.
    pub limit: Limit,
    /// What must be left.
    pub needed: Amount,
}

/// A shortage of places, by number.
pub type ShortageIx = usize;

/// Wants by what they need of something.
type Thresholds<N> = BTreeSet<(N, WantIx)>;

/// Finds the wants whose certificates a change falsifies.
#[derive(Clone, Debug, Default)]
pub struct Index {
    quota_short: BTreeMap<(Name, FlavorResource), BTreeMap<Name, Thresholds<Sum>>>,
    quota_enough: BTreeMap<(Name, FlavorResource), BTreeMap<Name, Thresholds<Sum>>>,
    capability_short: BTreeMap<Limit, Thresholds<Amount>>,
    capability_enough: BTreeMap<Limit, Thresholds<Amount>>,
    by_shortage: BTreeMap<ShortageIx, BTreeSet<WantIx>>,
    any_room: BTreeSet<WantIx>,
    /// Shortages that no certificate names any more.
    ended: Vec<ShortageIx>,
    moved: Moved,
}

/// Quota that moved under certificates.
#[derive(Clone, Debug, Default)]
pub struct Moved {
    quota: BTreeSet<(Name, FlavorResource)>,
    capability: BTreeSet<Limit>,
}

impl Moved {
    /// Nothing did.
    pub fn is_empty(&self) -> bool {
        self.quota.is_empty() && self.capability.is_empty()
    }
}

impl Index {
    pub(super) fn insert(&mut self, want: WantIx, certificate: &Certificate) {
        for blocker in &certificate.blockers {
            match blocker {
                Blocker::QuotaShort(it) => insert_quota(&mut self.quota_short, it, want),
                Blocker::QuotaEnough(it) => insert_quota(&mut self.quota_enough, it, want),
                Blocker::CapabilityShort(it) => {
                    self.capability_short.entry(it.limit.clone()).or_default().insert((it.needed, want));
                }
                Blocker::CapabilityEnough(it) => {
                    self.capability_enough.entry(it.limit.clone()).or_default().insert((it.needed, want));
                }
                Blocker::Places(shortage) => {
                    self.by_shortage.entry(*shortage).or_default().insert(want);
                }
                Blocker::AnyRoom => _ = self.any_room.insert(want),
            }
        }
    }

    pub(super) fn remove(&mut self, want: WantIx, certificate: Option<&Certificate>) {
        for blocker in certificate.iter().flat_map(|c| &c.blockers) {
            match blocker {
                Blocker::QuotaShort(it) => remove_quota(&mut self.quota_short, it, want),
                Blocker::QuotaEnough(it) => remove_quota(&mut self.quota_enough, it, want),
                Blocker::CapabilityShort(it) => {
                    remove_from(&mut self.capability_short, &it.limit, &(it.needed, want));
                }
                Blocker::CapabilityEnough(it) => {
                    remove_from(&mut self.capability_enough, &it.limit, &(it.needed, want));
                }
                Blocker::Places(shortage) => {
                    remove_from(&mut self.by_shortage, shortage, &want);
                    if !self.by_shortage.contains_key(shortage) {
                        self.ended.push(*shortage);
                    }
                }
                Blocker::AnyRoom => _ = self.any_room.remove(&want),
            }
        }
    }

    /// The wants that the quota given back or taken since the last call concerns, in want order.
    pub fn falsified_by_quota(&mut self, quotas: &mut Quotas) -> BTreeSet<WantIx> {
        let mut falsified = BTreeSet::new();
        for moved in quotas.kueue.take_moved() {
            let available = |queue: &Name| quotas.kueue.available(queue, &moved.1);
            for (queue, wants) in self.quota_short.get(&moved).into_iter().flatten() {
                falsified.extend(at_most(wants, available(queue), WantIx::MAX));
            }
            for (queue, wants) in self.quota_enough.get(&moved).into_iter().flatten() {
                falsified.extend(more_than(wants, available(queue), WantIx::MAX));
            }
            if self.quota_short.contains_key(&moved) {
                self.moved.quota.insert(moved);
            }
        }
        for moved in quotas.volcano.take_moved() {
            let left = quotas.volcano.left(&moved);
            let short = self.capability_short.get(&moved).into_iter();
            falsified.extend(short.flat_map(|wants| at_most(wants, left, WantIx::MAX)));
            let enough = self.capability_enough.get(&moved).into_iter();
            falsified.extend(enough.flat_map(|wants| more_than(wants, left, WantIx::MAX)));
            if self.capability_short.contains_key(&moved) {
                self.moved.capability.insert(moved);
            }
        }
        falsified
    }

    /// What moved so far and is spoken of in certificates, since it was last taken.
    pub fn moved(&self) -> &Moved {
        &self.moved
    }

    /// Forgets what moved, and returns the wants whose numbers it concerns, in want order.
    pub fn take_moved(&mut self) -> BTreeSet<WantIx> {
        let moved = std::mem::take(&mut self.moved);
        let quota = moved.quota.iter().filter_map(|key| self.quota_short.get(key));
        let by_quota = quota.flat_map(BTreeMap::values).flatten().map(|(_, want)| *want);
        let capability = moved.capability.iter().filter_map(|key| self.capability_short.get(key));
        by_quota.chain(capability.flatten().map(|(_, want)| *want)).collect()
    }

    /// The wants that wait for the end of this shortage, in want order.
    pub fn short_of(&self, shortage: ShortageIx) -> impl Iterator<Item = WantIx> {
        self.by_shortage.get(&shortage).into_iter().flatten().copied()
    }

    /// The wants that any room may help, in want order.
    pub fn helped_by_any_room(&self) -> &BTreeSet<WantIx> {
        &self.any_room
    }

    /// Whether anybody waits for places.
    pub fn is_short_of_places(&self) -> bool {
        !self.by_shortage.is_empty()
    }

    /// All wants that wait for places, in want order.
    pub fn short_of_places(&self) -> BTreeSet<WantIx> {
        self.by_shortage.values().flatten().copied().collect()
    }

    /// Shortages that no certificate names any more since the last call.
    pub fn take_ended(&mut self) -> Vec<ShortageIx> {
        let mut ended = std::mem::take(&mut self.ended);
        ended.retain(|shortage| !self.by_shortage.contains_key(shortage));
        ended
    }
}

fn at_most<N: Ord + Copy>(wants: &Thresholds<N>, left: N, last: WantIx) -> impl Iterator<Item = WantIx> + '_ {
    wants.range(..=(left, last)).map(|(_, want)| *want)
}

fn more_than<N: Ord + Copy>(
    wants: &Thresholds<N>,
    left: N,
    last: WantIx,
) -> impl Iterator<Item = WantIx> + '_ {
    wants.range((std::ops::Bound::Excluded((left, last)), std::ops::Bound::Unbounded)).map(|(_, want)| *want)
}

fn insert_quota(
    index: &mut BTreeMap<(Name, FlavorResource), BTreeMap<Name, Thresholds<Sum>>>,
    blocker: &QuotaBlocker,
    want: WantIx,
) {
    let queues = index.entry((blocker.root.clone(), blocker.what.clone())).or_default();
    queues.entry(blocker.queue.clone()).or_default().insert((blocker.needed, want));
}

fn remove_quota(
    index: &mut BTreeMap<(Name, FlavorResource), BTreeMap<Name, Thresholds<Sum>>>,
    blocker: &QuotaBlocker,
    want: WantIx,
) {
    let key = (blocker.root.clone(), blocker.what.clone());
    let Some(queues) = index.get_mut(&key) else { return };
    remove_from(queues, &blocker.queue, &(blocker.needed, want));
    if queues.is_empty() {
        index.remove(&key);
    }
}

fn remove_from<K: Ord, V: Ord>(index: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(values) = index.get_mut(key) {
        values.remove(value);
        if values.is_empty() {
            index.remove(key);
        }
    }
}
