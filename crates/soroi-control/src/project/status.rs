//! The status of a Workload: what it got, and its conditions in Kueue's order of events and wording
//! (0.18; `pkg/workload`).
//!
//! Every function takes the status as it was read and changes it in place; [`super::status_patch`]
//! makes the patch. A condition's transition time moves only when its status does.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use soroi_api::Quantity;
use soroi_api::conditions::workload::reason as word;
use soroi_api::conditions::{self, NewCondition, workload as condition};
use soroi_api::kueue::{
    Admission, AdmissionCheckState, CheckState, PodSetAssignment, PodSetRequest, RequeueState,
    SchedulingStats, TopologyAssignment, TopologyDomain, WorkloadEviction, WorkloadStatus,
};
use soroi_engine::decision::{self, PodSetAdmission, TopologyPlaces};
use soroi_engine::event::PodSet;
use soroi_engine::preempt::Cause;
use soroi_engine::reason::{Off, Preempted, UndoReason};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::dialect::Dialect;
use crate::config::Requeuing;

/// When something is said, and in which words.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// Now.
    pub now: Timestamp,
    /// Whose words.
    pub dialect: Dialect,
}

impl At {
    /// What is said of a Workload with this `metadata.generation`, as it was read.
    pub fn of(self, generation: i64) -> Moment {
        Moment { generation, now: self.now, dialect: self.dialect }
    }
}

/// The Workload that is spoken of, when, and in which words.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    generation: i64,
    now: Timestamp,
    dialect: Dialect,
}

impl Moment {
    fn set(&self, status: &mut WorkloadStatus, kind: &str, holds: bool, reason: &str, message: String) {
        let new = NewCondition {
            type_: kind,
            status: Some(holds),
            reason: self.dialect.translated(reason),
            message,
            observed_generation: Some(self.generation),
        };
        conditions::set(&mut status.conditions, new, self.now);
    }
}

/// What an admission that is taken back says: the reason and the message of Evicted (after the
/// start), or the message of QuotaReserved=False (before it).
pub fn undo_words(reason: &UndoReason, namespace: &str, name: &str) -> (&'static str, String) {
    match reason {
        UndoReason::StartTimeout(lack) => (
            word::PODS_READY_TIMEOUT,
            format!("Exceeded the PodsReady timeout {namespace}/{name}: {lack} exist"),
        ),
        UndoReason::RecoveryTimeout(lack) => (
            word::PODS_READY_TIMEOUT,
            format!("Exceeded the PodsReady timeout {namespace}/{name}: {lack} are bound"),
        ),
        UndoReason::NotReady => {
            (word::PODS_READY_TIMEOUT, format!("Exceeded the PodsReady timeout {namespace}/{name}"))
        }
        UndoReason::PlacesLost => (
            word::NODE_FAILURES,
            "Workload was evicted as there was no replacement for the places that it lost".into(),
        ),
        UndoReason::Off(Off::Deactivated) => (word::DEACTIVATED, "The workload is deactivated".into()),
        UndoReason::Off(Off::SuspendedByUser) => {
            (word::DEACTIVATED, "The job was suspended by its user".into())
        }
        UndoReason::NoPlaceAfterChecks => (
            word::NODE_FAILURES,
            "The admission checks are ready, and there are no places for the workload now".into(),
        ),
        UndoReason::Off(Off::CheckRetry(message)) => (word::ADMISSION_CHECK, message.to_string()),
        UndoReason::Off(Off::Finished) => (word::DEACTIVATED, "The job has finished".into()),
        UndoReason::LocalQueueStopped => (word::LOCAL_QUEUE_STOPPED, "The LocalQueue is stopped".into()),
        UndoReason::ClusterQueueStopped => {
            (word::CLUSTER_QUEUE_STOPPED, "The ClusterQueue is stopped".into())
        }
        UndoReason::Orphaned => {
            (word::NODE_FAILURES, "The workload held quota, and nothing of it could run with that".into())
        }
        UndoReason::Preempted(by) => (word::PREEMPTED, preemption(by, &by.by, None)),
        UndoReason::Interrupted => {
            (word::NODE_FAILURES, "The workload was being taken back when the leadership changed".into())
        }
    }
}

