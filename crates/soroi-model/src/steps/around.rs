//! What do others do? The Job controller, kubelets, and people.
//!
//! Never asks what a leader wants.

use super::Step;
use super::server::{end_pod, lose_pod, make_pod, set_job, set_plan};
use crate::rules::Bounds;
use crate::state::{GANGS, Job, MEMBERS, Plan, Pod, State};

/// What may happen to the objects without a leader.
pub fn steps(bounds: &Bounds, state: &State, next: &mut Vec<(Step, State)>) {
    for gang in 0..GANGS {
        if state.objects.gangs[gang].job == Job::Stopping {
            let mut then = *state;
            let live = |member: &usize| state.objects.gangs[gang].pods[*member].is_live();
            (0..MEMBERS).filter(live).for_each(|member| end_pod(&mut then, gang, member));
            set_job(&mut then, gang, Job::Stopped);
            next.push((Step::Stop(gang), then));
        }
        let kept = state.objects.gangs[gang].plan.filter(|plan| !plan.leaving);
        if let Some(plan) = kept.filter(|_| state.spent.wipes < bounds.wipes) {
            let mut then = *state;
            then.spent.wipes += 1;
            set_plan(&mut then, gang, Some(Plan { leaving: true, ..plan }));
            next.push((Step::Wipe(gang), then));
        }
        (0..MEMBERS).for_each(|member| of_pod(bounds, state, gang, member, next));
    }
    if state.objects.hog.is_some() {
        let mut then = *state;
        then.objects.hog = None;
        next.push((Step::HogGoes, then));
    } else if state.spent.hogs < bounds.hogs {
        for slot in (0..bounds.slots).filter(|slot| state.objects.members_in(*slot) == 0) {
            let mut then = *state;
            then.spent.hogs += 1;
            then.objects.hog = Some(slot);
            next.push((Step::HogComes(slot), then));
        }
    }
}

fn of_pod(bounds: &Bounds, state: &State, gang: usize, member: usize, next: &mut Vec<(Step, State)>) {
    let pod = state.objects.gangs[gang].pods[member];
    let mut then = *state;
    match pod {
        Pod::Absent if state.objects.gangs[gang].job == Job::Running => {
            make_pod(&mut then, gang, member);
            then.made[gang][member] = true;
            next.push((Step::Create(gang, member), then));
        }
        Pod::Leaving(_) => {
            lose_pod(&mut then, gang, member);
            next.push((Step::Gone(gang, member), then));
        }
        Pod::Bound(slot) if state.objects.hog == Some(slot) || state.objects.members_in(slot) > 1 => {
            // It failed, and takes nothing any more; the Job controller replaces it.
            lose_pod(&mut then, gang, member);
            next.push((Step::Reject(gang, member), then));
        }
        _ => {}
    }
    if pod.is_live() && state.spent.deletions < bounds.deletions {
        let mut then = *state;
        then.spent.deletions += 1;
        end_pod(&mut then, gang, member);
        next.push((Step::Delete(gang, member), then));
    }
}
