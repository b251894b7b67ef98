//! What does a Job need now? The rules of the Job controller, without any writing.
//!
//! Source: `syncJob`, `manageJob` and their helpers in `pkg/controller/job`, Kubernetes 1.36.
//! Pure: it knows one Job, its pods and the time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{JobCondition, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::backoff::{self, Record};
use super::index::{self, Indexes};
use super::policy::{self, Verdict};
use super::seen::{Job, true_condition};
use crate::seen::{Phase, Pod};

/// Keeps a pod until it has been counted.
pub(crate) const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// How often the pods of this index have failed, before this one.
pub(crate) const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// How often they have failed in a way that does not count.
pub(crate) const IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
/// Pods made or deleted in one go (`MaxPodCreateDeletePerSync`).
pub(crate) const AT_ONCE_MAX: usize = 500;
/// Pods noted as ended and not yet counted (`MaxUncountedPods`): keeps the status small.
const UNCOUNTED_MAX: usize = 500;

/// A Job's pods, sorted out.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) pods: Vec<Arc<Pod>>,
    pub(crate) active: Vec<Arc<Pod>>,
    pub(crate) ready: i32,
    pub(crate) terminating: i32,
    /// Succeeded and failed pods, whether counted already or not.
    pub(crate) succeeded: i32,
    pub(crate) failed: i32,
    pub(crate) succeeded_before: Indexes,
    pub(crate) succeeded_indexes: Indexes,
    pub(crate) failed_indexes: Option<Indexes>,
    /// Failed pods that stay until their index has a new one, which inherits their count.
    pub(crate) kept: BTreeMap<i32, Arc<Pod>>,
    pub(crate) record: Record,
}

pub(crate) fn tracked(pod: &Pod) -> bool {
    pod.meta.has_finalizer(TRACKING)
}

fn valid_index(job: &Job, pod: &Pod) -> Option<i32> {
    index::of_pod(pod).filter(|index| *index < job.indexes())
}

/// Sorts out a Job's pods. `record` is what was known of its failures before.
pub(crate) fn view(job: &Job, status: &JobStatus, pods: Vec<Arc<Pod>>, record: Record) -> View {
    let uncounted = status.uncounted_terminated_pods.as_ref();
    let noted = |list: Option<&Vec<String>>| list.into_iter().flatten().cloned().collect::<BTreeSet<_>>();
    let noted_succeeded = noted(uncounted.and_then(|uncounted| uncounted.succeeded.as_ref()));
    let noted_failed = noted(uncounted.and_then(|uncounted| uncounted.failed.as_ref()));
    let countable = |pod: &Pod| tracked(pod) && (!job.indexed() || valid_index(job, pod).is_some());
    let new = |noted: &BTreeSet<String>, ended: &dyn Fn(&Pod) -> bool| -> Vec<&Pod> {
        let pods = pods.iter().map(AsRef::as_ref);
        pods.filter(|pod| countable(pod) && !noted.contains(&pod.meta.uid) && ended(pod)).collect()
    };
    let new_succeeded = new(&noted_succeeded, &|pod| pod.phase == Phase::Succeeded);
    let new_failed = new(&noted_failed, &|pod| policy::failed(pod, job));
    let counting = new_failed.iter().filter(|pod| policy::verdict(job, pod) != Verdict::Ignore).count();
    let sum = |counted: Option<i32>, new: usize, noted: usize| {
        counted.unwrap_or(0).saturating_add(i32::try_from(new + noted).unwrap_or(i32::MAX))
    };
    let active: Vec<_> = pods.iter().filter(|pod| pod.active()).cloned().collect();
    let mut view = View {
        ready: count(active.iter().filter(|pod| pod.ready())),
        terminating: count(pods.iter().filter(|pod| !pod.ended() && pod.meta.deleting.is_some())),
        succeeded: sum(status.succeeded, new_succeeded.len(), noted_succeeded.len()),
        failed: sum(status.failed, counting, noted_failed.len()),
        record: record.after(&new_succeeded, &new_failed),
        active,
        ..View::default()
    };
    if job.indexed() {
        let read = |text: Option<&String>| Indexes::parse(text.map_or("", String::as_str), job.indexes());
        let ended = |ended: &dyn Fn(&Pod) -> bool| {
            let pods = pods.iter().filter(|pod| tracked(pod) && ended(pod));
            Indexes::of(pods.filter_map(|pod| valid_index(job, pod)))
        };
        view.succeeded_before = read(status.completed_indexes.as_ref());
        view.succeeded_indexes = view.succeeded_before.union(&ended(&|pod| pod.phase == Phase::Succeeded));
        view.succeeded = view.succeeded_indexes.total();
        if let Some(limit) = job.backoff_limit_per_index {
            let failed = ended(&|pod| index_failed(job, pod, limit));
            view.failed_indexes = Some(read(status.failed_indexes.as_ref()).union(&failed));
            view.kept = kept(job, &pods, &view);
        }
    }
    view.pods = pods;
    view
}

