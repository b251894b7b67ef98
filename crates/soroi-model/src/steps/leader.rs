//! What does a leader decide and want written, from what it has seen?
//!
//! As `soroi_control::carry` does it: every write is wished for as long as what is seen shows that it
//! is missing, and no longer. Looks at one replica's own knowledge only, never at the objects.

use super::Step;
use crate::rules::{Bounds, Mistake, Mistakes};
use crate::state::{
    Course, GANGS, Gang, Job, Kind, MEMBERS, Mode, Phase, Pod, Replica, Seats, Slot, Stage, State, Target,
    Write,
};
use crate::symmetry::slots_in_use;

/// What follows at once, without a request, from what a leader has seen.
pub fn take_in(mistakes: &Mistakes, state: &mut State, by: usize) {
    if state.replicas[by].mode != Mode::Leading {
        return;
    }
    for gang in 0..GANGS {
        let busy =
            is_anything_busy(state, by, gang) && !mistakes.contains(&Mistake::UndoneWithRequestsUnderWay);
        let replica = &mut state.replicas[by];
        let (seen, course) = (&replica.seen.gangs[gang], &mut replica.courses[gang]);
        course.lingers &= seen.takes_slots();
        adopt(mistakes, seen, course);
        let phase = seen.plan.map(|plan| plan.phase);
        match course.stage {
            Stage::Assumed
                if stands(mistakes, seen) && seen.plan.is_some_and(|plan| plan.seats == course.seats) =>
            {
                course.stage = Stage::Committed;
            }
            // Removed by force, or changed by a former leader: it is written again.
            Stage::Committed
                if phase.is_none()
                    || phase == Some(Phase::Undoing)
                        && !mistakes.contains(&Mistake::LateUndoingNotNoticed) =>
            {
                course.stage = Stage::Assumed;
            }
            Stage::Undoing
                if phase != Some(Phase::Committed) && seen.job == Job::Idle && !busy && !seen.reserved =>
            {
                *course = Course { stage: Stage::Undone, lingers: seen.takes_slots(), ..Course::WAITING };
            }
            _ => {}
        }
        let again = seen.job != Job::Idle || seen.reserved;
        if course.stage == Stage::Undone && again && !mistakes.contains(&Mistake::UndoneNotWatched) {
            course.stage = Stage::Undoing;
        }
        if course.stage == Stage::Undone && seen.plan.is_none() {
            course.stage = Stage::Waiting;
            adopt(mistakes, seen, course);
        }
        if course.stage == Stage::Committed {
            // A member is where it is, wherever it was meant to be.
            for (seat, pod) in course.seats.iter_mut().zip(&seen.pods) {
                if let Pod::Bound(slot) = pod {
                    *seat = Some(*slot);
                }
            }
        }
    }
}

/// Takes up what an earlier leader wrote down.
fn adopt(mistakes: &Mistakes, seen: &Gang, course: &mut Course) {
    if course.stage != Stage::Waiting {
        return;
    }
    let (stage, seats) = match seen.plan {
        Some(plan) if stands(mistakes, seen) => (Stage::Committed, plan.seats),
        Some(plan) if plan.phase == Phase::Committed => (Stage::Assumed, plan.seats),
        Some(_) if mistakes.contains(&Mistake::UndoNotTakenUp) => return,
        Some(plan) => (Stage::Undoing, plan.seats),
        None if seen.reserved => (Stage::Orphan, [None; MEMBERS]),
        None => return,
    };
    *course = Course { stage, seats, lingers: false, found: true };
}

/// The plan is in force. One that is leaving may be let go by a request that is still under way, so a
/// gang that was not released gets a new one first.
fn stands(mistakes: &Mistakes, seen: &Gang) -> bool {
    let leaves_first = seen.job == Job::Idle && !mistakes.contains(&Mistake::LeavingPlanCounts);
    seen.plan.is_some_and(|plan| plan.phase == Phase::Committed && !(plan.leaving && leaves_first))
}

fn is_anything_busy(state: &State, by: usize, gang: usize) -> bool {
    let mine = |target: &Target| match *target {
        Target::Plan(of) | Target::Job(of) | Target::Workload(of) | Target::Pod(of, _) => of == gang,
    };
    Kind::ALL.into_iter().flat_map(Target::of).filter(mine).any(|target| state.is_busy(by, target))
}

