//! Victims under fair sharing (Kueue 0.18, `pkg/scheduler/preemption/fairsharing`): from the queue with the
//! largest share, as long as that is fair.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Candidate, Cause, FairRule, Preemptor, Room, Victims, order, uses};
use crate::event::Preemptible;
use crate::quota::kueue::{Share, Tree, Trial};

/// What victims are chosen on.
struct Field<'a> {
    preemptor: &'a Preemptor<'a>,
    trial: Trial,
    queue: usize,
    want: Vec<(usize, i128)>,
    short: Vec<usize>,
    candidates: &'a [Candidate<'a>],
    takes: BTreeMap<usize, (usize, Vec<(usize, i128)>)>,
}

pub(super) fn victims(
    tree: &Tree,
    preemptor: &Preemptor<'_>,
    candidates: &[Candidate<'_>],
    rules: &[FairRule],
    room: &mut dyn Room,
) -> Option<Victims> {
    let mut field = Field::new(tree, preemptor, candidates)?;
    let allowed = field.allowed();
    if allowed.is_empty() {
        return None;
    }
    let (first, second) = (rules.first().copied()?, rules.get(1).copied());
    // Shares are those with the preemptor.
    field.trial.change(field.queue, &field.want.clone(), 1);
    let mut victims = Victims::new();
    let mut left_over = Vec::new();
    let mut fits = field.first_rule(first, allowed, room, &mut victims, &mut left_over);
    if !fits && second.is_some() {
        fits = field.second_rule(left_over, room, &mut victims);
    }
    field.trial.change(field.queue, &field.want.clone(), -1);
    if !fits {
        return None;
    }
    field.give_back(&mut victims, room);
    Some(victims)
}

impl<'a> Field<'a> {
    fn new(tree: &Tree, preemptor: &'a Preemptor<'a>, candidates: &'a [Candidate<'a>]) -> Option<Self> {
        let theirs = candidates.iter().map(|candidate| &candidate.queue);
        let trial = Trial::with_all_resources(tree, preemptor.queue, theirs)?;
        let queue = trial.queue(preemptor.queue)?;
        let want = trial.take(preemptor.usage.iter());
        let short = {
            let named = preemptor.usage.iter().filter(|(what, _)| preemptor.short.contains(what));
            trial.take(named).into_iter().map(|(what, _)| what).collect()
        };
        Some(Self { preemptor, trial, queue, want, short, candidates, takes: BTreeMap::new() })
    }

    /// All whom the preemptor may have evicted, in Kueue's order.
    fn allowed(&mut self) -> Vec<usize> {
        let rules = &self.preemptor.rules;
        let mut allowed = Vec::new();
        for (at, candidate) in self.candidates.iter().enumerate() {
            let Some(queue) = self.trial.queue(&candidate.queue) else { continue };
            let rule = if queue == self.queue { rules.within_queue } else { rules.reclaim };
            let reclaims = queue == self.queue
                || (rule != Preemptible::Never && !self.trial.is_within(queue, &self.short));
            if reclaims && uses(candidate, self.preemptor.short) && self.preemptor.may(rule, candidate) {
                let take = self.trial.take(candidate.usage.iter());
                self.takes.insert(at, (queue, take));
                allowed.push(at);
            }
        }
        allowed.sort_by(|a, b| order(self.preemptor, &self.candidates[*a], &self.candidates[*b]));
        allowed
    }

    fn remove(&mut self, at: usize) {
        let (queue, take) = &self.takes[&at];
        self.trial.change(*queue, take, -1);
    }

    fn put_back(&mut self, at: usize) {
        let (queue, take) = &self.takes[&at];
        self.trial.change(*queue, take, 1);
    }

    /// Whether there is quota for the preemptor, which is counted in, and places.
    fn suffices(&mut self, victims: &Victims, room: &mut dyn Room) -> bool {
        let want = self.want.clone();
        self.trial.change(self.queue, &want, -1);
        let fits = self.trial.fits(self.queue, &want);
        self.trial.change(self.queue, &want, 1);
        fits && room.suffices(&victims.iter().map(|(at, _)| *at).collect::<Vec<_>>())
    }

    /// From the queue with the largest share, one after the other, while the rule allows it. Those that it
    /// does not allow are left over.
    fn first_rule(
        &mut self,
        rule: FairRule,
        allowed: Vec<usize>,
        room: &mut dyn Room,
        victims: &mut Victims,
        left_over: &mut Vec<usize>,
    ) -> bool {
        // Who stays within its own quota takes back what is its own, whatever the shares.
        let entitled = self.trial.is_within(self.queue, &self.short);
        let mut targets = Targets::new(self, allowed);
        while let Some(target) = targets.next(self) {
            let own = target == self.queue;
            if own || entitled {
                let at = targets.pop(target).expect("a target has candidates");
                let cause = if own { Cause::WithinQueue } else { Cause::Reclaim };
                self.remove(at);
                victims.push((at, cause));
                if self.suffices(victims, room) {
                    return true;
                }
                continue;
            }
            let (ours, theirs) = self.nearest_apart(target);
            let (ours_with, theirs_before) = (self.trial.share(ours), self.trial.share(theirs));
            while let Some(at) = targets.pop(target) {
                self.remove(at);
                let theirs_after = self.trial.share(theirs);
                let fair = match rule {
                    FairRule::LessThanOrEqualToFinalShare => {
                        ours_with.compare(theirs_after) != Ordering::Greater
                    }
                    FairRule::LessThanInitialShare => ours_with.compare(theirs_before) == Ordering::Less,
                };
                if !fair {
                    self.put_back(at);
                    left_over.push(at);
                    continue;
                }
                victims.push((at, Cause::FairSharing));
                if self.suffices(victims, room) {
                    return true;
                }
                // The largest share may be another queue's now.
                break;
            }
        }
        false
    }

    /// One more of each queue whose share is larger than the preemptor's.
    fn second_rule(&mut self, left_over: Vec<usize>, room: &mut dyn Room, victims: &mut Victims) -> bool {
        let mut targets = Targets::new(self, left_over);
        while let Some(target) = targets.next(self) {
            let (ours, theirs) = self.nearest_apart(target);
            let fair = self.trial.share(ours).compare(self.trial.share(theirs)) == Ordering::Less;
            let at = targets.pop(target).expect("a target has candidates");
            if fair {
                self.remove(at);
                victims.push((at, Cause::FairSharing));
                if self.suffices(victims, room) {
                    return true;
                }
            }
            targets.drop_queue(target);
        }
        false
    }

    /// The two nodes right below where the preemptor's queue and this one meet: theirs are the shares that
    /// are compared.
    fn nearest_apart(&self, target: usize) -> (usize, usize) {
        let ours: Vec<usize> = std::iter::once(self.queue).chain(self.trial.above(self.queue)).collect();
        let mut theirs = target;
        for above in self.trial.above(target) {
            if let Some(meeting) = ours.iter().position(|at| *at == above) {
                return (ours[meeting.saturating_sub(1)], theirs);
            }
            theirs = above;
        }
        (self.queue, target)
    }

    /// Kueue's order and exchange, so that it spares the same.
    fn give_back(&mut self, victims: &mut Victims, room: &mut dyn Room) {
        for at in (0..victims.len().saturating_sub(1)).rev() {
            let gone = victims[at].0;
            self.put_back(gone);
            let mut rest = victims.clone();
            rest.swap_remove(at);
            let positions: Vec<usize> = rest.iter().map(|(at, _)| *at).collect();
            if self.trial.fits(self.queue, &self.want) && room.suffices(&positions) {
                *victims = rest;
            } else {
                self.remove(gone);
            }
        }
    }
}