/// It waits: `QuotaReserved=False` with this reason, and what it asks for as numbers.
pub fn pending(status: &mut WorkloadStatus, word: &str, message: &str, pod_sets: &[PodSet], at: Moment) {
    at.set(status, condition::QUOTA_RESERVED, false, word, message.into());
    status.admission = None;
    status.resource_requests = pod_sets.iter().map(requests).collect();
    sync_admitted(status, at);
}

/// What all pods of a pod set ask for together.
fn requests(set: &PodSet) -> PodSetRequest {
    let total = |resource: &str, each: i64| Quantity::of(resource, each.saturating_mul(i64::from(set.count)));
    let resources = set.charged().requests.iter();
    PodSetRequest {
        name: set.name.to_string(),
        resources: resources.map(|(name, each)| (name.to_string(), total(name, *each))).collect(),
    }
}

/// It holds quota: `QuotaReserved=True` and what it got, and `Admitted=True` unless admission
/// checks are not ready. An eviction before it is history now.
pub fn reserve(status: &mut WorkloadStatus, admission: &decision::Admission, at: Moment) {
    let admission = admission_of(admission);
    if !conditions::is_true(&status.conditions, condition::QUOTA_RESERVED) {
        forget_deactivation(status);
    }
    let message = format!("Quota reserved in ClusterQueue {}", admission.cluster_queue);
    status.admission = Some(admission);
    status.resource_requests.clear();
    at.set(status, condition::QUOTA_RESERVED, true, word::QUOTA_RESERVED, message);
    for kind in [condition::EVICTED, condition::PREEMPTED] {
        let before = conditions::get(&status.conditions, kind).filter(|before| before.status == "True");
        if let Some(message) = before.map(|before| format!("Previously: {}", before.message)) {
            at.set(status, kind, false, word::QUOTA_RESERVED, message);
        }
    }
    sync_admitted(status, at);
}

/// What was deactivated for a reason and is active again starts anew: also its time.
fn forget_deactivation(status: &mut WorkloadStatus) {
    let kind = condition::DEACTIVATION_TARGET;
    if conditions::is_true(&status.conditions, kind) {
        status.conditions.retain(|there| there.type_ != kind);
        status.accumulated_past_execution_time_seconds = None;
    }
}

/// It is to be deactivated, and why: the word and the words of [`TIME_IS_OVER`] or [`PUT_BACK_TOO_OFTEN`].
pub fn to_be_deactivated(status: &mut WorkloadStatus, (reason, message): (&str, &str), at: Moment) {
    at.set(status, condition::DEACTIVATION_TARGET, true, reason, message.into());
}

/// It has run for as long as it may.
pub const TIME_IS_OVER: (&str, &str) =
    (word::MAXIMUM_EXECUTION_TIME_EXCEEDED, "exceeding the maximum execution time");

/// It was put back as often as it may because its pods were not ready in time.
pub const PUT_BACK_TOO_OFTEN: (&str, &str) =
    (word::REQUEUING_LIMIT_EXCEEDED, "exceeding the maximum number of re-queuing retries");

/// Reason and message of the eviction of a Workload that is deactivated for this.
pub fn deactivation((reason, message): (&str, &str)) -> (String, String) {
    (format!("{}{reason}", word::DEACTIVATED_DUE_TO), format!("The workload is deactivated due to {message}"))
}

/// For which admission checks it is deactivated.
pub fn rejection(status: &WorkloadStatus) -> String {
    let rejected = status.admission_checks.iter().filter(|check| check.state == CheckState::Rejected);
    let names: Vec<&str> = rejected.map(|check| check.name.as_str()).collect();
    format!("Admission check(s): {}, were rejected", names.join(","))
}

/// Until when an eviction by admission checks pauses: as long as each of those that want it tried again asks
/// for (Kueue, `requeueAfterSeconds`); `None`: not at all.
fn pause_of_checks(checks: &[AdmissionCheckState]) -> Option<Timestamp> {
    let retried = checks.iter().filter(|check| check.state == CheckState::Retry);
    let until = retried.filter_map(|check| {
        let seconds = SignedDuration::from_secs(i64::from(check.requeue_after_seconds?));
        Some(check.last_transition_time.0.saturating_add(seconds).unwrap_or(Timestamp::MAX))
    });
    until.max()
}

