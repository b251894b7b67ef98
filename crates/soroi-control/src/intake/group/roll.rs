//! The members of a group, counted.
//!
//! Kept as pods come, change and go, one at a time, so that a look at a group costs as much as it has
//! kinds of pods, and not as much as it has pods. A pod counts by what its facts say alone. Must never
//! know what was decided.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use soroi_engine::event::{Name, PodPhase, Shape, TopologyRequest};

use crate::intake::{Invalid, PodFacts};

/// Pods of one kind are interchangeable: their role and what each needs.
pub type Kind = (Option<Name>, Arc<Shape>);

/// Members, counted. What was added is to be removed with the same facts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roll {
    phases: BTreeMap<(Option<Name>, PodPhase), u32>,
    kinds: BTreeMap<Kind, OfKind>,
    /// Members that did not end well and that nobody can honour: by name and uid.
    invalid: BTreeMap<(Name, Name), Invalid>,
    /// Of those that did not end well.
    priorities: BTreeMap<i32, u32>,
    /// Of those that did not end well.
    schedulers: BTreeMap<Name, u32>,
    /// The LocalQueues that members name.
    queues: BTreeMap<Name, u32>,
    /// By uid: those that wait for us to bind them, by the reason that they show for it.
    waiting: BTreeMap<Option<Name>, BTreeSet<Name>>,
    /// By uid: those that have their node and neither ended nor are on their way out.
    staying: BTreeSet<Name>,
    /// How many are on their way out of their node.
    leaving: u32,
    /// How many of those with a node are ready or ended well.
    well: u32,
    /// How many of those that stay on their node are not ready.
    unready: u32,
}

/// The members of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
struct OfKind {
    /// By uid: those that run or may run, and where they want to be.
    live: BTreeMap<Name, TopologyRequest>,
    /// By what they want: the names of all that did not end well.
    topologies: BTreeMap<TopologyRequest, BTreeSet<Name>>,
    /// How many ended well.
    succeeded: u32,
}

/// Adds one to a count or takes one away; what is nought is forgotten.
fn count<K: Ord>(counts: &mut BTreeMap<K, u32>, key: K, more: bool) {
    let count = counts.entry(key);
    match (more, count) {
        (true, count) => *count.or_default() += 1,
        (false, std::collections::btree_map::Entry::Occupied(mut count)) => match count.get() {
            0 | 1 => _ = count.remove(),
            _ => *count.get_mut() -= 1,
        },
        (false, _) => {}
    }
}

/// Puts a name into a set or takes it out; what is empty is forgotten.
fn note<K: Ord>(sets: &mut BTreeMap<K, BTreeSet<Name>>, key: K, name: &Name, more: bool) {
    if more {
        sets.entry(key).or_default().insert(name.clone());
    } else if let Some(names) = sets.get_mut(&key) {
        names.remove(name);
        if names.is_empty() {
            sets.remove(&key);
        }
    }
}

impl Roll {
    /// A member is there.
    pub fn add(&mut self, pod: &PodFacts) {
        self.change(pod, true);
    }

    /// It is not, or not like this.
    pub fn remove(&mut self, pod: &PodFacts) {
        self.change(pod, false);
    }

    /// Whether it counts nobody.
    pub fn is_empty(&self) -> bool {
        self.phases.is_empty()
    }

    fn change(&mut self, member: &PodFacts, more: bool) {
        let pod = &member.pod;
        count(&mut self.phases, (pod.role.clone(), pod.phase), more);
        if let Some(queue) = &member.queue {
            count(&mut self.queues, queue.clone(), more);
        }
        self.change_kind(member, more);
        if pod.phase != PodPhase::Succeeded {
            count(&mut self.priorities, member.priority, more);
            count(&mut self.schedulers, member.scheduler.clone(), more);
            if let Some(invalid) = &member.invalid {
                let key = (pod.name.clone(), pod.uid.clone());
                match more {
                    true => _ = self.invalid.insert(key, invalid.clone()),
                    false => _ = self.invalid.remove(&key),
                }
            }
        }
        if member.waits_to_be_bound() {
            note(&mut self.waiting, member.shown_reason(), &pod.uid, more);
        }
        if pod.node.is_some() {
            self.change_on_node(member, more);
        }
    }