/// What became of a request is not known.
pub fn unheard(mistakes: &Mistakes, state: &mut State, by: usize, gang: usize, write: Write) {
    let replica = &mut state.replicas[by];
    let course = &mut replica.courses[gang];
    match write {
        Write::CreatePlan(_) if mistakes.contains(&Mistake::PlaceForgottenOnLostReply) => {
            *course = Course { lingers: course.lingers, ..Course::WAITING };
        }
        Write::Bind(member, _) if mistakes.contains(&Mistake::LostBindCountsAsRefused) => {
            course.seats[member] = None;
        }
        _ => replica.unread.set(write.target(gang), true),
    }
}

/// A request is on its way, or ended without an answer: a binding may have taken effect.
pub fn sent(state: &mut State, by: usize, gang: usize, write: Write) {
    if matches!(write, Write::Bind(..)) {
        state.replicas[by].sent.set(write.target(gang), true);
    }
}

/// Quota that is kept for others, in pods.
fn quota_of_others(mistakes: &Mistakes, replica: &Replica, gang: usize) -> usize {
    let keeps = |course: &Course| {
        let leaves = course.stage == Stage::Undoing || course.lingers;
        course.keeps_quota() && !(leaves && mistakes.contains(&Mistake::QuotaGivenBackWhilePodsRun))
    };
    let others = (0..GANGS).filter(|other| *other != gang && keeps(&replica.courses[*other]));
    others.count() * MEMBERS
}

fn has_quota(bounds: &Bounds, mistakes: &Mistakes, replica: &Replica, gang: usize) -> bool {
    quota_of_others(mistakes, replica, gang) + MEMBERS <= usize::from(bounds.quota)
}

/// Whether nothing that was seen takes this slot, and it is kept for no other member.
fn is_free(mistakes: &Mistakes, replica: &Replica, slot: Slot, gang: usize, member: Option<usize>) -> bool {
    let kept = |of: usize, at: usize| {
        let course = &replica.courses[of];
        let mine = of == gang && member.is_none_or(|member| member == at);
        !mine && course.keeps_seats() && course.seats[at] == Some(slot)
    };
    let is_kept = (0..GANGS).any(|of| (0..MEMBERS).any(|at| kept(of, at)));
    let kept = is_kept && !mistakes.contains(&Mistake::PlacesNotAssumed);
    replica.seen.hog != Some(slot) && replica.seen.members_in(slot) == 0 && !kept
}

/// All ways to give these members places that no other one has; none if not all find one. Of slots
/// that nothing speaks of (`used` does not have them) only the first is tried: they are all alike.
fn places(
    bounds: &Bounds,
    mistakes: &Mistakes,
    (replica, used): (&Replica, u8),
    gang: usize,
    who: &[usize],
) -> Vec<Seats> {
    let mut seats = replica.courses[gang].seats;
    who.iter().for_each(|member| seats[*member] = None);
    let mut ways = vec![(seats, used)];
    for member in who {
        let mut further = Vec::new();
        for (seats, used) in ways {
            let others = Replica { courses: with_seats(replica, gang, seats), ..*replica };
            let free = |slot: &Slot| is_free(mistakes, &others, *slot, gang, Some(*member));
            let mut has_new = false;
            for slot in (0..bounds.slots).filter(free) {
                if used & (1 << slot) == 0 && std::mem::replace(&mut has_new, true) {
                    continue;
                }
                let mut with = seats;
                with[*member] = Some(slot);
                further.push((with, used | (1 << slot)));
            }
        }
        ways = further;
    }
    ways.into_iter().map(|(seats, _)| seats).collect()
}

fn with_seats(replica: &Replica, gang: usize, seats: Seats) -> [Course; GANGS] {
    let mut courses = replica.courses;
    courses[gang] = Course { stage: Stage::Assumed, seats, ..courses[gang] };
    courses
}