/// Sets Admitted to what follows from quota and checks. A Workload that was never admitted has no
/// such condition until its quota is reserved; time spent admitted is added up when it ends.
pub fn sync_admitted(status: &mut WorkloadStatus, at: Moment) {
    let reserved = conditions::is_true(&status.conditions, condition::QUOTA_RESERVED);
    let checked = status.admission_checks.iter().all(|check| check.state == CheckState::Ready);
    let before = conditions::get(&status.conditions, condition::ADMITTED).cloned();
    let was = before.as_ref().is_some_and(|before| before.status == "True");
    if was == (reserved && checked) {
        return;
    }
    let (reason, message) = match (reserved, checked) {
        (true, true) => (word::ADMITTED, "The workload is admitted"),
        (true, false) => (word::UNSATISFIED_CHECKS, "The workload has not all checks ready"),
        (false, true) => (word::NO_RESERVATION, "The workload has no reservation"),
        (false, false) => (
            word::NO_RESERVATION_UNSATISFIED_CHECKS,
            "The workload has no reservation and not all checks ready",
        ),
    };
    if let Some(before) = before.filter(|_| was) {
        let seconds = at.now.duration_since(before.last_transition_time.0).as_secs();
        let past = status.accumulated_past_execution_time_seconds.unwrap_or(0);
        let sum = past.saturating_add(i32::try_from(seconds.max(0)).unwrap_or(i32::MAX));
        status.accumulated_past_execution_time_seconds = Some(sum);
    }
    at.set(status, condition::ADMITTED, reserved && checked, reason, message.into());
}

/// It has to stop, having started: `Evicted=True`. Its quota is kept until its pods are gone
/// ([`give_back`]); its checks start anew, and the eviction is counted.
pub fn evict(status: &mut WorkloadStatus, reason: &str, message: &str, at: Moment) {
    at.set(status, condition::EVICTED, true, reason, message.into());
    if let Some(until) = pause_of_checks(&status.admission_checks) {
        let state = status.requeue_state.get_or_insert_with(RequeueState::default);
        state.requeue_at = state.requeue_at.take().max(Some(Time(until)));
    }
    for check in &mut status.admission_checks {
        reset(check, at.now);
    }
    status.unhealthy_nodes.clear();
    status.cluster_name = None;
    status.nominated_cluster_names.clear();
    if reason.starts_with(word::DEACTIVATED) {
        // How often it was put back counts from its next activation.
        status.requeue_state = None;
    }
    count_eviction(status, reason);
}

/// Counts an eviction under its reason and what lies below that: what it was deactivated for, or what its pods
/// were waited for.
fn count_eviction(status: &mut WorkloadStatus, reason: &str) {
    let waited_for = conditions::get(&status.conditions, condition::PODS_READY).map(|shown| &*shown.reason);
    let waited_for = waited_for.filter(|why| [word::WAIT_FOR_START, word::WAIT_FOR_RECOVERY].contains(why));
    let (reason, cause) = match (reason.strip_prefix(word::DEACTIVATED_DUE_TO), waited_for) {
        (Some(cause), _) => (word::DEACTIVATED, cause),
        (None, Some(cause)) if reason == word::PODS_READY_TIMEOUT => (reason, cause),
        _ => (reason, ""),
    };
    let (reason, cause) = (reason.to_owned(), cause.to_owned());
    let stats = status.scheduling_stats.get_or_insert_with(SchedulingStats::default);
    let same = |one: &&mut WorkloadEviction| one.reason == reason && one.underlying_cause == cause;
    match stats.evictions.iter_mut().find(same) {
        Some(eviction) => eviction.count = eviction.count.saturating_add(1),
        None => stats.evictions.push(WorkloadEviction { reason, underlying_cause: cause, count: 1 }),
    }
}