    fn change_kind(&mut self, member: &PodFacts, more: bool) {
        let pod = &member.pod;
        let kind = (pod.role.clone(), pod.shape.clone());
        let of_kind = self.kinds.entry(kind.clone()).or_default();
        if pod.phase == PodPhase::Succeeded {
            of_kind.succeeded =
                if more { of_kind.succeeded + 1 } else { of_kind.succeeded.saturating_sub(1) };
        } else {
            note(&mut of_kind.topologies, member.topology.clone(), &pod.name, more);
        }
        match (pod.is_live(), more) {
            (true, true) => _ = of_kind.live.insert(pod.uid.clone(), member.topology.clone()),
            (true, false) => _ = of_kind.live.remove(&pod.uid),
            (false, _) => {}
        }
        if *of_kind == OfKind::default() {
            self.kinds.remove(&kind);
        }
    }

    fn change_on_node(&mut self, member: &PodFacts, more: bool) {
        let pod = &member.pod;
        let step = |count: &mut u32| *count = if more { *count + 1 } else { count.saturating_sub(1) };
        if pod.is_live() {
            match more {
                true => _ = self.staying.insert(pod.uid.clone()),
                false => _ = self.staying.remove(&pod.uid),
            }
            step(if member.ready { &mut self.well } else { &mut self.unready });
        } else if pod.phase == PodPhase::Succeeded {
            step(&mut self.well);
        } else if !pod.is_terminal() {
            step(&mut self.leaving);
        }
    }
}

impl<'a> FromIterator<&'a PodFacts> for Roll {
    fn from_iter<I: IntoIterator<Item = &'a PodFacts>>(members: I) -> Self {
        let mut roll = Self::default();
        members.into_iter().for_each(|member| roll.add(member));
        roll
    }
}

/// Several rolls, read as one: a group's own pods, and those of each Job that feeds it.
#[derive(Clone, Debug, Default)]
pub struct Rolls<'a>(Vec<&'a Roll>);

impl<'a> FromIterator<&'a Roll> for Rolls<'a> {
    fn from_iter<I: IntoIterator<Item = &'a Roll>>(rolls: I) -> Self {
        Self(rolls.into_iter().collect())
    }
}

impl<'a> From<&'a Roll> for Rolls<'a> {
    fn from(roll: &'a Roll) -> Self {
        Self(vec![roll])
    }
}