pub(crate) fn count<T>(items: impl Iterator<Item = T>) -> i32 {
    i32::try_from(items.count()).unwrap_or(i32::MAX)
}

fn number(pod: &Pod, annotation: &str) -> i32 {
    pod.meta
        .annotation(annotation)
        .and_then(|text| text.parse().ok())
        .filter(|number| *number >= 0)
        .unwrap_or(0)
}

fn index_failed(job: &Job, pod: &Pod, limit: i32) -> bool {
    policy::failed(pod, job)
        && match policy::verdict(job, pod) {
            Verdict::FailIndex => true,
            Verdict::Ignore => false,
            Verdict::Count | Verdict::FailJob(_) => number(pod, FAILURES) >= limit,
        }
}

/// How often the index of a pod has failed before it, counting or not.
fn failures_before(pod: &Pod) -> i32 {
    number(pod, FAILURES).saturating_add(number(pod, IGNORED_FAILURES))
}

/// The counts that the replacement of `pod` inherits: failures, and failures that do not count.
pub(crate) fn inherited(job: &Job, pod: Option<&Pod>) -> (i32, i32) {
    let Some(pod) = pod else { return (0, 0) };
    let (failures, ignored) = (number(pod, FAILURES), number(pod, IGNORED_FAILURES));
    match policy::verdict(job, pod) {
        Verdict::Ignore => (failures, ignored.saturating_add(1)),
        _ => (failures.saturating_add(1), ignored),
    }
}

/// The last failed pod of every index that has neither ended nor an active pod.
fn kept(job: &Job, pods: &[Arc<Pod>], view: &View) -> BTreeMap<i32, Arc<Pod>> {
    let active = Indexes::of(view.active.iter().filter_map(|pod| index::of_pod(pod)));
    let mut kept: BTreeMap<i32, Arc<Pod>> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| tracked(pod) && policy::failed(pod, job)) {
        let Some(index) = valid_index(job, pod) else { continue };
        let over = view.succeeded_indexes.has(index)
            || view.failed_indexes.as_ref().is_some_and(|failed| failed.has(index))
            || active.has(index);
        let rank = |pod: &Pod| (failures_before(pod), backoff::finished(pod));
        let later = kept.get(&index).is_none_or(|other| {
            let (this, other) = (rank(pod), rank(other));
            this.0 >= other.0 && this.1 >= other.1
        });
        if !over && later {
            kept.insert(index, pod.clone());
        }
    }
    kept
}

