//! How much? Exact amounts of whatever a node reports.
//!
//! Knows names of resources and integers. Must never know what a resource is for: a pod slot is
//! an ordinary resource called `pods`, a GPU is an ordinary resource with a longer name.
//!
//! Nothing here overflows: a single amount is an `i64` (what the API can say), sums are `i128`
//! (no number of pods that fits in memory can overflow that), and what is left over is clamped to
//! `i64`. So an absurd request never fits, and taking it away again leaves the exact rest.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::event::{Amount, Name};

/// The resource name under which nodes report their pod slots.
pub const PODS_NAME: &str = "pods";

/// A resource name as a number: names are compared once, at the edge of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceIx(u32);

impl ResourceIx {
    /// Pod slots; every pod takes one.
    pub const PODS: Self = Self(0);
}

/// The table of resource names. Names are never forgotten: there are as many as the cluster's
/// nodes, pods and queues ever named.
#[derive(Clone, Debug)]
pub struct ResourceNames {
    names: Vec<Name>,
    by_name: BTreeMap<Name, ResourceIx>,
}

impl Default for ResourceNames {
    fn default() -> Self {
        let pods: Name = PODS_NAME.into();
        Self { names: vec![pods.clone()], by_name: BTreeMap::from([(pods, ResourceIx::PODS)]) }
    }
}

impl ResourceNames {
    /// The number of this name, a new one if it was never seen.
    pub fn intern(&mut self, name: &Name) -> ResourceIx {
        if let Some(&known) = self.by_name.get(name) {
            return known;
        }
        let ix = u32::try_from(self.names.len()).expect("four billion names do not fit in memory");
        self.names.push(name.clone());
        self.by_name.insert(name.clone(), ResourceIx(ix));
        ResourceIx(ix)
    }

    /// The number of this name, if it was ever seen.
    pub fn known(&self, name: &str) -> Option<ResourceIx> {
        self.by_name.get(name).copied()
    }

    /// The name behind a number that this table gave.
    pub fn name(&self, resource: ResourceIx) -> &Name {
        &self.names[resource.0 as usize]
    }
}

/// What one pod takes from its node: positive amounts only, pod slot included, in [`ResourceIx`]
/// order. A request of zero (or less) asks nothing, as in kube-scheduler's NodeResourcesFit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requests(SmallVec<[(ResourceIx, Amount); 6]>);

impl Requests {
    /// The requests of a pod, given without its implied slot.
    pub fn of_pod(amounts: &BTreeMap<Name, Amount>, names: &mut ResourceNames) -> Self {
        let mut entries: SmallVec<[(ResourceIx, Amount); 6]> = amounts
            .iter()
            .filter(|(name, amount)| **amount > 0 && &***name != PODS_NAME)
            .map(|(name, amount)| (names.intern(name), *amount))
            .collect();
        let extra_slots = amounts.get(PODS_NAME).copied().unwrap_or(0).max(0);
        entries.push((ResourceIx::PODS, extra_slots.saturating_add(1)));
        entries.sort_unstable();
        Self(entries)
    }

    /// Resources and positive amounts, in order.
    pub fn iter(&self) -> impl Iterator<Item = (ResourceIx, Amount)> + '_ {
        self.0.iter().copied()
    }
}

/// One resource of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    resource: ResourceIx,
    allocatable: Amount,
    used: i128,
    /// `allocatable - used`, clamped: kept because it is read far more often than written.
    free: Amount,
}

/// What a node has and how much of it is taken. Free may be below zero: a node may shrink below
/// what runs there, or others may have filled it beyond its measure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Sorted by resource. Sparse, so that a pod with an exotic resource costs its own node only.
    entries: SmallVec<[Entry; 5]>,
}

impl Space {
    /// Replaces what there is altogether; what is taken stays taken.
    pub fn set_allocatable(&mut self, allocatable: &BTreeMap<Name, Amount>, names: &mut ResourceNames) {
        for entry in &mut self.entries {
            entry.allocatable = 0;
        }
        for (name, amount) in allocatable {
            let at = self.slot(names.intern(name));
            self.entries[at].allocatable = *amount;
        }
        self.settle();
    }

    /// Takes what `count` such pods need.
    pub fn charge(&mut self, requests: &Requests, count: u32) {
        self.shift(requests, i128::from(count));
    }

    /// Gives back what `count` such pods took.
    pub fn uncharge(&mut self, requests: &Requests, count: u32) {
        self.shift(requests, -i128::from(count));
    }

