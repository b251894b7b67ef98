//! What is worth an event? The moments of a gang's life that people want to read about.
//!
//! Knows moments; the wording is in `events::words`.

use soroi_api::conditions::workload as condition;
use soroi_api::kueue::{AdmissionCheckState, CheckState, WorkloadStatus};
use soroi_engine::event::Name;

use crate::call::{Answer, Call};
use crate::carry::{self, Reached, Scene};
use crate::course::{Course, Stage, Told, needs_plan};
use crate::draft::Draft;
use crate::events::{About, Occurrence, words};
use crate::kind::{Kind, Target};
use crate::lanes::Done;
use crate::world::World;
use crate::world::gang::Composed;
use crate::world::root::{self, Root};
use crate::world::store::Meta;
use crate::world::wrong::Complaint;

/// A gang waits, and the reason is another one than before.
pub(crate) fn waits(scene: Scene<'_>, gang: &Composed, course: &Course, told: &Told) -> Vec<Occurrence> {
    if let Some(uid) = &gang.pod {
        let pod = words::pod(&gang.gang.namespace, &gang.gang.name, uid);
        return vec![words::failed_scheduling(pod, &told.message)];
    }
    let workloads = gang.parts.iter().filter_map(|part| scene.world.workloads.by_uid(&part.workload));
    let said = workloads.map(|known| words::pending(workload(&known.meta), told.word, &told.message));
    let group = gang.group.as_ref().and_then(|uid| scene.world.groups.by_uid(uid));
    let group = group.and_then(|known| {
        let (_, text) = carry::show::group(scene, known, Some(course));
        Some(words::group_unschedulable(group_about(&known.meta), &text?))
    });
    said.chain(group).chain(left_out(scene, gang, course, told)).collect()
}

/// So many members of a gang that runs say in events why they wait. The others show it as a condition, as all do.
const LEFT_OUT_MAX: usize = 8;

/// Members that a gang which runs has no room for: nothing is wrong with their group, so they speak for themselves.
fn left_out(scene: Scene<'_>, gang: &Composed, course: &Course, told: &Told) -> Vec<Occurrence> {
    let group = gang.group.as_ref().and_then(|uid| scene.world.groups.by_uid(uid));
    let Some(group) = group.filter(|_| matches!(course.stage, Stage::Admitted { .. })) else {
        return Vec::new();
    };
    let feeders = scene.world.feeding(&group.facts.facts);
    let members = scene.world.group_members(&group.facts.facts, &feeders);
    let waiting = members.into_iter().map(|facts| (facts, &facts.pod));
    let mut waiting: Vec<_> =
        waiting.filter(|(facts, _)| facts.waits_to_be_bound()).map(|(_, pod)| pod).collect();
    waiting.retain(|pod| !course.binds.contains_key(&pod.uid));
    waiting.sort_by_key(|pod| &pod.name);
    let message = carry::show::of_a_member(told);
    let about = waiting.into_iter().take(LEFT_OUT_MAX);
    about
        .map(|pod| words::failed_scheduling(words::pod(&pod.namespace, &pod.name, &pod.uid), &message))
        .collect()
}

/// Pods wait for a PodGroup that does not exist: the first of them by name says so for all.
pub(crate) fn misses_its_group(world: &World, root: &Root) -> Option<Occurrence> {
    let Root::Group(namespace, name) = root else { return None };
    let group = (namespace.clone(), name.clone());
    let waiting = world.waiting_for_group(&group);
    let pod = &waiting.min_by_key(|pod| &pod.pod.name)?.pod;
    let about = words::pod(&pod.namespace, &pod.name, &pod.uid);
    Some(words::failed_scheduling(about, &carry::show::group_not_found(name)))
}

/// Something of an object cannot be used.
pub(crate) fn invalid(complaint: &Complaint) -> Occurrence {
    let (api_version, kind) = complaint.kind.named();
    let Meta { namespace, name, uid, .. } = &complaint.meta;
    words::invalid(About::new(api_version, kind, namespace, name, uid), &complaint.invalid.to_string())
}