/// A condition of a Job.
pub(crate) fn condition(kind: &str, met: bool, reason: &str, message: &str, now: Timestamp) -> JobCondition {
    JobCondition {
        type_: kind.into(),
        status: if met { "True" } else { "False" }.into(),
        reason: Some(reason.into()),
        message: Some(message.into()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    }
}

/// Sets a condition; whether that changed anything. One that was never there is not set to False.
pub(crate) fn set_condition(status: &mut JobStatus, new: JobCondition) -> bool {
    let conditions = status.conditions.get_or_insert_default();
    match conditions.iter_mut().find(|old| old.type_ == new.type_) {
        Some(old) => {
            let same = old.status == new.status && old.reason == new.reason && old.message == new.message;
            if !same {
                *old = new;
            }
            !same
        }
        None if new.status == "False" => false,
        None => {
            conditions.push(new);
            true
        }
    }
}

/// Whether the Job has to end, by what its status says already or by a limit that is passed.
/// Types are `SuccessCriteriaMet`, `FailureTarget`, and `Failed` where the latter was noted before.
pub(crate) fn end(job: &Job, status: &JobStatus, view: &View, now: Timestamp) -> Option<JobCondition> {
    if let Some(met) = true_condition(status, "SuccessCriteriaMet") {
        return Some(met.clone());
    }
    if let Some(target) = true_condition(status, "FailureTarget") {
        let (reason, message) = (target.reason.as_deref(), target.message.as_deref());
        return Some(condition("Failed", true, reason.unwrap_or(""), message.unwrap_or(""), now));
    }
    let failed = |reason: &str, message: &str| Some(condition("FailureTarget", true, reason, message, now));
    for pod in view.pods.iter().filter(|pod| job.failure_policy.is_some() && policy::failed(pod, job)) {
        if let Verdict::FailJob(message) = policy::verdict(job, pod) {
            return failed("PodFailurePolicy", &message);
        }
    }
    if view.failed > job.backoff_limit || restarted_too_often(job, view) {
        return failed("BackoffLimitExceeded", "Job has reached the specified backoff limit");
    }
    if deadline(job, status).is_some_and(|deadline| deadline <= now) {
        return failed("DeadlineExceeded", "Job was active longer than specified deadline");
    }
    if let Some(failed_indexes) = &view.failed_indexes {
        let lost = failed_indexes.total();
        if job.max_failed_indexes.is_some_and(|most| lost > most) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return failed("MaxFailedIndexesExceeded", message);
        }
        if lost > 0 && lost.saturating_add(view.succeeded_indexes.total()) >= job.indexes() {
            return failed("FailedIndexes", "Job has failed indexes");
        }
    }
    let message = policy::success(job, &view.succeeded_indexes)?;
    Some(condition("SuccessCriteriaMet", true, "SuccessPolicy", &message, now))
}

/// When a Job that is not suspended has been active for too long.
pub(crate) fn deadline(job: &Job, status: &JobStatus) -> Option<Timestamp> {
    let seconds = job.active_deadline.filter(|_| !job.suspend)?;
    let start = status.start_time.as_ref()?.0;
    Some(start.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX))
}

/// With `restartPolicy: OnFailure` the restarts of its containers count against the limit.
fn restarted_too_often(job: &Job, view: &View) -> bool {
    if !job.restarts_on_failure() {
        return false;
    }
    let running = view.pods.iter().filter(|pod| matches!(pod.phase, Phase::Running | Phase::Pending));
    let statuses = running.flat_map(|pod| pod.statuses.iter().chain(&pod.init_statuses));
    let restarts: i64 = statuses.map(|status| i64::from(status.restarts)).sum();
    restarts > 0 && restarts >= i64::from(job.backoff_limit)
}

/// What to do about the number of pods.
#[derive(Debug)]
pub(crate) enum Manage {
    /// As many as there should be.
    Nothing,
    /// These are too many.
    Delete(Vec<Arc<Pod>>),
    /// So many are missing; the indexes that they are for, if the Job is Indexed.
    Create { count: usize, indexes: Vec<i32> },
    /// Some are missing, and may be made only after this time.
    Wait(Duration),
}

