//! Victims by priority and by whose quota it is (Kueue's preemption without fair sharing).

use super::cheapest;
use super::{Candidate, Cause, Choice, Preemptor, Room, Victims, order, uses};
use crate::event::Preemptible;
use crate::quota::kueue::{Tree, Trial};

/// By what right a candidate may be preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Right {
    /// It is of the same queue.
    SameQueue,
    /// The preemptor's queue, or a cohort above it that is not above the candidate's, has quota for it.
    OwnQuota,
    /// Only if the preemptor's queue does not borrow when all is done.
    WithoutBorrowing,
    /// Also if it does.
    WhileBorrowing,
}

impl Right {
    fn cause(self) -> Cause {
        match self {
            Self::SameQueue => Cause::WithinQueue,
            Self::OwnQuota | Self::WithoutBorrowing => Cause::Reclaim,
            Self::WhileBorrowing => Cause::ReclaimWhileBorrowing,
        }
    }
}

/// A candidate with what the trial knows of it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Its position among the candidates.
    pub(super) at: usize,
    pub(super) queue: usize,
    pub(super) take: Vec<(usize, i128)>,
    pub(super) right: Right,
    /// The first cohort that is above both queues.
    meeting: Option<usize>,
}

/// What victims are chosen on.
pub(super) struct Field<'a> {
    pub(super) trial: Trial,
    pub(super) queue: usize,
    pub(super) want: Vec<(usize, i128)>,
    short: Vec<usize>,
    pub(super) candidates: &'a [Candidate<'a>],
    /// In Kueue's order.
    pub(super) entries: Vec<Entry>,
}

