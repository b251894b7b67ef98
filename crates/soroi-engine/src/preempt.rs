//! Who must leave so that it pays? Victims of a preemption, or nobody.
//!
//! Knows gangs that hold quota as candidates: whose queue, which priority, how old, how much. Whether
//! there are places once some have left is asked ([`Room`]). Must never know nodes, pods or how anybody is evicted.
//!
//! Whom a gang may have evicted at all are Kueue's rules (0.18, `pkg/scheduler/preemption`): those of its own
//! queue as `withinClusterQueue` says, and as `reclaimWithinCohort` says those of other queues as long as
//! these, and the cohorts between, use more than their own. Of all sets that are allowed and suffice, the
//! cheapest is chosen; where only quota counts, Kueue's own choice is made.
//!
//! A set is *allowed* if its members, taken away one by one in the order of `order` below, are each still
//! beyond their queue's quota: part of an allowed set is allowed. More absent gangs never make less room.
//! So a cheapest set is found by leaving out the dearest first.

mod cheapest;
mod classic;
mod fair;

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Amount, GangId, Millis, Name, Preemptible, Preemption};
use crate::quota::kueue::{Tree, Trial};
use crate::quota::{FlavorResource, Sum};

/// A gang that holds quota.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate<'a> {
    /// The gang.
    pub id: GangId,
    /// The ClusterQueue that pays.
    pub queue: Name,
    /// Its priority.
    pub priority: i32,
    /// The time stamp of its order.
    pub queued_at: Millis,
    /// When it got its quota.
    pub reserved_at: Millis,
    /// It is leaving already: it costs nothing.
    pub leaving: bool,
    /// What would be lost: how long it has run, times its pods.
    pub work: u64,
    /// What it uses.
    pub usage: Cow<'a, BTreeMap<FlavorResource, Amount>>,
}

/// A gang that others may have to leave for.
#[derive(Clone, Debug)]
pub struct Preemptor<'a> {
    /// Its ClusterQueue.
    pub queue: &'a Name,
    /// What that queue's gangs may preempt.
    pub rules: Preemption,
    /// Its priority.
    pub priority: i32,
    /// The time stamp of its order.
    pub queued_at: Millis,
    /// All that it wants of the quota.
    pub usage: &'a BTreeMap<FlavorResource, Sum>,
    /// Of that, what is short: only gangs that use some of it are candidates.
    pub short: &'a BTreeSet<FlavorResource>,
    /// Gangs that had it evicted. It has none of them evicted in turn while it borrows: the two would
    /// evict each other for ever.
    pub evicted_by: &'a BTreeSet<GangId>,
}

/// Why a victim may be preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// It is of the same queue.
    WithinQueue,
    /// Its queue uses what belongs to the preemptor's.
    Reclaim,
    /// The same, by a gang that borrows itself.
    ReclaimWhileBorrowing,
    /// Its queue has a larger share.
    FairSharing,
}

/// How victims are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// As Kueue does.
    Kueues,
    /// The cheapest set.
    Cheapest,
}

/// When gangs of other queues may be preempted under fair sharing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FairRule {
    /// Their queue's share, once they left, is no smaller than the preemptor's with it.
    LessThanOrEqualToFinalShare,
    /// Their queue's share now is larger than the preemptor's with it.
    LessThanInitialShare,
}

/// Whether there are places for the preemptor.
pub trait Room {
    /// Whether there are when these candidates, by position, have left.
    fn suffices(&mut self, gone: &[usize]) -> bool;
    /// Of these candidates (cheap ones first), some that make places where it costs little; nobody
    /// relies on it.
    fn suggest(&mut self, _among: &[usize]) -> Option<Vec<usize>> {
        None
    }
}

/// There are places everywhere: only quota counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Everywhere;

impl Room for Everywhere {
    fn suffices(&mut self, _: &[usize]) -> bool {
        true
    }
}

/// Victims, by position among the candidates, and why they may be preempted. In order of position.
pub type Victims = Vec<(usize, Cause)>;

