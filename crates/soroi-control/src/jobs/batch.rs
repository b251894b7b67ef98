//! `batch/v1` Jobs: the Workload that stands for one, kept in step with it, and ended with it.
//!
//! A pure function says what is missing; nothing here remembers anything. The rules are those of
//! Kueue's job framework (0.18, `pkg/controller/jobframework`): a Job with a queue-name has exactly
//! one Workload, and runs only while that is admitted.

use serde_json::json;
use soroi_api::conditions;
use soroi_api::kueue::WorkloadStatus;
use soroi_api::labels::kueue as keys;

use crate::call::Call;
use crate::draft::Draft;
use crate::intake::{JobFacts, WorkloadFacts};
use crate::kind::{Kind, Target};
use crate::lanes::Write;
use crate::parsed::WorkloadState;
use crate::project;
use crate::project::status::At;
use crate::world::root;
use crate::world::store::{Known, Meta};

/// Whether the Workload still says what its Job asks for. Only then may it be decided. Counts and
/// class always count; the template only while nothing is injected into it.
pub(crate) fn in_step(job: &JobFacts, workload: &WorkloadFacts) -> bool {
    let [pod_set] = &workload.pod_sets[..] else { return false };
    let [digest] = &workload.template_digests[..] else { return false };
    job.queue == workload.queue
        && job.priority_class == workload.priority_class
        && job.pods() == pod_set.count
        && job.least() == pod_set.least
        && job.template_digest == *digest
}

/// Whether a Job wants to run more pods than its Workload pays for. (Fewer give quota back.)
fn has_outgrown(job: &JobFacts, workload: &WorkloadState) -> bool {
    let [pod_set] = &workload.facts.pod_sets[..] else { return false };
    let count = match job.min_parallelism.is_some() && !job.suspend {
        // It was released with as many pods as were admitted.
        true => workload.facts.admitted_count(&pod_set.name).unwrap_or(pod_set.count),
        false => pod_set.count,
    };
    let given_back =
        workload.status.reclaimable_pods.iter().map(|back| u32::try_from(back.count).unwrap_or(0));
    let paid = count.saturating_sub(given_back.sum());
    job.group.is_none() && job.pods_left() > paid
}

/// Whether a Job is of another class than its Workload, and that may follow it while it holds quota: from one
/// class to another, not to or from none (Kueue's rule of the Workload, and its webhook's).
fn has_other_class(job: &JobFacts, workload: &WorkloadFacts) -> bool {
    job.priority_class.as_ref().zip(workload.priority_class.as_ref()).is_some_and(|(job, shown)| job != shown)
}

/// What a managed Job lacks beside a decision.
pub(crate) fn wants(
    job: &Known<JobFacts>,
    workload: Option<&Known<WorkloadState>>,
    held: bool,
    at: At,
) -> Vec<Write> {
    let facts = &job.facts;
    let mut writes = Vec::new();
    if is_ending(facts) && (facts.queue.is_some() || workload.is_some()) {
        return resumed(facts).into_iter().collect();
    }
    let Some(workload) = workload else {
        if facts.queue.is_none() || facts.finished.is_some() || facts.terminating_itself {
            return writes;
        }
        writes.push(create(facts));
        // It must not run without quota, whoever started it.
        writes.extend(suspended(facts));
        return writes;
    };
    let state = &workload.facts;
    if workload.meta.terminating {
        return leave(facts, workload, held);
    }
    if let Some(finished) = &facts.finished {
        if !state.facts.finished {
            let mut after = state.status.clone();
            let moment = at.of(workload.meta.generation);
            project::status::finish(&mut after, finished.succeeded, &finished.message, moment);
            writes.extend(status(&workload.meta, &state.status, &after));
        }
        return writes;
    }
    let decided = state.facts.admitted.is_some() || held;
    if decided && !state.facts.finished && has_outgrown(facts, state) {
        // It starts anew in its new size (Kueue, `reconciler.ensureOneWorkload`).
        let target = workload_target(&workload.meta);
        writes.push(Write { target, call: Call::delete(&workload.meta.uid) });
        return writes;
    }
    if decided && !state.facts.finished && has_other_class(facts, &state.facts) {
        // It keeps what it has, and is as easy to evict as its new class says.
        let draft = Draft::Reclassify { job: job_target(facts) };
        writes.push(Write { target: workload_target(&workload.meta), call: Call::Draft(Box::new(draft)) });
    }
    if !decided && !state.facts.finished && !in_step(facts, &state.facts) {
        let target = workload_target(&workload.meta);
        if facts.queue.is_none() {
            // It left its queue: the Job is its user's again, and no Workload stands for it.
            writes.push(Write { target, call: Call::delete(&workload.meta.uid) });
            return writes;
        }
        writes.push(Write {
            target,
            call: Call::Draft(Box::new(Draft::MatchWorkload { job: job_target(facts) })),
        });
    }
    writes
}

/// The Workload is being deleted: its Job has to stop before it may go.
fn leave(job: &JobFacts, workload: &Known<WorkloadState>, held: bool) -> Vec<Write> {
    let over = job.finished.is_some() || job.terminating_itself;
    if !over && !job.suspend {
        return suspended(job);
    }
    let stopped = over || job.template_mutable();
    if !stopped || held {
        return Vec::new();
    }
    if !over && !is_restored(job, &workload.facts.facts) {
        return restore(job, workload);
    }
    let_go(&workload.meta, Kind::Workload, keys::RESOURCE_IN_USE).into_iter().collect()
}

