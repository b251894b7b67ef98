//! Conditions: the words in them, and how one is set.
//!
//! Types and reasons are Kueue's (0.18/0.19) and Volcano's (1.15). Which one applies is not known here.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

/// Types and reasons of a Workload's conditions.
pub mod workload {
    /// It holds quota.
    pub const QUOTA_RESERVED: &str = "QuotaReserved";
    /// It may run.
    pub const ADMITTED: &str = "Admitted";
    /// All its pods are ready or have succeeded.
    pub const PODS_READY: &str = "PodsReady";
    /// It had to stop.
    pub const EVICTED: &str = "Evicted";
    /// It had to stop for another workload.
    pub const PREEMPTED: &str = "Preempted";
    /// It was put back into its queue.
    pub const REQUEUED: &str = "Requeued";
    /// It is going to be switched off.
    pub const DEACTIVATION_TARGET: &str = "DeactivationTarget";
    /// It has ended.
    pub const FINISHED: &str = "Finished";
    /// It waits for preemption gates.
    pub const BLOCKED_ON_PREEMPTION_GATES: &str = "BlockedOnPreemptionGates";
    /// Pods of its group have failed and are to be replaced by its user.
    pub const WAITING_FOR_REPLACEMENT_PODS: &str = "WaitingForReplacementPods";

    /// Reasons, by the type that they belong to.
    pub mod reason {
        /// QuotaReserved=True; also Evicted=False and Preempted=False after a new reservation.
        pub const QUOTA_RESERVED: &str = "QuotaReserved";
        /// QuotaReserved=False: it waits; the message says for what.
        pub const PENDING: &str = "Pending";
        /// QuotaReserved=False: its queues do not admit.
        pub const INADMISSIBLE: &str = "Inadmissible";
        /// QuotaReserved=False: another workload's pods must be ready first.
        pub const WAITING: &str = "Waiting";
        /// QuotaReserved=False: others' gates are closed.
        pub const ADMISSION_GATED: &str = "AdmissionGated";
        /// QuotaReserved=False in Kueue 0.19: its queue was stopped, or does not admit.
        pub const SUSPENDED: &str = "Suspended";
        /// QuotaReserved=False in Kueue 0.19: a queue does not exist, or what it asks is not valid.
        pub const MISCONFIGURED: &str = "Misconfigured";
        /// QuotaReserved=False in Kueue 0.19: no flavor suits its pods.
        pub const NO_MATCHING_FLAVOR: &str = "NoMatchingFlavor";
        /// QuotaReserved=False in Kueue 0.19: more than its queue could ever get.
        pub const EXCEEDS_MAX_QUOTA: &str = "ExceedsMaxQuota";
        /// QuotaReserved=False in Kueue 0.19: too little is unused.
        pub const WAITING_FOR_QUOTA: &str = "WaitingForQuota";
        /// QuotaReserved=False in Kueue 0.19: quota is there, places are not.
        pub const TOPOLOGY_PLACEMENT_FAILED: &str = "TopologyPlacementFailed";
        /// QuotaReserved=False in Kueue 0.19: others leave for it.
        pub const WAITING_FOR_PREEMPTED_WORKLOADS: &str = "WaitingForPreemptedWorkloads";
        /// QuotaReserved=False in Kueue 0.19: another workload's pods must be ready first.
        pub const WAITING_FOR_PODS_READY: &str = "WaitingForPodsReady";
        /// QuotaReserved=False in Kueue 0.19: it was not decided yet.
        pub const PENDING_EVALUATION: &str = "PendingEvaluation";
        /// Admitted=True.
        pub const ADMITTED: &str = "Admitted";
        /// Admitted=False: it lost its quota.
        pub const NO_RESERVATION: &str = "NoReservation";
        /// Admitted=False: a check is not ready.
        pub const UNSATISFIED_CHECKS: &str = "UnsatisfiedChecks";
        /// The same in Kueue 0.19.
        pub const UNSATISFIED_ADMISSION_CHECKS: &str = "UnsatisfiedAdmissionChecks";
        /// Admitted=False: both.
        pub const NO_RESERVATION_UNSATISFIED_CHECKS: &str = "NoReservationUnsatisfiedChecks";
        /// Admitted=False: its topology domains are not chosen yet.
        pub const PENDING_DELAYED_TOPOLOGY_REQUESTS: &str = "PendingDelayedTopologyRequests";
        /// Evicted=True, Requeued=False: for another workload.
        pub const PREEMPTED: &str = "Preempted";
        /// Evicted=True: its pods did not become ready in time.
        pub const PODS_READY_TIMEOUT: &str = "PodsReadyTimeout";
        /// Evicted=True: a check wants another try.
        pub const ADMISSION_CHECK: &str = "AdmissionCheck";
        /// Evicted=True: its ClusterQueue was stopped.
        pub const CLUSTER_QUEUE_STOPPED: &str = "ClusterQueueStopped";
        /// Evicted=True: its LocalQueue was stopped.
        pub const LOCAL_QUEUE_STOPPED: &str = "LocalQueueStopped";
        /// Evicted=True: nodes failed and there are no others.
        pub const NODE_FAILURES: &str = "NodeFailures";
        /// Evicted=True: its user switched it off.
        pub const DEACTIVATED: &str = "Deactivated";
        /// Evicted=True: it was switched off; the cause follows this prefix.
        pub const DEACTIVATED_DUE_TO: &str = "DeactivatedDueTo";
        /// Evicted=True: it moves to a better flavor.
        pub const FLAVOR_MIGRATION: &str = "FlavorMigration";
        /// Preempted=True: by a workload of the same queue.
        pub const IN_CLUSTER_QUEUE: &str = "InClusterQueue";
        /// Preempted=True: another queue took its own back.
        pub const IN_COHORT_RECLAMATION: &str = "InCohortReclamation";
        /// Preempted=True: for a fair share.
        pub const IN_COHORT_FAIR_SHARING: &str = "InCohortFairSharing";
        /// Preempted=True: another queue took its own back while it borrows.
        pub const IN_COHORT_RECLAIM_WHILE_BORROWING: &str = "InCohortReclaimWhileBorrowing";
        /// Requeued=True: its user switched it on.
        pub const REACTIVATED: &str = "Reactivated";
        /// Requeued=True: its pause is over.
        pub const BACKOFF_FINISHED: &str = "BackoffFinished";
        /// Requeued=True: its ClusterQueue admits again.
        pub const CLUSTER_QUEUE_RESTARTED: &str = "ClusterQueueRestarted";
        /// Requeued=True: its LocalQueue admits again.
        pub const LOCAL_QUEUE_RESTARTED: &str = "LocalQueueRestarted";
        /// DeactivationTarget=True: it was put back too often.
        pub const REQUEUING_LIMIT_EXCEEDED: &str = "RequeuingLimitExceeded";
        /// DeactivationTarget=True: it ran too long.
        pub const MAXIMUM_EXECUTION_TIME_EXCEEDED: &str = "MaximumExecutionTimeExceeded";
        /// PodsReady=False: not all were ready yet.
        pub const WAIT_FOR_START: &str = "WaitForStart";
        /// PodsReady=True for the first time.
        pub const STARTED: &str = "Started";
        /// PodsReady=False after it was True.
        pub const WAIT_FOR_RECOVERY: &str = "WaitForRecovery";
        /// PodsReady=True again.
        pub const RECOVERED: &str = "Recovered";
        /// Finished=True: well.
        pub const SUCCEEDED: &str = "Succeeded";
        /// Finished=True: badly.
        pub const FAILED: &str = "Failed";
        /// Finished=True: it no longer matches its job.
        pub const OUT_OF_SYNC: &str = "OutOfSync";
        /// Finished=True: its job is gone.
        pub const OWNER_NOT_FOUND: &str = "OwnerNotFound";
    }
}

