//! Why a want cannot be met, in a form that an event can falsify.
//!
//! A certificate holds one blocker for every way of meeting the want that was looked at. As long
//! as no blocker is falsified, every way is still blocked, and the want may sleep. The index finds
//! the wants whose blockers an event falsifies, without looking at the others.

use std::collections::{BTreeMap, BTreeSet};

use super::WantIx;
use crate::event::{Amount, Name};
use crate::quota::{FlavorResource, Quotas, Sum};
use crate::reason::Reason;

/// Why a want cannot be met.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// What its gangs are told.
    pub reason: Reason,
    /// What an event must falsify before it is worth deciding again.
    pub blockers: BTreeSet<Blocker>,
}

/// Something that is in the way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blocker {
    /// The ClusterQueue has less than this available of a flavor's resource.
    Quota {
        /// The top of its cohorts: usage elsewhere does not concern it.
        root: Name,
        /// The flavor and resource.
        what: FlavorResource,
        /// The ClusterQueue.
        queue: Name,
        /// What must be available.
        needed: Sum,
    },
    /// The Volcano Queue's capability leaves less than this of a resource.
    Capability {
        /// The queue.
        queue: Name,
        /// The resource.
        resource: Name,
        /// What must be left.
        needed: Amount,
    },
    /// Nodes have too few places; the number names a shortage that the placement side watches.
    Places(ShortageIx),
}

/// A shortage of places, by number.
pub type ShortageIx = usize;

/// Finds the wants whose certificates an event falsifies.
#[derive(Clone, Debug, Default)]
pub struct Index {
    by_quota: BTreeMap<(Name, FlavorResource), BTreeMap<Name, BTreeSet<(Sum, WantIx)>>>,
    by_capability: BTreeMap<(Name, Name), BTreeSet<(Amount, WantIx)>>,
    by_shortage: BTreeMap<ShortageIx, BTreeSet<WantIx>>,
    /// Shortages that no certificate names any more.
    ended: Vec<ShortageIx>,
}

impl Index {
    pub(super) fn insert(&mut self, want: WantIx, certificate: &Certificate) {
        for blocker in &certificate.blockers {
            match blocker {
                Blocker::Quota { root, what, queue, needed } => {
                    let queues = self.by_quota.entry((root.clone(), what.clone())).or_default();
                    queues.entry(queue.clone()).or_default().insert((*needed, want));
                }
                Blocker::Capability { queue, resource, needed } => {
                    let key = (queue.clone(), resource.clone());
                    self.by_capability.entry(key).or_default().insert((*needed, want));
                }
                Blocker::Places(shortage) => {
                    self.by_shortage.entry(*shortage).or_default().insert(want);
                }
            }
        }
    }

    pub(super) fn remove(&mut self, want: WantIx, certificate: Option<&Certificate>) {
        for blocker in certificate.iter().flat_map(|c| &c.blockers) {
            match blocker {
                Blocker::Quota { root, what, queue, needed } => {
                    let key = (root.clone(), what.clone());
                    let Some(queues) = self.by_quota.get_mut(&key) else { continue };
                    remove_from(queues, queue, &(*needed, want));
                    if queues.is_empty() {
                        self.by_quota.remove(&key);
                    }
                }
                Blocker::Capability { queue, resource, needed } => {
                    let key = (queue.clone(), resource.clone());
                    remove_from(&mut self.by_capability, &key, &(*needed, want));
                }
                Blocker::Places(shortage) => {
                    remove_from(&mut self.by_shortage, shortage, &want);
                    if !self.by_shortage.contains_key(shortage) {
                        self.ended.push(*shortage);
                    }
                }
            }
        }
    }

    /// The wants that the quota given back since the last call may help, in want order.
    pub fn falsified_by_quota(&self, quotas: &mut Quotas) -> BTreeSet<WantIx> {
        let mut falsified = BTreeSet::new();
        for freed in quotas.kueue.take_freed() {
            for (queue, waiting) in self.by_quota.get(&freed).into_iter().flatten() {
                let available = quotas.kueue.available(queue, &freed.1);
                falsified.extend(waiting.range(..=(available, WantIx::MAX)).map(|(_, want)| *want));
            }
        }
        for freed in quotas.volcano.take_freed() {
            let Some(waiting) = self.by_capability.get(&freed) else { continue };
            let left = quotas.volcano.left(&freed.0, &freed.1);
            falsified.extend(waiting.range(..=(left, WantIx::MAX)).map(|(_, want)| *want));
        }
        falsified
    }

    /// The wants that wait for the end of this shortage, in want order.
    pub fn short_of(&self, shortage: ShortageIx) -> impl Iterator<Item = WantIx> {
        self.by_shortage.get(&shortage).into_iter().flatten().copied()
    }

    /// Shortages that no certificate names any more since the last call.
    pub fn take_ended(&mut self) -> Vec<ShortageIx> {
        let mut ended = std::mem::take(&mut self.ended);
        ended.retain(|shortage| !self.by_shortage.contains_key(shortage));
        ended
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