/// A step of a gang stands.
pub(crate) fn reached(
    scene: Scene<'_>,
    gang: &Composed,
    course: &Course,
    reached: Reached,
) -> Vec<Occurrence> {
    match (reached, &course.stage) {
        (Reached::Committed, Stage::Admitted { admission, .. }) => {
            let Some(queue) = &admission.cluster_queue else { return Vec::new() };
            let waited = scene.now.as_millisecond().saturating_sub(gang.gang.queued_at);
            let workloads = gang.parts.iter().filter_map(|part| scene.world.workloads.by_uid(&part.workload));
            let pairs = workloads.flat_map(|known| {
                let facts = &known.facts.facts;
                // It had its quota while it waited for admission checks: that was said then.
                let held = facts.admitted.as_ref().filter(|_| needs_plan(admission) && !facts.is_admitted);
                let checked_for =
                    held.map(|held| scene.now.as_millisecond().saturating_sub(held.reserved_at));
                let reserved = words::quota_reserved(workload(&known.meta), queue, waited);
                let admitted = facts.checks_ready();
                let admitted =
                    admitted.then(|| words::admitted(workload(&known.meta), queue, checked_for.unwrap_or(0)));
                Some(reserved).filter(|_| held.is_none()).into_iter().chain(admitted)
            });
            pairs.collect()
        }
        (Reached::Undone, Stage::Leaving { undo, .. }) => {
            let workloads = gang.parts.iter().filter_map(|part| scene.world.workloads.by_uid(&part.workload));
            let said = workloads.map(|known| match undo.started {
                true => words::evicted(workload(&known.meta), &undo.reason, &undo.message),
                false => words::undone(workload(&known.meta), &undo.message),
            });
            said.collect()
        }
        _ => Vec::new(),
    }
}

/// All members of a gang are bound.
pub(crate) fn settled(world: &World, gang: &Composed) -> Option<Occurrence> {
    let known = world.groups.by_uid(gang.group.as_ref()?)?;
    Some(words::group_scheduled(group_about(&known.meta)))
}

/// The first check that rejects a Workload.
fn rejected_by(status: &WorkloadStatus) -> Option<&AdmissionCheckState> {
    status.admission_checks.iter().find(|check| check.state == CheckState::Rejected)
}

/// A request was answered.
pub(crate) fn answered(world: &World, done: &Done) -> Option<Occurrence> {
    let target = &done.write.target;
    match (&done.write.call, &done.answer) {
        (Call::Bind(binding), Answer::Accepted | Answer::Object(_)) => {
            let pod = words::pod(&target.namespace, &target.name, &binding.pod);
            Some(words::scheduled(pod, &binding.node))
        }
        (Call::MergeStatus(patch), Answer::Object(_)) if target.kind == Kind::Workload => {
            let conditions = patch["status"]["conditions"].as_array()?;
            let said =
                |kind: &str| conditions.iter().find(|one| one["type"] == kind && one["status"] == "True");
            let says = |kind: &str| said(kind).is_some();
            if let Some(target_of) = said(condition::DEACTIVATION_TARGET) {
                let known = world.workloads.get(&place(target))?;
                let (about, facts) = (workload(&known.meta), &known.facts.facts);
                let reason = &target_of["reason"];
                if reason == condition::reason::ADMISSION_CHECK {
                    let check = rejected_by(&known.facts.status)?;
                    return Some(words::check_rejected(about, &check.name, &check.message));
                }
                if reason != condition::reason::MAXIMUM_EXECUTION_TIME_EXCEEDED {
                    return None;
                }
                // Once it is deactivated, others speak of that.
                facts.runs_until?;
                return Some(words::time_exceeded(about, facts.most_seconds?));
            }
            if !says(condition::FINISHED) {
                return None;
            }
            let job = world.job_of(&place(target))?;
            let about = words::job(&job.meta.namespace, &job.meta.name, &job.meta.uid);
            Some(words::finished_workload(about, &target.namespace, &target.name))
        }
        (Call::Draft(draft), answer) => drafted(world, target, draft, answer),
        (Call::Delete(_), Answer::Accepted | Answer::Object(_)) if target.kind == Kind::Workload => {
            // That of a Job that is gone, or has left its queue, is missed by nobody.
            let job = world.job_of(&place(target)).filter(|job| job.facts.queue.is_some())?;
            let about = words::job(&job.meta.namespace, &job.meta.name, &job.meta.uid);
            Some(words::deleted_workload(about, &target.namespace, &target.name))
        }
        (Call::Json(_), Answer::Object(_)) if target.kind == Kind::Job => {
            // The only patches of Jobs that are no drafts are suspensions, and resumptions of what ends.
            let job = job_about(world, target)?;
            let known = world.jobs.get(&place(target)).map(|known| &known.facts);
            if known.is_some_and(|job| job.ending) {
                return None;
            }
            let waits = known.is_some_and(|job| job.active == 0);
            Some(if waits { words::suspended(job) } else { words::stopped(job, &why_stopped(world, target)) })
        }
        _ => None,
    }
}

