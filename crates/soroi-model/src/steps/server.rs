//! What does the API server make of a request, and what does a leader see of it?
//!
//! Every write has the preconditions that Soroi gives it: the version that was seen, or the uid, or
//! what a JSON patch tests. Never knows why something is written.

use crate::rules::{Mistake, Mistakes};
use crate::state::{Job, Kind, Phase, Plan, Pod, Replica, State, Target, Write};

/// Whether what a request demands of its object is so, as far as its sender's knowledge goes.
pub fn holds(sender: &Replica, gang: usize, write: Write) -> bool {
    let target = write.target(gang);
    match write {
        Write::CreatePlan(_) | Write::Suspend | Write::Restore => true,
        Write::DeletePlan => sender.same.has(target),
        Write::ReplacePlan(_) | Write::MarkUndoing | Write::LetPlanGo | Write::Release => {
            sender.fresh.has(target)
        }
        Write::Reserve | Write::GiveBack | Write::Bind(..) | Write::DeletePod(_) => sender.fresh.has(target),
    }
}

/// Carries a request out if its preconditions hold. Whether it was not refused. `in_term`: its
/// sender leads.
pub fn perform(
    mistakes: &Mistakes,
    state: &mut State,
    gang: usize,
    write: Write,
    holds: bool,
    in_term: bool,
) -> bool {
    let now = state.objects.gangs[gang];
    match (write, now.plan) {
        (Write::CreatePlan(seats), None) => {
            let plan = Plan { phase: Phase::Committed, leaving: false, seats };
            set_plan(state, gang, Some(plan));
        }
        (Write::ReplacePlan(seats), Some(plan)) if holds => {
            set_plan(state, gang, Some(Plan { phase: Phase::Committed, seats, ..plan }));
        }
        (Write::MarkUndoing, Some(plan)) if holds => {
            set_plan(state, gang, Some(Plan { phase: Phase::Undoing, ..plan }));
        }
        (Write::DeletePlan, Some(plan)) if holds => {
            set_plan(state, gang, Some(Plan { leaving: true, ..plan }))
        }
        (Write::LetPlanGo, Some(plan)) if holds && plan.leaving => set_plan(state, gang, None),
        (Write::Release, _) if holds && matches!(now.job, Job::Idle | Job::Stopped) => {
            state.made[gang] = Default::default();
            set_job(state, gang, Job::Running);
        }
        (Write::Suspend, _) if now.job == Job::Running => set_job(state, gang, Job::Stopping),
        (Write::Suspend, _) => {}
        (Write::Restore, _) if now.job == Job::Stopped => set_job(state, gang, Job::Idle),
        (Write::Restore, _) => return now.job == Job::Idle,
        (Write::Reserve, _) if holds => set_reserved(state, gang, true),
        (Write::GiveBack, _) if holds => set_reserved(state, gang, false),
        (Write::Bind(member, slot), _) => {
            let same = holds || mistakes.contains(&Mistake::BindWithoutUid);
            if !same || now.pods[member] != Pod::Pending {
                return false;
            }
            state.bound_early |= now.plan.is_none() || state.made[gang].contains(&false);
            state.overdue_binds += u8::from(!in_term);
            state.objects.gangs[gang].pods[member] = Pod::Bound(slot);
        }
        (Write::DeletePod(member), _) if holds && now.pods[member].is_live() => {
            state.robbed |= now.job == Job::Running;
            end_pod(state, gang, member);
        }
        _ => return false,
    }
    true
}

/// A pod is deleted: at once if it is not bound.
pub fn end_pod(state: &mut State, gang: usize, member: usize) {
    match state.objects.gangs[gang].pods[member] {
        Pod::Bound(slot) => state.objects.gangs[gang].pods[member] = Pod::Leaving(slot),
        _ => lose_pod(state, gang, member),
    }
}

/// A pod is created, under a uid that nobody has seen.
pub fn make_pod(state: &mut State, gang: usize, member: usize) {
    state.objects.gangs[gang].pods[member] = Pod::Pending;
    outdate(state, Target::Pod(gang, member));
}