pub(super) fn victims(
    tree: &Tree,
    preemptor: &Preemptor<'_>,
    candidates: &[Candidate<'_>],
    choice: Choice,
    room: &mut dyn Room,
) -> Option<Victims> {
    let mut field = Field::new(tree, preemptor, candidates)?;
    let mut best: Option<Vec<usize>> = None;
    for borrowing in field.attempts(preemptor) {
        let found = match choice {
            Choice::Kueues => field.kueues(borrowing, room),
            Choice::Cheapest => cheapest::victims(&mut field, borrowing, room),
        };
        let Some(found) = found else { continue };
        if choice == Choice::Kueues {
            best = Some(found);
            break;
        }
        let better = best.as_ref().is_none_or(|best| field.cost(&found) < field.cost(best));
        best = if better { Some(found) } else { best };
    }
    let cause = |entry: usize| (field.entries[entry].at, field.entries[entry].right.cause());
    best.map(|victims| victims.into_iter().map(cause).collect())
}

impl<'a> Field<'a> {
    pub(super) fn new(
        tree: &Tree,
        preemptor: &Preemptor<'_>,
        candidates: &'a [Candidate<'a>],
    ) -> Option<Self> {
        let theirs = candidates.iter().map(|candidate| &candidate.queue);
        let trial = Trial::new(tree, preemptor.queue, theirs, preemptor.usage.keys().cloned())?;
        let queue = trial.queue(preemptor.queue)?;
        let want = trial.take(preemptor.usage.iter());
        let short: Vec<usize> = {
            let named = preemptor.usage.iter().filter(|(what, _)| preemptor.short.contains(what));
            trial.take(named).into_iter().map(|(what, _)| what).collect()
        };
        let mut field = Self { trial, queue, want, short, candidates, entries: Vec::new() };
        field.collect(preemptor);
        Some(field)
    }

    /// All whom the preemptor may have evicted, in Kueue's order: those over whom the tree gives it the
    /// advantage, then those of other queues, then those of its own; who leaves already before all.
    fn collect(&mut self, preemptor: &Preemptor<'_>) {
        let mut groups: [Vec<Entry>; 3] = Default::default();
        let meetings = self.meetings(preemptor);
        for (at, candidate) in self.candidates.iter().enumerate() {
            let Some(queue) = self.trial.queue(&candidate.queue) else { continue };
            if !uses(candidate, preemptor.short) {
                continue;
            }
            let (group, right, meeting) = if queue == self.queue {
                if !preemptor.may(preemptor.rules.within_queue, candidate) {
                    continue;
                }
                (2, Right::SameQueue, None)
            } else {
                let Some((meeting, advantage)) = meetings[queue] else { continue };
                if !preemptor.may(preemptor.rules.reclaim, candidate) {
                    continue;
                }
                match advantage {
                    true => (0, Right::OwnQuota, Some(meeting)),
                    false => (1, right_without_advantage(preemptor, candidate), Some(meeting)),
                }
            };
            let take = self.trial.take(candidate.usage.iter());
            groups[group].push(Entry { at, queue, take, right, meeting });
        }
        for group in &mut groups {
            group.sort_by(|a, b| order(preemptor, &self.candidates[a.at], &self.candidates[b.at]));
        }
        let (leaving, staying): (Vec<Entry>, Vec<Entry>) =
            groups.into_iter().flatten().partition(|entry| self.candidates[entry.at].leaving);
        self.entries = leaving.into_iter().chain(staying).collect();
    }

    /// Per node, for queues that use more than their own in subtrees that do: where they meet the
    /// preemptor's queue, and whether the tree gives that one the advantage.
    fn meetings(&self, preemptor: &Preemptor<'_>) -> Vec<Option<(usize, bool)>> {
        let mut meetings = vec![None; self.trial.len()];
        if preemptor.rules.reclaim == Preemptible::Never {
            return meetings;
        }
        let (mut advantage, mut rest) = self.trial.fits_own(self.queue, &self.want);
        let mut below = self.queue;
        for cohort in self.trial.above(self.queue) {
            self.meet_below(cohort, below, (cohort, advantage), &mut meetings);
            let (fits, more) = self.trial.fits_own(cohort, &rest);
            rest = more;
            advantage |= fits;
            below = cohort;
        }
        meetings
    }

    fn meet_below(
        &self,
        cohort: usize,
        skipped: usize,
        meeting: (usize, bool),
        meetings: &mut [Option<(usize, bool)>],
    ) {
        for child in self.trial.child_cohorts(cohort) {
            if child != skipped && !self.trial.is_within(child, &self.short) {
                self.meet_below(child, skipped, meeting, meetings);
            }
        }
        for child in self.trial.child_queues(cohort) {
            if child != self.queue && !self.trial.is_within(child, &self.short) {
                meetings[child] = Some(meeting);
            }
        }
    }

    /// Whether to look for victims with which the preemptor borrows, in this order.
    fn attempts(&self, preemptor: &Preemptor<'_>) -> Vec<bool> {
        let forbidden = preemptor.rules.while_borrowing.is_none();
        let others = self.entries.iter().any(|entry| entry.right != Right::SameQueue);
        let advantage = self.entries.iter().any(|entry| entry.right == Right::OwnQuota);
        if !others || (forbidden && !self.trial.is_under_nominal(self.queue, &self.short)) {
            vec![true]
        } else if forbidden && !advantage {
            vec![false, true]
        } else {
            vec![true, false]
        }
    }

    /// Kueue's choice: in order until it fits, then back in reverse order who was not needed.
    fn kueues(&mut self, borrowing: bool, room: &mut dyn Room) -> Option<Vec<usize>> {
        let mut gone: Vec<usize> = Vec::new();
        let mut found = false;
        for entry in 0..self.entries.len() {
            if !self.is_valid(entry, borrowing) {
                continue;
            }
            self.remove(entry);
            gone.push(entry);
            if self.quota_suffices(borrowing) && room.suffices(&self.positions(&gone)) {
                found = true;
                break;
            }
        }
        if found {
            // In this order and with this exchange, so that what is given back is what Kueue gives back.
            for at in (0..gone.len() - 1).rev() {
                let entry = gone[at];
                self.put_back(entry);
                let mut rest = gone.clone();
                rest.swap_remove(at);
                if self.quota_suffices(borrowing) && room.suffices(&self.positions(&rest)) {
                    gone = rest;
                } else {
                    self.remove(entry);
                }
            }
        }
        gone.iter().for_each(|entry| self.put_back(*entry));
        found.then_some(gone)
    }

    /// Whether an entry may be preempted as things are now: its queue and the cohorts below where it meets
    /// the preemptor's still use more than their own.
    pub(super) fn is_valid(&self, entry: usize, borrowing: bool) -> bool {
        let entry = &self.entries[entry];
        if entry.right == Right::SameQueue {
            return true;
        }
        if borrowing && entry.right == Right::WithoutBorrowing {
            return false;
        }
        let path = std::iter::once(entry.queue).chain(self.trial.above(entry.queue));
        path.take_while(|at| Some(*at) != entry.meeting).all(|at| !self.trial.is_within(at, &self.short))
    }

    pub(super) fn quota_suffices(&self, borrowing: bool) -> bool {
        let borrows = || self.want.iter().any(|(what, sum)| self.trial.borrows_with(self.queue, *what, *sum));
        self.trial.fits(self.queue, &self.want) && (borrowing || !borrows())
    }

    pub(super) fn remove(&mut self, entry: usize) {
        let entry = &self.entries[entry];
        self.trial.change(entry.queue, &entry.take, -1);
    }

    pub(super) fn put_back(&mut self, entry: usize) {
        let entry = &self.entries[entry];
        self.trial.change(entry.queue, &entry.take, 1);
    }

    pub(super) fn positions(&self, entries: &[usize]) -> Vec<usize> {
        entries.iter().map(|entry| self.entries[*entry].at).collect()
    }
}

fn right_without_advantage(preemptor: &Preemptor<'_>, candidate: &Candidate<'_>) -> Right {
    let Some(rule) = preemptor.rules.while_borrowing else { return Right::WithoutBorrowing };
    let above = rule.priority_max.is_some_and(|most| candidate.priority > most);
    let back = preemptor.evicted_by.contains(&candidate.id);
    match candidate.priority >= preemptor.priority || above || back {
        true => Right::WithoutBorrowing,
        false => Right::WhileBorrowing,
    }
}