/// Why a Job that runs is suspended.
fn why_stopped(world: &World, job: &Target) -> String {
    let job = world.jobs.get(&place(job)).map(|known| &known.facts);
    let workload = job.and_then(|job| {
        let place = (job.namespace.clone(), root::workload_name(job));
        Some((job, world.workloads.get(&place)?))
    });
    match workload {
        Some((job, workload)) if workload.meta.terminating => {
            let had =
                workload.facts.facts.pod_sets.iter().fold(0_u32, |sum, set| sum.saturating_add(set.count));
            match job.pods() {
                wants if wants != had => {
                    format!(
                        "No matching Workload: it asks for {wants} pods, and was admitted with {had}; it starts anew"
                    )
                }
                _ => "Its Workload is being deleted".into(),
            }
        }
        _ => "No admission of its workload".into(),
    }
}

fn drafted(world: &World, target: &Target, draft: &Draft, answer: &Answer) -> Option<Occurrence> {
    match (draft, answer) {
        (Draft::CreateWorkload { job }, Answer::Object(_)) => {
            Some(words::created_workload(job_about(world, job)?, &target.namespace, &target.name))
        }
        (Draft::MatchWorkload { job }, Answer::Object(_)) => {
            Some(words::updated_workload(job_about(world, job)?, &target.namespace, &target.name))
        }
        (Draft::Reclassify { job }, Answer::Object(_)) => {
            Some(words::reclassified(job_about(world, job)?, &target.namespace, &target.name))
        }
        (
            Draft::CreateWorkload { job } | Draft::MatchWorkload { job } | Draft::Reclassify { job },
            Answer::Refused(refusal),
        ) if refusal.code == 422 => Some(words::cannot_compose(job_about(world, job)?, &refusal.message)),
        (Draft::Release(_), Answer::Refused(refusal)) if !refusal.is_conflict() => {
            Some(words::cannot_start(job_about(world, target)?, &refusal.message))
        }
        (Draft::Release(release), Answer::Object(_)) => {
            Some(words::started(job_about(world, target)?, &release.cluster_queue))
        }
        _ => None,
    }
}

fn place(target: &Target) -> (Name, Name) {
    (target.namespace.clone(), target.name.clone())
}

fn job_about(world: &World, target: &Target) -> Option<About> {
    let meta = &world.jobs.get(&place(target))?.meta;
    Some(words::job(&meta.namespace, &meta.name, &meta.uid))
}

pub(crate) fn workload(meta: &Meta) -> About {
    words::workload(&meta.namespace, &meta.name, &meta.uid)
}

fn group_about(meta: &Meta) -> About {
    words::group(&meta.namespace, &meta.name, &meta.uid)
}
