//! Taking an admission back: by suspension where there is a Job, by eviction where there is none.
//!
//! The order is that of the protocol (ARCHITECTURE.md): the record says so first, then members go, then the
//! template comes back, then the quota is given back, and the record goes last.

use soroi_api::conditions::workload::reason as word;
use soroi_api::plan::PlanUndo;
use soroi_engine::event::{Name, PlanPhase};

use super::{Composed, Next, PODS_AT_ONCE, PartSeen, Reached, Scene, commit, pod_target};
use crate::call::Call;
use crate::intake::JobFacts;
use crate::intake::group::{Roll, Rolls};
use crate::jobs::batch;
use crate::lanes::Write;
use crate::project;

/// The next steps of taking an admission back.
pub(super) fn undo(scene: Scene<'_>, gang: &Composed, undo: &PlanUndo) -> Next {
    if let Some(plan) = scene.plan(gang)
        && plan.facts.plan.phase != PlanPhase::Undoing
    {
        return Next::write(vec![commit::set_phase(scene, plan, PlanPhase::Undoing, Some(undo.clone()))]);
    }
    let mut writes = Vec::new();
    let mut stopped = true;
    let mut awaited = false;
    for seen in scene.parts(gang) {
        awaited |= undo.started && stops_its_own(gang, &seen, undo);
        if undo.started && !is_evicted(&seen, undo) {
            writes.extend(deactivate(scene, &seen, undo).or_else(|| evict(scene, &seen, undo)));
            stopped = false;
        }
        stopped &= stop(&seen, &mut writes);
    }
    let (evictions, any_left) = members_without_job(scene, gang);
    stopped &= !any_left;
    writes.extend(evictions);
    if !stopped {
        return Next::write(writes);
    }
    if awaited {
        return Next::default();
    }
    let back: Vec<Write> = scene.parts(gang).filter_map(|seen| give_back(scene, &seen, undo)).collect();
    if back.is_empty() { Next::reached(Reached::Undone) } else { Next::write(back) }
}

/// Whether somebody else stops what the Workload stands for, and gives its quota back when nothing of it runs
/// any more: the controller of its kind of job (Kueue: each does so for its kind), or whoever plays the job of a
/// Workload that has no owner and was preempted.
fn stops_its_own(gang: &Composed, seen: &PartSeen<'_>, undo: &PlanUndo) -> bool {
    let facts = &seen.workload.facts.facts;
    let played = facts.owner.is_some() || undo.cause.is_some();
    gang.group.is_none() && seen.job.is_none() && played && facts.admitted.is_some()
}

fn is_evicted(seen: &PartSeen<'_>, undo: &PlanUndo) -> bool {
    let facts = &seen.workload.facts.facts;
    facts.admitted.is_none() || facts.evicted.as_deref() == Some(&undo.reason)
}

/// Who was put back too often is deactivated before it is evicted for that.
fn deactivate(scene: Scene<'_>, seen: &PartSeen<'_>, undo: &PlanUndo) -> Option<Write> {
    let why = project::status::PUT_BACK_TOO_OFTEN;
    let too_often = seen.workload.facts.facts.active && undo.reason == project::status::deactivation(why).0;
    too_often.then(|| batch::deactivate(seen.workload, why, scene.world.at(scene.now)))?
}

fn evict(scene: Scene<'_>, seen: &PartSeen<'_>, undo: &PlanUndo) -> Option<Write> {
    let before = &seen.workload.facts.status;
    let mut after = before.clone();
    let moment = commit::moment(scene, seen.workload);
    project::status::evict(&mut after, &undo.reason, &undo.message, moment);
    if let Some(rules) = scene.world.requeuing().filter(|_| undo.reason == word::PODS_READY_TIMEOUT) {
        project::status::put_back(&mut after, rules, moment);
    }
    if let Some(cause) = &undo.cause {
        project::status::preempted(&mut after, cause, &undo.message, moment);
    }
    batch::status(&seen.workload.meta, before, &after)
}

/// Suspends the Job and gives it its template back. True when both are seen.
fn stop(seen: &PartSeen<'_>, writes: &mut Vec<Write>) -> bool {
    let Some(job) = seen.job else { return true };
    if job.finished.is_some() || job.terminating_itself {
        return true;
    }
    if job.ending {
        // Its controller deletes its pods, and nothing else comes of it.
        return job.active == 0;
    }
    if !job.suspend {
        writes.extend(batch::suspended(job));
        return false;
    }
    if batch::is_restored(job, &seen.workload.facts.facts) {
        return job.suspended && job.active == 0;
    }
    if job.template_mutable() {
        writes.extend(batch::restore(job, seen.workload));
    }
    false
}

/// Bound members that no Job stands for: they are evicted, since nobody can suspend them. And whether any
/// is still there, if only on its way out.
fn members_without_job(scene: Scene<'_>, gang: &Composed) -> (Vec<Write>, bool) {
    let suspended: Vec<&Name> = gang.parts.iter().filter_map(|part| part.job.as_ref()).collect();
    let roll: Roll;
    let members = match gang.pod.as_ref().and_then(|uid| scene.world.pods.by_uid(uid)) {
        Some(pod) => {
            roll = std::iter::once(&pod.facts).collect();
            Rolls::from(&roll)
        }
        None => scene.world.owners_roll(&gang.gang.owners, &suspended),
    };
    let staying = members.staying().filter_map(|uid| scene.world.pods.by_uid(uid));
    let staying = staying.map(|known| &known.facts.pod);
    let writes = staying.map(|pod| Write { target: pod_target(pod), call: Call::delete(&pod.uid) });
    (writes.take(PODS_AT_ONCE).collect(), members.any_there())
}

/// The Workload gives its quota back.
fn give_back(scene: Scene<'_>, seen: &PartSeen<'_>, undo: &PlanUndo) -> Option<Write> {
    let state = &seen.workload.facts;
    if state.facts.admitted.is_none() && state.status.admission.is_none() {
        return None;
    }
    let mut after = state.status.clone();
    let moment = commit::moment(scene, seen.workload);
    if undo.started {
        project::status::give_back(&mut after, moment);
    } else {
        project::status::undo(&mut after, &undo.message, moment);
    }
    batch::status(&seen.workload.meta, &state.status, &after)
}

/// The end of an admission that was taken back: its plan goes when the last bound member has. Until then
/// it says, across a crash too, that they hold quota. A write of an earlier leader may still bring back what
/// was taken away: then it is taken back again.
pub(super) fn finish(scene: Scene<'_>, gang: &Composed) -> Next {
    let Some(plan) = scene.plan(gang) else { return Next::reached(Reached::Clean) };
    if scene.parts(gang).any(|seen| is_back(&seen)) {
        return Next::reached(Reached::Relapsed);
    }
    if scene.any_there(gang) {
        return Next::default();
    }
    Next::write(super::orphan::remove(plan))
}

/// Whether the Job runs, or the Workload shows quota.
fn is_back(seen: &PartSeen<'_>) -> bool {
    let over = |job: &JobFacts| job.ending || job.finished.is_some() || job.terminating_itself;
    let runs = seen.job.is_some_and(|job| !job.suspend && !over(job));
    runs || seen.workload.facts.facts.admitted.is_some()
}
