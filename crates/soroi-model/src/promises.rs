//! What must hold? In every state, and at rest.
//!
//! Knows the objects and what leaders keep in mind. Must never know how a state came about.

use std::fmt;

use crate::rules::Bounds;
use crate::state::{Course, GANGS, Gang, Job, MEMBERS, Mode, Phase, Stage, State};

/// A promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// No binding takes effect unless every member was created since the release, and a plan says where
    /// each belongs. With sleepers too.
    BoundWhole,
    /// No leader keeps one slot that it gave away for another member. (It may find that plans do: a place
    /// that was given up is in its plan until another one is found.) Under sleepers: but for members
    /// whose bindings came too late, and who are where they are.
    PlacesOnce,
    /// No two members of gangs sit in one slot. Under sleepers: no more than bindings came too late.
    SlotsOnce,
    /// Decisions that stand, and pods in slots, never use more than the quota. Under sleepers: pods in
    /// slots do not, but for those whose bindings came too late.
    QuotaOnce,
    /// A Job runs only under a plan. Under sleepers it may be released for nothing; it is stopped again,
    /// and [`Self::BoundWhole`] holds.
    RunsUnderPlan,
    /// No pod of a Job that runs is deleted by a leader.
    NeverRobbed,
    /// When nothing is left to do, every gang is whole or holds nothing, and leaders think the same.
    WholeAtRest,
    /// From every state such a rest can be reached without another fault: under fair scheduling it is.
    ComesToRest,
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Those that can be told from one state.
const AT_ONCE: [Promise; 6] = [
    Promise::BoundWhole,
    Promise::NeverRobbed,
    Promise::SlotsOnce,
    Promise::QuotaOnce,
    Promise::PlacesOnce,
    Promise::RunsUnderPlan,
];

/// The first promise that this state breaks.
pub fn broken(bounds: &Bounds, state: &State) -> Option<Promise> {
    AT_ONCE.into_iter().find(|promise| !is_kept(*promise, bounds, !bounds.sleepers, state))
}

/// The promises that this state would break if it were not for sleepers.
pub fn strained(bounds: &Bounds, state: &State) -> impl Iterator<Item = Promise> {
    AT_ONCE.into_iter().filter(|promise| !is_kept(*promise, bounds, true, state))
}

fn is_kept(promise: Promise, bounds: &Bounds, strict: bool, state: &State) -> bool {
    let excused = if strict { 0 } else { usize::from(state.overdue_binds) };
    match promise {
        Promise::BoundWhole => !state.bound_early,
        Promise::NeverRobbed => !state.robbed,
        Promise::SlotsOnce => too_many_in_slots(bounds, state) <= excused,
        Promise::QuotaOnce => quota_used(strict, state) <= usize::from(bounds.quota) + excused,
        Promise::PlacesOnce => state.replicas.iter().all(|one| given_twice(&one.courses) <= excused),
        Promise::RunsUnderPlan => !strict || runs_under_plan(state),
        Promise::WholeAtRest | Promise::ComesToRest => true,
    }
}

/// Whether a state in which nothing is left to do is as it should be.
pub fn is_good_rest(state: &State) -> bool {
    let leads = |mode: Mode| mode == Mode::Leading;
    let gangs = || (0..GANGS).map(|at| (&state.objects.gangs[at], at));
    let known = |at: usize, stage: Stage| {
        let leaders = state.replicas.iter().filter(|one| leads(one.mode));
        leaders.map(|one| &one.courses[at]).all(|course| course.stage == stage && !course.lingers)
    };
    let settled = gangs().all(|(gang, at)| {
        gang.is_whole() && known(at, Stage::Committed) || gang.holds_nothing() && known(at, Stage::Waiting)
    });
    settled && state.late.iter().all(Option::is_none) && state.replicas.iter().any(|one| leads(one.mode))
}

fn too_many_in_slots(bounds: &Bounds, state: &State) -> usize {
    (0..bounds.slots).map(|slot| state.objects.members_in(slot).saturating_sub(1)).sum()
}

/// Of decisions that stand and of pods in slots; if not `strict`, of the latter alone.
fn quota_used(strict: bool, state: &State) -> usize {
    let of_gang = |gang: &Gang| {
        let in_slots = gang.pods.iter().filter(|pod| pod.slot().is_some()).count();
        let stands = gang.plan.is_some_and(|plan| plan.phase == Phase::Committed) || gang.reserved;
        match strict {
            false => in_slots,
            true if stands || in_slots > 0 => MEMBERS,
            true => 0,
        }
    };
    state.objects.gangs.iter().map(of_gang).sum()
}

fn given_twice(courses: &[Course; GANGS]) -> usize {
    let given = courses.iter().filter(|course| course.keeps_seats() && !course.found);
    let mut slots: Vec<_> = given.flat_map(|course| course.seats).flatten().collect();
    let all = slots.len();
    slots.sort_unstable();
    slots.dedup();
    all - slots.len()
}

fn runs_under_plan(state: &State) -> bool {
    state.objects.gangs.iter().all(|gang| gang.job != Job::Running || gang.plan.is_some())
}