/// Types and reasons of ClusterQueues', LocalQueues' and AdmissionChecks' conditions.
pub mod queue {
    /// It can be used.
    pub const ACTIVE: &str = "Active";

    /// Reasons of Active.
    pub mod reason {
        /// True.
        pub const READY: &str = "Ready";
        /// It is being deleted.
        pub const TERMINATING: &str = "Terminating";
        /// Its stop policy says so.
        pub const STOPPED: &str = "Stopped";
        /// (ClusterQueue) a flavor does not exist.
        pub const FLAVOR_NOT_FOUND: &str = "FlavorNotFound";
        /// (ClusterQueue) a topology does not exist.
        pub const TOPOLOGY_NOT_FOUND: &str = "TopologyNotFound";
        /// (ClusterQueue) an admission check does not exist.
        pub const ADMISSION_CHECK_NOT_FOUND: &str = "AdmissionCheckNotFound";
        /// (ClusterQueue) an admission check is not active.
        pub const ADMISSION_CHECK_INACTIVE: &str = "AdmissionCheckInactive";
        /// (LocalQueue) its ClusterQueue is not active.
        pub const CLUSTER_QUEUE_IS_INACTIVE: &str = "ClusterQueueIsInactive";
        /// (LocalQueue) its ClusterQueue does not exist.
        pub const CLUSTER_QUEUE_DOES_NOT_EXIST: &str = "ClusterQueueDoesNotExist";
        /// Something else.
        pub const UNKNOWN: &str = "Unknown";
    }
}