/// What a leader may decide now.
pub fn decisions(
    bounds: &Bounds,
    mistakes: &Mistakes,
    state: &State,
    by: usize,
    next: &mut Vec<(Step, State)>,
) {
    let used = slots_in_use(state);
    for gang in 0..GANGS {
        let replica = &state.replicas[by];
        let (seen, course) = (&replica.seen.gangs[gang], replica.courses[gang]);
        let all: Vec<usize> = (0..MEMBERS).collect();
        let mut decide = |step: Step, to: Course| {
            let mut then = *state;
            then.replicas[by].courses[gang] = to;
            take_in(mistakes, &mut then, by);
            next.push((step, then));
        };
        match course.stage {
            Stage::Waiting | Stage::Undone => {
                let ready = seen.job == Job::Idle && !seen.reserved;
                let adopts = course.stage == Stage::Waiting && seen.plan.is_some();
                let cleared = Replica { courses: with_seats(replica, gang, [None; MEMBERS]), ..*replica };
                if ready && !adopts && has_quota(bounds, mistakes, replica, gang) {
                    for seats in places(bounds, mistakes, (&cleared, used), gang, &all) {
                        // Quota that it still kept is its own.
                        decide(
                            Step::Admit(by, gang),
                            Course { stage: Stage::Assumed, seats, ..Course::WAITING },
                        );
                    }
                }
            }
            Stage::Orphan => {
                let within = has_quota(bounds, mistakes, replica, gang)
                    || mistakes.contains(&Mistake::BeyondQuotaReleased);
                let ways =
                    if within { places(bounds, mistakes, (replica, used), gang, &all) } else { Vec::new() };
                if ways.is_empty() {
                    decide(Step::Undo(by, gang), Course { stage: Stage::Undoing, ..course });
                }
                for seats in ways {
                    decide(
                        Step::Replan(by, gang),
                        Course { stage: Stage::Assumed, seats, ..Course::WAITING },
                    );
                }
            }
            Stage::Committed => {
                for to in replanned(bounds, mistakes, (state, used), by, gang) {
                    decide(Step::Replan(by, gang), to);
                }
            }
            Stage::Assumed | Stage::Undoing => {}
        }
    }
}

/// Gangs whose time runs out: they were admitted, and not all of their members are seen bound.
pub fn time_outs(state: &State, by: usize) -> impl Iterator<Item = usize> {
    let replica = &state.replicas[by];
    let leads = replica.mode == Mode::Leading;
    (0..GANGS).filter(move |gang| {
        let whole = replica.seen.gangs[*gang].pods.iter().all(|pod| matches!(pod, Pod::Bound(_)));
        leads && !whole && replica.courses[*gang].stage == Stage::Committed
    })
}

/// An admission is taken back.
pub fn undo(mistakes: &Mistakes, state: &State, by: usize, gang: usize) -> State {
    let mut then = *state;
    then.replicas[by].courses[gang].stage = Stage::Undoing;
    take_in(mistakes, &mut then, by);
    then
}

/// Members that are there and wait, with nothing under way about them.
fn promised(state: &State, by: usize, gang: usize) -> Vec<usize> {
    let seen = &state.replicas[by].seen.gangs[gang];
    let waits = |at: &usize| seen.pods[*at] == Pod::Pending && !state.is_busy(by, Target::Pod(gang, *at));
    (0..MEMBERS).filter(waits).collect()
}

/// Some member is bound, or a binding was sent.
fn has_started(state: &State, by: usize, gang: usize) -> bool {
    let seen = &state.replicas[by].seen.gangs[gang];
    let bound = |at: usize| matches!(seen.pods[at], Pod::Bound(_));
    (0..MEMBERS).any(|at| bound(at) || state.replicas[by].sent.has(Target::Pod(gang, at)))
}

fn is_ready(mistakes: &Mistakes, state: &State, by: usize, gang: usize) -> bool {
    let seen = &state.replicas[by].seen.gangs[gang];
    let all_exist = seen.pods.iter().all(|pod| pod.is_live());
    all_exist || has_started(state, by, gang) || mistakes.contains(&Mistake::BindBeforeAllExist)
}

/// Those of them that their place takes, and those that it does not.
fn by_fit(mistakes: &Mistakes, state: &State, by: usize, gang: usize) -> (Vec<usize>, Vec<usize>) {
    let replica = &state.replicas[by];
    let fits = |at: &usize| {
        let seat = replica.courses[gang].seats[*at];
        seat.is_some_and(|slot| is_free(mistakes, replica, slot, gang, Some(*at)))
    };
    promised(state, by, gang).into_iter().partition(fits)
}

/// Other places, where members do not fit theirs: for all if none runs yet, and then none is kept
/// without; else for those members.
fn replanned(
    bounds: &Bounds,
    mistakes: &Mistakes,
    (state, used): (&State, u8),
    by: usize,
    gang: usize,
) -> Vec<Course> {
    let replica = &state.replicas[by];
    let course = replica.courses[gang];
    let (_, misfits) = by_fit(mistakes, state, by, gang);
    if misfits.is_empty() || !is_ready(mistakes, state, by, gang) {
        return Vec::new();
    }
    let started = has_started(state, by, gang);
    let who = if started { misfits } else { (0..MEMBERS).collect() };
    let ways = places(bounds, mistakes, (replica, used), gang, &who);
    if !ways.is_empty() {
        return ways
            .into_iter()
            .map(|seats| Course { stage: Stage::Assumed, seats, ..Course::WAITING })
            .collect();
    }
    if !started {
        return vec![Course { stage: Stage::Undoing, ..course }];
    }
    let mut without = course;
    who.iter().for_each(|member| without.seats[*member] = None);
    if without == course { Vec::new() } else { vec![without] }
}