/// Compares the pods that there are with those that there should be.
pub(crate) fn manage(job: &Job, view: &View, now: Timestamp) -> Manage {
    let active = i32::try_from(view.active.len()).unwrap_or(i32::MAX);
    if job.suspend {
        return Manage::Delete(surplus(job, &view.active, view.active.len()));
    }
    let wanted = match job.completions {
        None if view.succeeded > 0 => active,
        None => job.parallelism,
        Some(completions) => completions.saturating_sub(view.succeeded).min(job.parallelism).max(0),
    };
    let mut surplus = surplus(job, &view.active, usize::try_from(active - wanted).unwrap_or(0));
    if !surplus.is_empty() {
        surplus.truncate(AT_ONCE_MAX);
        return Manage::Delete(surplus);
    }
    let leaving = if job.replace_failed_only { view.terminating } else { 0 };
    let missing = usize::try_from(wanted - leaving - active).unwrap_or(0).min(AT_ONCE_MAX);
    if missing == 0 {
        return Manage::Nothing;
    }
    if job.backoff_limit_per_index.is_none() {
        let wait = view.record.remaining(now);
        if !wait.is_zero() {
            return Manage::Wait(wait);
        }
    }
    if !job.indexed() {
        return Manage::Create { count: missing, indexes: Vec::new() };
    }
    let indexes = pending_indexes(job, view, missing);
    let wait = |index: &i32| {
        let failed = view.kept.get(index)?;
        let failures = u32::try_from(failures_before(failed)).unwrap_or(0).saturating_add(1);
        Some(backoff::remaining(failures, backoff::finished(failed), now)).filter(|wait| !wait.is_zero())
    };
    let (waiting, ready): (Vec<i32>, Vec<i32>) =
        indexes.iter().copied().partition(|index| wait(index).is_some());
    match waiting.iter().filter_map(wait).min() {
        Some(wait) if ready.is_empty() => Manage::Wait(wait),
        _ => Manage::Create { count: ready.len(), indexes: ready },
    }
}

/// The first indexes that have neither an active pod nor an end.
fn pending_indexes(job: &Job, view: &View, most: usize) -> Vec<i32> {
    let indexes_of =
        |pods: &mut dyn Iterator<Item = &Arc<Pod>>| Indexes::of(pods.filter_map(|pod| index::of_pod(pod)));
    let mut taken = view.succeeded_indexes.union(&indexes_of(&mut view.active.iter()));
    if job.replace_failed_only {
        let mut leaving = view.pods.iter().filter(|pod| !pod.ended() && pod.meta.deleting.is_some());
        taken = taken.union(&indexes_of(&mut leaving));
    }
    if let Some(failed) = &view.failed_indexes {
        taken = taken.union(failed);
    }
    taken.first_missing(most, job.indexes())
}

/// At least `least` active pods that should go: those whose index is taken, too high or missing,
/// then those that have got least far; among equals the last by name.
fn surplus(job: &Job, active: &[Arc<Pod>], least: usize) -> Vec<Arc<Pod>> {
    let mut order: Vec<&Arc<Pod>> = active.iter().collect();
    order.sort_by(|a, b| progress(a).cmp(&progress(b)).then_with(|| b.meta.key.cmp(&a.meta.key)));
    let (mut surplus, mut rest) = (Vec::new(), Vec::new());
    if job.indexed() {
        // Of those with the same index the one that has got furthest stays.
        let mut taken = BTreeSet::new();
        for pod in order.into_iter().rev() {
            match valid_index(job, pod) {
                Some(index) if taken.insert(index) => rest.push(pod),
                _ => surplus.push(pod.clone()),
            }
        }
        rest.reverse();
    } else {
        rest = order;
    }
    let more = least.saturating_sub(surplus.len());
    surplus.extend(rest.into_iter().take(more).cloned());
    surplus
}

/// How far a pod has got: unassigned before assigned, pending before running, not ready before
/// ready, ready later before ready longer, restarted more often before less, newer before older.
fn progress(pod: &Pod) -> impl Ord + use<> {
    let since = |time: Option<Timestamp>| std::cmp::Reverse(time);
    let ready = pod.condition("Ready").filter(|ready| ready.status == "True");
    let ready_since = ready.and_then(|ready| ready.last_transition_time.as_ref()).map(|time| time.0);
    let restarts = pod.statuses.iter().map(|status| status.restarts).max().unwrap_or(0);
    (
        pod.node.is_some(),
        pod.phase,
        pod.ready(),
        since(ready_since),
        std::cmp::Reverse(restarts),
        since(Some(pod.meta.created)),
    )
}