/// Who has to leave for the preemptor; `None`: it would not help if all left who may be preempted. `fair`
/// are the rules of fair sharing in force, if it is.
pub fn victims(
    tree: &Tree,
    preemptor: &Preemptor<'_>,
    candidates: &[Candidate<'_>],
    choice: Choice,
    fair: Option<&[FairRule]>,
    room: &mut dyn Room,
) -> Option<Victims> {
    if candidates.is_empty() {
        return None;
    }
    let mut victims = match fair {
        Some(rules) => fair::victims(tree, preemptor, candidates, rules, room)?,
        None => classic::victims(tree, preemptor, candidates, choice, room)?,
    };
    victims.sort_unstable();
    Some(victims)
}

/// Whether Kueue looks for victims at all when a queue lacks `amount` (`flavorassigner.fitsResourceQuota`): what fits
/// into its own quota, or into a part of the cohorts, can be reclaimed; more only by those who may preempt while
/// they borrow. Under fair sharing those may that reclaim.
pub fn is_considered(
    tree: &Tree,
    queue: &Name,
    rules: Preemption,
    what: &FlavorResource,
    amount: Sum,
    fair: bool,
) -> bool {
    let nominal = tree.nominal(queue, what);
    let borrows_and_preempts =
        rules.while_borrowing.is_some() || (fair && rules.reclaim != Preemptible::Never);
    amount <= nominal || tree.fits_below_top(queue, what, amount) || borrows_and_preempts
}

impl Preemptor<'_> {
    /// Whether a rule allows it to have a candidate evicted, by priority and age.
    fn may(&self, rule: Preemptible, candidate: &Candidate<'_>) -> bool {
        allows(rule, (self.priority, self.queued_at), (candidate.priority, candidate.queued_at))
    }
}

/// What preemption could do about one flavor resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Possibility {
    /// Nobody could be evicted, or not enough.
    NoCandidates,
    /// Gangs of the same queue would have to go.
    Preempt,
    /// Only gangs of other queues would.
    Reclaim,
}

/// Whether preemption could make room for `preemptor.usage`, and how high in the cohorts it would
/// still borrow then (Kueue, `SimulatePreemption`).
pub fn possibility(
    tree: &Tree,
    preemptor: &Preemptor<'_>,
    candidates: &[Candidate<'_>],
    fair: Option<&[FairRule]>,
) -> (Possibility, u32) {
    let victims = victims(tree, preemptor, candidates, Choice::Kueues, fair, &mut Everywhere);
    let victims = victims.unwrap_or_default();
    if victims.is_empty() {
        let height = |(what, sum): (&FlavorResource, &Sum)| tree.borrow_height(preemptor.queue, what, *sum);
        return (Possibility::NoCandidates, preemptor.usage.iter().map(height).max().unwrap_or(0));
    }
    let whats = preemptor.usage.keys().cloned();
    let theirs = victims.iter().map(|(at, _)| &candidates[*at].queue);
    let Some(mut trial) = Trial::new(tree, preemptor.queue, theirs, whats) else {
        return (Possibility::NoCandidates, 0);
    };
    for (at, _) in &victims {
        let gone = &candidates[*at];
        if let Some(queue) = trial.queue(&gone.queue) {
            let take = trial.take(gone.usage.iter());
            trial.change(queue, &take, -1);
        }
    }
    let queue = trial.queue(preemptor.queue).expect("the trial was made for it");
    let borrow = trial.borrow_height(queue, &trial.take(preemptor.usage.iter()));
    let own = victims.iter().any(|(at, _)| candidates[*at].queue == *preemptor.queue);
    (if own { Possibility::Preempt } else { Possibility::Reclaim }, borrow)
}

/// Whether a rule allows to evict a gang, by priority and age of both.
pub(crate) fn allows(rule: Preemptible, ours: (i32, Millis), theirs: (i32, Millis)) -> bool {
    let lower = ours.0 > theirs.0;
    let newer = ours.0 == theirs.0 && ours.1 < theirs.1;
    match rule {
        Preemptible::Never => false,
        Preemptible::LowerPriority => lower,
        Preemptible::LowerOrNewerEqual => lower || newer,
        Preemptible::Any => true,
    }
}

/// Who is taken first (Kueue, `CandidatesOrdering`): who leaves already; those of other queues; lower
/// priority; who got quota later.
fn order(preemptor: &Preemptor<'_>, one: &Candidate<'_>, other: &Candidate<'_>) -> Ordering {
    let key =
        |c: &Candidate<'_>| (!c.leaving, c.queue == *preemptor.queue, c.priority, Reverse(c.reserved_at));
    key(one).cmp(&key(other)).then_with(|| one.id.cmp(&other.id))
}

/// A candidate that is known to the trial and uses something that is short.
fn uses(candidate: &Candidate<'_>, short: &BTreeSet<FlavorResource>) -> bool {
    candidate.usage.keys().any(|what| short.contains(what))
}

#[cfg(test)]
mod tests;