/// The queues from which victims may come, that of the largest share first.
struct Targets {
    by_queue: BTreeMap<usize, VecDeque<usize>>,
    above_ours: BTreeSet<usize>,
    done: BTreeSet<usize>,
    top: usize,
}

impl Targets {
    fn new(field: &Field<'_>, candidates: Vec<usize>) -> Self {
        let mut by_queue: BTreeMap<usize, VecDeque<usize>> = BTreeMap::new();
        for at in candidates {
            by_queue.entry(field.takes[&at].0).or_default().push_back(at);
        }
        let above_ours: BTreeSet<usize> = field.trial.above(field.queue).collect();
        let top = field.trial.above(field.queue).last().unwrap_or(field.queue);
        Self { by_queue, above_ours, done: BTreeSet::new(), top }
    }

    fn has(&self, queue: usize) -> bool {
        self.by_queue.get(&queue).is_some_and(|left| !left.is_empty())
    }

    fn pop(&mut self, queue: usize) -> Option<usize> {
        self.by_queue.get_mut(&queue)?.pop_front()
    }

    fn drop_queue(&mut self, queue: usize) {
        self.done.insert(queue);
    }

    fn next(&mut self, field: &Field<'_>) -> Option<usize> {
        if self.top == field.queue {
            return (self.has(field.queue) && !self.done.contains(&field.queue)).then_some(field.queue);
        }
        while !self.done.contains(&self.top) {
            if let Some(target) = self.below(field, self.top) {
                return Some(target);
            }
        }
        None
    }

    /// From a cohort down to the queue of the largest share. `None`: something below is out now; ask again.
    fn below(&mut self, field: &Field<'_>, cohort: usize) -> Option<usize> {
        let queue = self.largest_queue(field, cohort);
        let mut largest: Option<(Share, usize)> = None;
        for child in
            field.trial.child_cohorts(cohort).filter(|child| !self.done.contains(child)).collect::<Vec<_>>()
        {
            let share = field.trial.share(child);
            if !share.borrows && !self.above_ours.contains(&child) {
                self.done.insert(child);
            } else if largest.is_none_or(|(most, _)| share.compare(most) != Ordering::Less) {
                largest = Some((share, child));
            }
        }
        match (queue, largest) {
            (None, None) => {
                self.done.insert(cohort);
                None
            }
            // Whoever is least fair within a cohort is found there.
            (queue, Some((share, child)))
                if queue.is_none_or(|(most, _)| share.compare(most) != Ordering::Less) =>
            {
                self.below(field, child)
            }
            (queue, _) => queue.map(|(_, queue)| queue),
        }
    }

    fn largest_queue(&mut self, field: &Field<'_>, cohort: usize) -> Option<(Share, usize)> {
        let mut largest: Option<(Share, usize)> = None;
        for queue in field.trial.child_queues(cohort).collect::<Vec<_>>() {
            if self.done.contains(&queue) {
                continue;
            }
            let share = field.trial.share(queue);
            if (!share.borrows && queue != field.queue) || !self.has(queue) {
                self.done.insert(queue);
                continue;
            }
            let larger = match largest {
                None => true,
                Some((most, known)) => match share.compare(most) {
                    Ordering::Less => false,
                    Ordering::Greater => true,
                    Ordering::Equal => {
                        let first = |queue: usize| &field.candidates[self.by_queue[&queue][0]];
                        order(field.preemptor, first(queue), first(known)) == Ordering::Less
                    }
                },
            };
            if larger {
                largest = Some((share, queue));
            }
        }
        largest
    }
}