/// Types and reasons of a PodGroup's conditions.
pub mod pod_group {
    /// It cannot start.
    pub const UNSCHEDULABLE: &str = "Unschedulable";
    /// It can.
    pub const SCHEDULED: &str = "Scheduled";

    /// Reasons.
    pub mod reason {
        /// Unschedulable: the places do not suffice.
        pub const NOT_ENOUGH_RESOURCES: &str = "NotEnoughResources";
        /// Unschedulable: it has fewer pods than its minimum.
        pub const NOT_ENOUGH_TASKS: &str = "NotEnoughTasks";
        /// Unschedulable: a role has fewer pods than its minimum.
        pub const NOT_ENOUGH_PODS_OF_TASK: &str = "NotEnoughPodsOfTask";
        /// A pod failed.
        pub const POD_FAILED: &str = "PodFailed";
        /// A pod was deleted.
        pub const POD_DELETED: &str = "PodDeleted";
        /// Scheduled.
        pub const READY: &str = "tasks in gang are ready to be scheduled";
    }
}

/// A condition to be set, before it is known whether it changes anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCondition<'a> {
    /// What it is about.
    pub type_: &'a str,
    /// Whether it holds; `None`: nobody knows.
    pub status: Option<bool>,
    /// Why, in one word.
    pub reason: &'a str,
    /// Why, for people. Cut to what the API accepts (32,768 bytes).
    pub message: String,
    /// The generation of the object that it is said of.
    pub observed_generation: Option<i64>,
}

/// Longest message that the API accepts, in bytes.
const MESSAGE_LEN_MAX: usize = 32_768;

/// Sets a condition and says whether anything but its place in the list changed. The transition
/// time moves only when the status does (Kubernetes API conventions).
pub fn set(conditions: &mut Vec<Condition>, new: NewCondition<'_>, now: Timestamp) -> bool {
    let mut condition = Condition {
        type_: new.type_.to_owned(),
        status: status_word(new.status).to_owned(),
        reason: new.reason.to_owned(),
        message: cut(new.message),
        observed_generation: new.observed_generation,
        last_transition_time: Time(now),
    };
    match conditions.iter_mut().find(|old| old.type_ == condition.type_) {
        None => {
            conditions.push(condition);
            true
        }
        Some(old) => {
            if old.status == condition.status {
                condition.last_transition_time = old.last_transition_time.clone();
            }
            let changed = *old != condition;
            *old = condition;
            changed
        }
    }
}

/// The condition of a type, if it was ever set.
pub fn get<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of a type was set, and to True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    get(conditions, type_).is_some_and(|condition| condition.status == "True")
}

/// Whether the condition of a type was set, and to False.
pub fn is_false(conditions: &[Condition], type_: &str) -> bool {
    get(conditions, type_).is_some_and(|condition| condition.status == "False")
}

/// The word for a status in JSON.
pub const fn status_word(status: Option<bool>) -> &'static str {
    match status {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    }
}

fn cut(mut message: String) -> String {
    if message.len() > MESSAGE_LEN_MAX {
        let room = MESSAGE_LEN_MAX - "...".len();
        let end = (0..=room).rev().find(|ix| message.is_char_boundary(*ix)).unwrap_or(0);
        message.truncate(end);
        message.push_str("...");
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(message: &str) -> NewCondition<'static> {
        NewCondition {
            type_: workload::QUOTA_RESERVED,
            status: Some(false),
            reason: workload::reason::PENDING,
            message: message.to_owned(),
            observed_generation: Some(1),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let mut conditions = Vec::new();
        assert!(set(&mut conditions, pending("3 of 4"), at(1)));
        assert!(!set(&mut conditions, pending("3 of 4"), at(2)), "nothing changed");
        assert!(set(&mut conditions, pending("2 of 4"), at(3)), "the message changed");
        assert_eq!(conditions[0].last_transition_time, Time(at(1)));

        let reserved =
            NewCondition { status: Some(true), reason: workload::reason::QUOTA_RESERVED, ..pending("") };
        assert!(set(&mut conditions, reserved, at(4)));
        assert_eq!(conditions[0].last_transition_time, Time(at(4)));
        assert_eq!(conditions.len(), 1);
        assert!(is_true(&conditions, workload::QUOTA_RESERVED));
        assert!(!is_false(&conditions, workload::QUOTA_RESERVED));
        assert!(!is_true(&conditions, workload::ADMITTED));
        assert!(!is_false(&conditions, workload::ADMITTED), "never set is not False");
    }

    #[test]
    fn messages_are_cut_to_what_the_api_accepts() {
        let mut conditions = Vec::new();
        set(&mut conditions, pending(&"揃".repeat(20_000)), at(1));
        assert!(conditions[0].message.len() <= MESSAGE_LEN_MAX);
        assert!(conditions[0].message.ends_with("揃..."));
    }
}