/// It is put back once more, and pauses for twice as long as the last time (Kueue, `UpdateRequeueState`, but
/// without its dice: whoever was put back together may come back together).
pub fn put_back(status: &mut WorkloadStatus, rules: &Requeuing, at: Moment) {
    let state = status.requeue_state.get_or_insert_default();
    let before = state.count.unwrap_or(0).max(0);
    state.count = Some(before.saturating_add(1));
    let doubled = i64::from(rules.base_secs).saturating_mul(1 << before.min(31));
    let pause = SignedDuration::from_secs(doubled.min(i64::from(rules.max_secs)));
    let until = Time(at.now.saturating_add(pause).unwrap_or(Timestamp::MAX));
    // Somebody else may want it to wait longer.
    state.requeue_at = state.requeue_at.take().into_iter().chain([until]).max();
}

/// It is evicted for another, by this right.
pub fn preempted(status: &mut WorkloadStatus, cause: &str, message: &str, at: Moment) {
    at.set(status, condition::PREEMPTED, true, cause, message.into());
}

/// The reason of the condition Preempted, and the same for people (Kueue, `HumanReadablePreemptionReasons`).
pub fn cause_words(cause: Cause) -> (&'static str, &'static str) {
    match cause {
        Cause::WithinQueue => (word::IN_CLUSTER_QUEUE, "prioritization in the ClusterQueue"),
        Cause::Reclaim => (word::IN_COHORT_RECLAMATION, "reclamation within the cohort"),
        Cause::FairSharing => (word::IN_COHORT_FAIR_SHARING, "Fair Sharing within the cohort"),
        Cause::ReclaimWhileBorrowing => {
            (word::IN_COHORT_RECLAIM_WHILE_BORROWING, "reclamation within the cohort while borrowing")
        }
    }
}

/// What a victim is told, in Kueue's words. `job`: the uid of the preemptor's job, if it has one.
pub fn preemption(preempted: &Preempted, workload: &str, job: Option<&str>) -> String {
    let (_, right) = cause_words(preempted.cause);
    let (by_path, path) = (&preempted.by_path, &preempted.path);
    let job = job.unwrap_or("UNKNOWN");
    format!(
        "Preempted to accommodate a workload (UID: {workload}, JobUID: {job}) due to {right}; \
         preemptor path: {by_path}; preemptee path: {path}"
    )
}

fn reset(check: &mut AdmissionCheckState, now: Timestamp) {
    if check.state == CheckState::Pending {
        return;
    }
    let retries =
        (check.state == CheckState::Retry).then(|| check.retry_count.unwrap_or(0).saturating_add(1));
    *check = AdmissionCheckState {
        name: std::mem::take(&mut check.name),
        state: CheckState::Pending,
        last_transition_time: Time(now),
        message: format!("Reset to Pending after eviction. Previously: {}", check.state),
        pod_set_updates: Vec::new(),
        requeue_after_seconds: check.requeue_after_seconds,
        retry_count: retries,
    };
}

/// An evicted Workload's last pod is gone: it gives its quota back and is put into its queue again,
/// at once after preemption and node failures, else when its pause or its user says so.
pub fn give_back(status: &mut WorkloadStatus, at: Moment) {
    let Some(evicted) = conditions::get(&status.conditions, condition::EVICTED).cloned() else { return };
    let at_once = matches!(evicted.reason.as_str(), word::PREEMPTED | word::NODE_FAILURES);
    at.set(status, condition::REQUEUED, at_once, &evicted.reason, evicted.message.clone());
    at.set(status, condition::QUOTA_RESERVED, false, word::PENDING, evicted.message);
    lose_admission(status, at);
}

fn lose_admission(status: &mut WorkloadStatus, at: Moment) {
    status.admission = None;
    sync_admitted(status, at);
    if conditions::get(&status.conditions, condition::PODS_READY).is_some() {
        let message = "Not all pods are ready or succeeded".into();
        at.set(status, condition::PODS_READY, false, word::WAIT_FOR_START, message);
    }
}

/// An admission was taken back before all members ran: no eviction, only no quota any more.
pub fn undo(status: &mut WorkloadStatus, message: &str, at: Moment) {
    at.set(status, condition::QUOTA_RESERVED, false, word::PENDING, message.into());
    lose_admission(status, at);
}