    /// How many such pods fit beside what is there.
    pub fn fit_count(&self, requests: &Requests) -> u32 {
        let mut fit = u32::MAX;
        let mut entries = self.entries.iter();
        for &(resource, amount) in &requests.0 {
            let free = entries.find(|e| e.resource >= resource).filter(|e| e.resource == resource);
            // `find` has consumed the entry; requests are in order and distinct, so the next one
            // lies beyond it unless the resource is missing here, and then nothing fits at all.
            let Some(free) = free.map(|e| e.free).filter(|free| *free >= amount) else { return 0 };
            let here = if amount == 1 { free } else { free / amount };
            fit = fit.min(u32::try_from(here).unwrap_or(u32::MAX));
        }
        fit
    }

    /// The resources that are there or taken, in order.
    pub fn resources(&self) -> impl Iterator<Item = ResourceIx> + '_ {
        self.entries.iter().map(|entry| entry.resource)
    }

    /// How many such pods would fit if nothing else were there.
    pub fn fit_count_if_empty(&self, requests: &Requests) -> u32 {
        let most = |(resource, amount): (ResourceIx, Amount)| {
            let at = self.entries.binary_search_by_key(&resource, |e| e.resource);
            at.map_or(0, |at| self.entries[at].allocatable.max(0) / amount)
        };
        let most = requests.iter().map(most).min().unwrap_or(0);
        u32::try_from(most).unwrap_or(u32::MAX)
    }

    /// The resources of which not even one such pod finds enough, in order.
    pub fn short<'a>(&'a self, requests: &'a Requests) -> impl Iterator<Item = ResourceIx> + 'a {
        requests
            .iter()
            .filter(|(resource, amount)| self.free(*resource) < *amount)
            .map(|(resource, _)| resource)
    }

    /// The resources of which not even one such pod would find enough if nothing else were there.
    pub fn short_if_empty<'a>(&'a self, requests: &'a Requests) -> impl Iterator<Item = ResourceIx> + 'a {
        let there = |resource: ResourceIx| {
            let at = self.entries.binary_search_by_key(&resource, |e| e.resource);
            at.map_or(0, |at| self.entries[at].allocatable)
        };
        let short = requests.iter().filter(move |(resource, amount)| there(*resource) < *amount);
        short.map(|(resource, _)| resource)
    }

    /// The resources of which one such pod more would find too little once `count` are there.
    pub fn short_after<'a>(
        &'a self,
        requests: &'a Requests,
        count: u32,
    ) -> impl Iterator<Item = ResourceIx> + 'a {
        let needed = move |amount: Amount| i128::from(amount) * (i128::from(count) + 1);
        let short = requests.iter();
        let short =
            short.filter(move |(resource, amount)| i128::from(self.free(*resource)) < needed(*amount));
        short.map(|(resource, _)| resource)
    }

    /// What is left of a resource; zero if the node has none of it, below zero if it is over-full.
    pub fn free(&self, resource: ResourceIx) -> Amount {
        self.entries.binary_search_by_key(&resource, |e| e.resource).map_or(0, |at| self.entries[at].free)
    }

    fn shift(&mut self, requests: &Requests, times: i128) {
        let mut emptied = false;
        for (resource, amount) in requests.iter() {
            let at = self.slot(resource);
            let entry = &mut self.entries[at];
            entry.used += i128::from(amount) * times;
            entry.free = clamp(i128::from(entry.allocatable) - entry.used);
            emptied |= entry.used == 0 && entry.allocatable == 0;
        }
        if emptied {
            self.settle();
        }
    }

    /// Where the resource stands, after making room for it if it is new here.
    fn slot(&mut self, resource: ResourceIx) -> usize {
        match self.entries.binary_search_by_key(&resource, |e| e.resource) {
            Ok(at) => at,
            Err(at) => {
                self.entries.insert(at, Entry { resource, allocatable: 0, used: 0, free: 0 });
                at
            }
        }
    }

    /// Recomputes what is left and forgets resources that are neither there nor taken.
    fn settle(&mut self) {
        self.entries.retain(|e| e.allocatable != 0 || e.used != 0);
        for entry in &mut self.entries {
            entry.free = clamp(i128::from(entry.allocatable) - entry.used);
        }
    }
}

fn clamp(amount: i128) -> Amount {
    let within = amount.clamp(i128::from(Amount::MIN), i128::from(Amount::MAX));
    Amount::try_from(within).expect("just clamped")
}

#[cfg(test)]
mod tests;