impl<'a> Rolls<'a> {
    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|roll| roll.is_empty())
    }

    /// How many members there are of each role and phase.
    pub fn phases(&self) -> impl Iterator<Item = (Option<&'a Name>, PodPhase, u32)> {
        let each = self.0.iter().flat_map(|roll| &roll.phases);
        each.map(|((role, phase), count)| (role.as_ref(), *phase, *count))
    }

    /// How many of each role are in a phase like this.
    pub fn by_role(&self, of: impl Fn(PodPhase) -> bool) -> impl Iterator<Item = (Option<&'a Name>, u32)> {
        self.phases().filter(move |(_, phase, _)| of(*phase)).map(|(role, _, count)| (role, count))
    }

    /// How many are in a phase like this.
    pub fn count(&self, of: impl Fn(PodPhase) -> bool) -> u32 {
        self.by_role(of).fold(0, |sum: u32, (_, count)| sum.saturating_add(count))
    }

    /// The highest priority of a member that did not end well.
    pub fn priority(&self) -> Option<i32> {
        self.0.iter().filter_map(|roll| roll.priorities.last_key_value()).map(|(priority, _)| *priority).max()
    }

    /// The first LocalQueue, by name, that a member names.
    pub fn queue(&self) -> Option<&'a Name> {
        self.0.iter().filter_map(|roll| roll.queues.keys().next()).min()
    }

    /// The schedulers that members name which did not end well, in order of their names.
    pub fn schedulers(&self) -> BTreeSet<&'a Name> {
        self.0.iter().flat_map(|roll| roll.schedulers.keys()).collect()
    }

    /// How many of each kind ended well.
    pub fn succeeded(&self) -> impl Iterator<Item = (&'a Kind, u32)> {
        let kinds = self.0.iter().flat_map(|roll| &roll.kinds);
        kinds.filter(|(_, of_kind)| of_kind.succeeded > 0).map(|(kind, of_kind)| (kind, of_kind.succeeded))
    }

    /// The kinds of the members that run or may run: how many, and the first by uid with its topology.
    pub fn live(&self) -> BTreeMap<&'a Kind, (u32, &'a Name, &'a TopologyRequest)> {
        let mut all: BTreeMap<&Kind, (u32, &Name, &TopologyRequest)> = BTreeMap::new();
        for (kind, of_kind) in self.0.iter().flat_map(|roll| &roll.kinds) {
            let Some((first, topology)) = of_kind.live.first_key_value() else { continue };
            let more = u32::try_from(of_kind.live.len()).unwrap_or(u32::MAX);
            let there = all.entry(kind).or_insert((0, first, topology));
            there.0 = there.0.saturating_add(more);
            if first < there.1 {
                (there.1, there.2) = (first, topology);
            }
        }
        all
    }

    /// The first member, by name, that asks for what nobody here would honour, and for what.
    pub fn invalid(&self) -> Option<(&'a Name, &'a Invalid)> {
        let each = self.0.iter().filter_map(|roll| roll.invalid.first_key_value());
        each.map(|((name, _), invalid)| (name, invalid)).min_by_key(|(name, _)| *name)
    }

    /// The first member of a kind, by name, that wants to be elsewhere than this.
    pub fn elsewhere(&self, role: Option<&Name>, shape: &Shape, than: &TopologyRequest) -> Option<&'a Name> {
        let kinds = self.0.iter().flat_map(|roll| &roll.kinds);
        let kinds = kinds.filter(|(kind, _)| kind.0.as_ref() == role && *kind.1 == *shape);
        let others =
            kinds.flat_map(|(_, of_kind)| &of_kind.topologies).filter(|(topology, _)| *topology != than);
        others.filter_map(|(_, names)| names.first()).min()
    }

    /// The uids of those that wait for us to bind them and do not show this reason for it.
    pub fn untold(&self, reason: &str) -> impl Iterator<Item = &'a Name> {
        let all = self.0.iter().flat_map(|roll| &roll.waiting);
        all.filter(move |(shown, _)| shown.as_deref() != Some(reason)).flat_map(|(_, uids)| uids)
    }

    /// Whether any waits for us to bind it.
    pub fn any_waits(&self) -> bool {
        self.0.iter().any(|roll| !roll.waiting.is_empty())
    }

    /// The uids of those that have their node and neither ended nor are on their way out.
    pub fn staying(&self) -> impl Iterator<Item = &'a Name> {
        self.0.iter().flat_map(|roll| &roll.staying)
    }

    /// Whether any still takes its place on a node.
    pub fn any_there(&self) -> bool {
        self.0.iter().any(|roll| roll.leaving > 0 || !roll.staying.is_empty())
    }

    /// How many of those with a node are ready or ended well.
    pub fn well(&self) -> u32 {
        self.0.iter().fold(0, |sum: u32, roll| sum.saturating_add(roll.well))
    }

    /// Whether all that stay on their node are ready.
    pub fn all_ready(&self) -> bool {
        self.0.iter().all(|roll| roll.unready == 0)
    }
}

#[cfg(test)]
mod tests;