/// Removes a Workload whose job is gone. Where that was deleted without what it owned nobody else would, and what
/// it holds would be held for ever. (Kueue ends it, `OwnerNotFound`, and leaves it lying.) Elsewhere the garbage
/// collector comes for it, which may take it half a minute to hear of a kind that is new in the cluster.
pub(crate) fn left_behind(workload: &Known<WorkloadState>) -> Write {
    removed(workload)
}

/// Removes a Workload.
pub(crate) fn removed(workload: &Known<WorkloadState>) -> Write {
    Write { target: workload_target(&workload.meta), call: Call::delete(&workload.meta.uid) }
}

/// Removes a Job that was deactivated, and all that it owns.
pub(crate) fn given_up(job: &JobFacts) -> Write {
    Write { target: job_target(job), call: Call::delete_with_all(&job.uid) }
}

/// Creates the Job's Workload.
fn create(job: &JobFacts) -> Write {
    let target = Target::new(Kind::Workload, &job.namespace, &root::workload_name(job));
    Write { target, call: Call::Draft(Box::new(Draft::CreateWorkload { job: job_target(job) })) }
}

/// A Workload that has run for as long as it may, or that an admission check rejects, is deactivated; first it
/// says why.
pub(crate) fn deactivated(workload: &Known<WorkloadState>, at: At) -> Option<Write> {
    let state = &workload.facts;
    if state.facts.is_rejected() && state.facts.active && !state.facts.finished {
        let message = project::status::rejection(&state.status);
        return deactivate(workload, (conditions::workload::reason::ADMISSION_CHECK, &message), at);
    }
    state.facts.runs_until.filter(|until| *until <= at.now.as_millisecond())?;
    deactivate(workload, project::status::TIME_IS_OVER, at)
}

/// Deactivates a Workload; first it says why, so that its eviction has that reason after a crash, too.
pub(crate) fn deactivate(workload: &Known<WorkloadState>, why: (&str, &str), at: At) -> Option<Write> {
    let state = &workload.facts;
    if !conditions::is_true(&state.status.conditions, conditions::workload::DEACTIVATION_TARGET) {
        let mut after = state.status.clone();
        let moment = at.of(workload.meta.generation);
        project::status::to_be_deactivated(&mut after, why, moment);
        return status(&workload.meta, &state.status, &after);
    }
    let meta = &workload.meta;
    let body = json!({
        "metadata": { "uid": &*meta.uid, "resourceVersion": &*meta.version }, "spec": { "active": false },
    });
    Some(Write { target: workload_target(meta), call: Call::Merge(body) })
}

/// It ends by itself now, without anybody's help.
pub(crate) fn is_ending(job: &JobFacts) -> bool {
    job.ending && job.finished.is_none() && !job.terminating_itself
}

/// Lets a Job end that was suspended before it was known to: no more pods are made for it, and the API
/// server takes the end of a Job only with the start time that its controller gives to one that is not
/// suspended (Kubernetes 1.36, `ValidateJobStatus`: "startTime is required for finished job").
fn resumed(job: &JobFacts) -> Option<Write> {
    job.suspend.then(|| Write { target: job_target(job), call: Call::Json(project::job::resume(job)) })
}

/// Suspends the Job unless it is, or ends anyway.
pub(crate) fn suspended(job: &JobFacts) -> Vec<Write> {
    if job.suspend || job.ending || job.finished.is_some() || job.terminating_itself {
        return Vec::new();
    }
    vec![Write { target: job_target(job), call: Call::Json(project::job::suspend(job)) }]
}

/// The template is what its Workload was made of, and where fewer pods may do, so is their number.
pub(crate) fn is_restored(job: &JobFacts, workload: &WorkloadFacts) -> bool {
    let counted = workload.pod_sets.first().is_none_or(|set| set.count == job.pods());
    let same = workload.template_digests.first().is_none_or(|digest| *digest == job.template_digest);
    same && (counted || job.min_parallelism.is_none())
}

/// Gives the Job its template back. Only when [`JobFacts::template_mutable`].
pub(crate) fn restore(job: &JobFacts, workload: &Known<WorkloadState>) -> Vec<Write> {
    let target = job_target(job);
    if job.started_at.is_some() {
        // Kubernetes 1.34 and 1.35 refuse to change the template before.
        return vec![Write { target, call: Call::MergeStatus(project::job::clear_start_time()) }];
    }
    let draft = Draft::Restore { job: Box::new(job.clone()), workload: workload_target(&workload.meta) };
    vec![Write { target, call: Call::Draft(Box::new(draft)) }]
}

/// Takes one of our finalizers off an object.
pub(crate) fn let_go(meta: &Meta, kind: Kind, finalizer: &str) -> Option<Write> {
    if !meta.finalizers.iter().any(|one| &**one == finalizer) {
        return None;
    }
    let left: Vec<&str> = meta.finalizers.iter().map(|one| &**one).filter(|one| *one != finalizer).collect();
    let body = json!({
        "metadata": { "uid": &*meta.uid, "resourceVersion": &*meta.version, "finalizers": left },
    });
    Some(Write { target: Target::new(kind, &meta.namespace, &meta.name), call: Call::Merge(body) })
}

/// The patch from one status of a Workload to another, if they differ. It fails when somebody else
/// wrote in between.
pub(crate) fn status(meta: &Meta, before: &WorkloadStatus, after: &WorkloadStatus) -> Option<Write> {
    let patch = project::status_patch(Some(&meta.version), Some(before), after)?;
    Some(Write { target: workload_target(meta), call: Call::MergeStatus(patch) })
}

pub(crate) fn job_target(job: &JobFacts) -> Target {
    Target::new(Kind::Job, &job.namespace, &job.name)
}

pub(crate) fn workload_target(meta: &Meta) -> Target {
    Target::new(Kind::Workload, &meta.namespace, &meta.name)
}