/// Which pods may be let go now, and what that says about the Job.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// They are noted in the status; their finalizer may be taken away.
    pub(crate) release: Vec<Arc<Pod>>,
    /// There may be more; the status is as large as it may become.
    pub(crate) full: bool,
}

/// Notes ended pods in the status: succeeded indexes, or uids that are counted once the finalizer
/// is away. `end` is the condition with which the Job ends now, if any.
pub(crate) fn tally(job: &Job, status: &mut JobStatus, view: &View, end: Option<&JobCondition>) -> Tally {
    let mut tally = Tally::default();
    let noted = status.uncounted_terminated_pods.get_or_insert_default();
    let (mut new_indexes, indexed) = (Vec::new(), job.indexed());
    let mut order: Vec<_> = view.pods.iter().filter(|pod| tracked(pod)).collect();
    if indexed {
        order.sort_by_key(|pod| index::of_pod(pod).unwrap_or(-1));
    }
    let lost = end.is_some_and(|end| end.type_ != "SuccessCriteriaMet");
    for pod in order {
        let failed = policy::failed(pod, job);
        if !releasable(job, view, pod, failed, end.is_some()) {
            continue;
        }
        tally.release.push(pod.clone());
        let succeeded = noted.succeeded.get_or_insert_default();
        let failures = noted.failed.get_or_insert_default();
        let uid = &pod.meta.uid;
        if pod.phase == Phase::Succeeded && !failures.contains(uid) {
            match valid_index(job, pod) {
                Some(index) if indexed && !view.succeeded_before.has(index) => new_indexes.push(index),
                _ if !indexed && !succeeded.contains(uid) => succeeded.push(uid.clone()),
                _ => {}
            }
        } else if (failed || lost) && !failures.contains(uid) && (!indexed || valid_index(job, pod).is_some())
        {
            // When the Job ends, every pod that has not succeeded counts as failed.
            if policy::verdict(job, pod) != Verdict::Ignore {
                failures.push(uid.clone());
            }
        }
        if new_indexes.len() + succeeded.len() + failures.len() >= UNCOUNTED_MAX {
            tally.full = true;
            break;
        }
    }
    noted.succeeded = noted.succeeded.take().filter(|list| !list.is_empty());
    noted.failed = noted.failed.take().filter(|list| !list.is_empty());
    if indexed {
        let all = view.succeeded_before.union(&Indexes::of(new_indexes));
        status.succeeded = Some(all.total()).filter(|total| *total > 0);
        status.completed_indexes = Some(all.to_string()).filter(|text| !text.is_empty());
        status.failed_indexes = view.failed_indexes.as_ref().map(ToString::to_string);
    }
    tally
}

/// Whether a pod's finalizer may go: it has ended, or its Job has.
fn releasable(job: &Job, view: &View, pod: &Pod, failed: bool, ending: bool) -> bool {
    if job.meta.deleting.is_some() || ending || pod.phase == Phase::Succeeded {
        return true;
    }
    let kept = index::of_pod(pod).and_then(|index| view.kept.get(&index));
    failed && kept.is_none_or(|kept| kept.meta.uid != pod.meta.uid)
}

/// Counts the noted pods whose finalizer is away; whether there were any.
pub(crate) fn count_released(status: &mut JobStatus, held: &BTreeSet<String>) -> bool {
    let Some(noted) = &mut status.uncounted_terminated_pods else { return false };
    let mut any = false;
    let mut settle = |list: &mut Option<Vec<String>>, counter: &mut Option<i32>| {
        let Some(uids) = list else { return };
        let before = uids.len();
        uids.retain(|uid| held.contains(uid));
        let counted = before - uids.len();
        if counted > 0 {
            any = true;
            *counter = Some(counter.unwrap_or(0).saturating_add(i32::try_from(counted).unwrap_or(i32::MAX)));
        }
        if uids.is_empty() {
            *list = None;
        }
    };
    settle(&mut noted.succeeded, &mut status.succeeded);
    settle(&mut noted.failed, &mut status.failed);
    any
}