/// A pod is gone; the next one of its name is another.
pub fn lose_pod(state: &mut State, gang: usize, member: usize) {
    state.objects.gangs[gang].pods[member] = Pod::Absent;
    outdate(state, Target::Pod(gang, member));
}

/// The Job was written, by whomever.
pub fn set_job(state: &mut State, gang: usize, job: Job) {
    state.objects.gangs[gang].job = job;
    outdate(state, Target::Job(gang));
}

fn set_reserved(state: &mut State, gang: usize, reserved: bool) {
    state.objects.gangs[gang].reserved = reserved;
    outdate(state, Target::Workload(gang));
}

/// The plan was written, by whomever.
pub fn set_plan(state: &mut State, gang: usize, plan: Option<Plan>) {
    let target = Target::Plan(gang);
    let removed = plan.is_none();
    state.objects.gangs[gang].plan = plan;
    outdate(state, target);
    if removed {
        state.replicas.iter_mut().for_each(|replica| replica.same.set(target, false));
        let deletes = state.late.iter_mut().flatten();
        for late in deletes.filter(|late| late.gang == gang && late.write == Write::DeletePlan) {
            late.holds = false;
        }
    }
}

/// Versions (of pods: uids) that were seen of this object are past.
fn outdate(state: &mut State, target: Target) {
    state.replicas.iter_mut().for_each(|replica| replica.fresh.set(target, false));
    for late in state.late.iter_mut().flatten().filter(|late| late.write.target(late.gang) == target) {
        // These do not name a version.
        let any =
            matches!(late.write, Write::CreatePlan(_) | Write::DeletePlan | Write::Suspend | Write::Restore);
        late.holds &= any;
    }
    state.late.sort();
}

/// Whether a watch has something to tell of this kind.
pub fn has_news(state: &State, by: usize, kind: Kind) -> bool {
    let (replica, there) = (&state.replicas[by], &state.objects);
    let seen = &replica.seen;
    let stale = Target::of(kind).into_iter().any(|target| !replica.fresh.has(target));
    stale
        || kind == Kind::Pods
            && (0..crate::state::GANGS).any(|at| seen.gangs[at].pods != there.gangs[at].pods)
        || kind == Kind::Pods && seen.hog != there.hog
}

/// Everything of a kind is seen as it is.
pub fn see_all(state: &mut State, by: usize, kind: Kind) {
    for target in Target::of(kind) {
        let unread = state.replicas[by].unread.has(target);
        see(state, by, target);
        // A watch is no answer: what was asked is still read back.
        state.replicas[by].unread.set(target, unread);
    }
    if kind == Kind::Pods {
        state.replicas[by].seen.hog = state.objects.hog;
    }
}

/// An object is read back. Pods of Jobs have names that are never used again: of one that is gone
/// nothing is there, and the next one is heard of by the watch alone.
pub fn read_back(mistakes: &Mistakes, state: &mut State, by: usize, target: Target) {
    let replica = &mut state.replicas[by];
    replica.sent.set(target, false);
    match target {
        Target::Pod(gang, member)
            if !replica.fresh.has(target) && !mistakes.contains(&Mistake::PodNamesUsedAgain) =>
        {
            replica.seen.gangs[gang].pods[member] = Pod::Absent;
            replica.unread.set(target, false);
        }
        _ => see(state, by, target),
    }
}

/// One object is seen as it is, and was read back.
pub fn see(state: &mut State, by: usize, target: Target) {
    let there = state.objects;
    let replica = &mut state.replicas[by];
    match target {
        Target::Plan(gang) => {
            replica.seen.gangs[gang].plan = there.gangs[gang].plan;
            replica.same.set(target, true);
        }
        Target::Job(gang) => replica.seen.gangs[gang].job = there.gangs[gang].job,
        Target::Workload(gang) => replica.seen.gangs[gang].reserved = there.gangs[gang].reserved,
        Target::Pod(gang, member) => {
            let pod = there.gangs[gang].pods[member];
            let still = replica.sent.has(target) && replica.fresh.has(target) && pod == Pod::Pending;
            replica.sent.set(target, still);
            replica.seen.gangs[gang].pods[member] = pod;
        }
    }
    replica.fresh.set(target, true);
    replica.unread.set(target, false);
}