/// It may be queued again: `Requeued=True`, for one of `Reactivated`, `BackoffFinished`,
/// `ClusterQueueRestarted` and `LocalQueueRestarted`.
pub fn requeue(status: &mut WorkloadStatus, reason: &str, at: Moment) {
    let message = match reason {
        word::REACTIVATED => "The workload was reactivated",
        word::BACKOFF_FINISHED => "The workload backoff was finished",
        word::CLUSTER_QUEUE_RESTARTED => "The ClusterQueue was restarted after being stopped",
        word::LOCAL_QUEUE_RESTARTED => "The LocalQueue was restarted after being stopped",
        _ => "The workload was requeued",
    };
    if let Some(state) = &mut status.requeue_state {
        state.requeue_at = None;
    }
    at.set(status, condition::REQUEUED, true, reason, message.into());
}

/// Whether all its pods are ready, with the word for how that came about. Once ready, a Workload
/// that loses a pod recovers rather than starts.
pub fn pods_ready(status: &mut WorkloadStatus, ready: bool, at: Moment) {
    let before = conditions::get(&status.conditions, condition::PODS_READY);
    let started =
        before.is_some_and(|before| before.status == "True" || before.reason == word::WAIT_FOR_RECOVERY);
    let was_ready = before.is_some_and(|before| before.status == "True");
    if before.is_some() && was_ready == ready {
        return;
    }
    let (reason, message) = match (ready, started) {
        (true, false) => (word::STARTED, "All pods reached readiness and the workload is running"),
        (true, true) => (word::RECOVERED, "All pods reached readiness and the workload is running"),
        (false, false) => (word::WAIT_FOR_START, "Not all pods are ready or succeeded"),
        (false, true) => (word::WAIT_FOR_RECOVERY, "At least one pod has failed, waiting for recovery"),
    };
    at.set(status, condition::PODS_READY, ready, reason, message.into());
}

/// It has ended, with its job's own message.
pub fn finish(status: &mut WorkloadStatus, succeeded: bool, message: &str, at: Moment) {
    let reason = if succeeded { word::SUCCEEDED } else { word::FAILED };
    at.set(status, condition::FINISHED, true, reason, message.into());
    // One that waited does so no more, whatever for.
    let waits = |shown: &Condition| shown.status == "False";
    if conditions::get(&status.conditions, condition::QUOTA_RESERVED).is_some_and(waits) {
        at.set(status, condition::QUOTA_RESERVED, false, reason, message.into());
    }
}

/// It has ended once, and what it stands for wants to run again: it waits as a new one does.
pub fn reopen(status: &mut WorkloadStatus, message: &str, at: Moment) {
    let kept = [condition::QUOTA_RESERVED, condition::ADMITTED, condition::PODS_READY];
    status.conditions.retain(|there| kept.contains(&there.type_.as_str()));
    status.reclaimable_pods.clear();
    undo(status, message, at);
}

/// What a decision gave, as the Workload's status shows it.
pub fn admission_of(admission: &decision::Admission) -> Admission {
    Admission {
        cluster_queue: admission.cluster_queue.as_deref().unwrap_or_default().into(),
        pod_set_assignments: admission.pod_sets.iter().map(assignment).collect(),
    }
}

fn assignment(set: &PodSetAdmission) -> PodSetAssignment {
    let flavors = set.flavors.iter().map(|(resource, flavor)| (resource.to_string(), flavor.to_string()));
    let usage = set.usage.iter();
    let usage = usage.map(|(resource, amount)| (resource.to_string(), Quantity::of(resource, *amount)));
    PodSetAssignment {
        name: set.name.to_string(),
        flavors: flavors.collect(),
        resource_usage: usage.collect::<BTreeMap<_, _>>(),
        count: Some(i32::try_from(set.count).unwrap_or(i32::MAX)),
        topology_assignment: set.topology.as_ref().map(topology_assignment),
        delayed_topology_request: None,
    }
}

/// Places by topology domain in Kueue's compact encoding.
pub fn topology_assignment(places: &TopologyPlaces) -> TopologyAssignment {
    let domains: Vec<TopologyDomain> = places
        .domains
        .iter()
        .map(|domain| TopologyDomain {
            values: domain.values.iter().map(ToString::to_string).collect(),
            count: i32::try_from(domain.count).unwrap_or(i32::MAX),
        })
        .collect();
    TopologyAssignment::from_domains(places.levels.iter().map(ToString::to_string).collect(), &domains)
}

#[cfg(test)]
mod tests;
