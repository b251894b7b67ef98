//! Whose turn is it under fair sharing? Of the heads of all queues of a cohort the one with which the
//! shares stay lowest (Kueue 0.18, `fair_sharing_iterator`): at every cohort, from the bottom up, whoever
//! does not make his branch borrow comes first, then the lower share with the head, then priority, then time.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::event::Name;
use crate::queue::Turn;
use crate::quota::kueue::{Share, Take, Tree, Trial};
use crate::quota::{FlavorResource, Sum};

/// A gang that is the first of its queue.
pub(super) struct Head<'a> {
    pub(super) turn: &'a Turn,
    pub(super) queue: &'a Name,
    /// What it would use.
    pub(super) usage: &'a BTreeMap<FlavorResource, Sum>,
}

/// The position of the head that is decided next, among those of one tree.
pub(super) fn fairest(tree: &Tree, heads: &[Head<'_>]) -> Option<usize> {
    let first = heads.first()?;
    let queues = heads.iter().map(|head| head.queue);
    let Some(mut trial) = Trial::with_all_resources(tree, first.queue, queues) else { return Some(0) };
    let mut entries: BTreeMap<usize, Entry> = BTreeMap::new();
    for (at, head) in heads.iter().enumerate() {
        // Of two heads of one queue, which there are not, the first counts.
        if let Some(queue) = trial.queue(head.queue) {
            let shares = shares_with(&mut trial, queue, head.usage);
            entries.entry(queue).or_insert(Entry { at, shares });
        }
    }
    let top = trial.queue(first.queue).and_then(|queue| trial.above(queue).last());
    match top {
        None => Some(0),
        Some(top) => winner(&trial, top, &entries, heads).or(Some(0)),
    }
}

/// A head, and per cohort above it the share of the branch that it is in, with it; and whether that branch
/// borrows something that it asks for.
struct Entry {
    at: usize,
    shares: BTreeMap<usize, (bool, Share)>,
}

fn shares_with(
    trial: &mut Trial,
    queue: usize,
    usage: &BTreeMap<FlavorResource, Sum>,
) -> BTreeMap<usize, (bool, Share)> {
    let take: Take = trial.take(usage.iter());
    trial.change(queue, &take, 1);
    let asked: Vec<usize> = take.iter().filter(|(_, sum)| *sum > 0).map(|(what, _)| *what).collect();
    let mut shares = BTreeMap::new();
    let mut branch = queue;
    for cohort in trial.above(queue).collect::<Vec<_>>() {
        let borrows = asked.iter().any(|what| trial.borrows_with(branch, *what, 0));
        shares.insert(cohort, (borrows, trial.share(branch)));
        branch = cohort;
    }
    trial.change(queue, &take, -1);
    shares
}

fn winner(
    trial: &Trial,
    cohort: usize,
    entries: &BTreeMap<usize, Entry>,
    heads: &[Head<'_>],
) -> Option<usize> {
    let below = trial.child_cohorts(cohort).filter_map(|child| winner(trial, child, entries, heads));
    let own = trial.child_queues(cohort).filter_map(|queue| entries.get(&queue)).map(|entry| entry.at);
    let by_head: BTreeMap<usize, &Entry> = entries.values().map(|entry| (entry.at, entry)).collect();
    below.chain(own).min_by(|one, other| {
        let (borrows, share) = by_head[one].shares[&cohort];
        let (other_borrows, other_share) = by_head[other].shares[&cohort];
        borrows
            .cmp(&other_borrows)
            .then_with(|| share.compare(other_share))
            .then_with(|| heads[*one].turn.cmp(heads[*other].turn))
            .then(Ordering::Equal)
    })
}