/// The requests that a leader wants sent for a gang now.
pub fn wishes(bounds: &Bounds, mistakes: &Mistakes, state: &State, by: usize, gang: usize) -> Vec<Write> {
    let replica = &state.replicas[by];
    let (seen, course) = (&replica.seen.gangs[gang], &replica.courses[gang]);
    match course.stage {
        // Nothing was decided: nothing may run.
        Stage::Waiting if seen.job == Job::Running && seen.plan.is_none() && !seen.reserved => {
            vec![Write::Suspend]
        }
        // In the code it is the Workload that follows the template; then both are alike again.
        Stage::Waiting if seen.job == Job::Stopped && seen.plan.is_none() && !seen.reserved => {
            vec![Write::Restore]
        }
        Stage::Waiting | Stage::Orphan => Vec::new(),
        Stage::Assumed => {
            // A gang that was released has a record at every moment.
            let goes_first = mistakes.contains(&Mistake::LeavingPlanLetGoFirst);
            let plan = match seen.plan {
                None => Write::CreatePlan(course.seats),
                Some(plan) if plan.leaving && (seen.job == Job::Idle || goes_first) => Write::LetPlanGo,
                Some(_) => Write::ReplacePlan(course.seats),
            };
            let early = mistakes.contains(&Mistake::ReleaseWithoutPlan) && seen.job == Job::Idle;
            [plan].into_iter().chain(early.then_some(Write::Release)).collect()
        }
        Stage::Committed => carried_out(bounds, mistakes, state, by, gang),
        Stage::Undoing => taken_back(mistakes, seen),
        Stage::Undone => match seen.plan {
            Some(_) if course.lingers && !mistakes.contains(&Mistake::RecordGoesBeforePods) => Vec::new(),
            Some(plan) => vec![if plan.leaving { Write::LetPlanGo } else { Write::DeletePlan }],
            None => Vec::new(),
        },
    }
}

fn carried_out(bounds: &Bounds, mistakes: &Mistakes, state: &State, by: usize, gang: usize) -> Vec<Write> {
    let replica = &state.replicas[by];
    let (seen, course) = (&replica.seen.gangs[gang], &replica.courses[gang]);
    let (fit, misfits) = by_fit(mistakes, state, by, gang);
    // What was found beyond the quota neither is released nor starts; its time runs out.
    let within =
        has_quota(bounds, mistakes, replica, gang) || mistakes.contains(&Mistake::BeyondQuotaReleased);
    let starts = has_started(state, by, gang) || misfits.is_empty() && within;
    let starts = starts && is_ready(mistakes, state, by, gang);
    let bind = |at: usize| Some(Write::Bind(at, course.seats[at]?));
    let mut writes: Vec<Write> = fit.into_iter().filter(|_| starts).filter_map(bind).collect();
    if matches!(seen.job, Job::Idle | Job::Stopped) && within {
        writes.push(Write::Release);
    }
    if !seen.reserved {
        writes.push(Write::Reserve);
    }
    writes
}

fn taken_back(mistakes: &Mistakes, seen: &Gang) -> Vec<Write> {
    match seen.plan {
        Some(plan) if plan.phase == Phase::Committed => return vec![Write::MarkUndoing],
        Some(plan) if mistakes.contains(&Mistake::RecordRemovedFirst) => {
            return vec![if plan.leaving { Write::LetPlanGo } else { Write::DeletePlan }];
        }
        _ => {}
    }
    if seen.job == Job::Idle {
        return if seen.reserved { vec![Write::GiveBack] } else { Vec::new() };
    }
    match seen.job {
        Job::Running
            if mistakes.contains(&Mistake::UndoByDeletingPods)
                && seen.pods.iter().any(|pod| pod.is_live()) =>
        {
            (0..MEMBERS).filter(|at| seen.pods[*at].is_live()).map(Write::DeletePod).collect()
        }
        Job::Running => vec![Write::Suspend],
        Job::Stopped => vec![Write::Restore],
        Job::Stopping | Job::Idle => Vec::new(),
    }
}
