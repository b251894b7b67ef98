//! The wording of events: Kueue's (0.18) for Workloads and jobs, Volcano's (1.15) for PodGroups,
//! kube-scheduler's for pods.

use soroi_engine::event::Name;

use super::{About, Occurrence};

/// Who speaks of Workloads and queues.
pub const ADMISSION: &str = "kueue-admission";
/// Who speaks of Jobs.
pub const JOB: &str = "batch/job-kueue-controller";
/// Who speaks of PodGroups.
pub const VOLCANO: &str = "volcano";
/// Who speaks of everything else.
pub const SOROI: &str = "soroi";

/// A Workload.
pub fn workload(namespace: &Name, name: &Name, uid: &Name) -> About {
    About::new("kueue.x-k8s.io/v1beta2", "Workload", namespace, name, uid)
}

/// A Job.
pub fn job(namespace: &Name, name: &Name, uid: &Name) -> About {
    About::new("batch/v1", "Job", namespace, name, uid)
}

/// A PodGroup.
pub fn group(namespace: &Name, name: &Name, uid: &Name) -> About {
    About::new("scheduling.volcano.sh/v1beta1", "PodGroup", namespace, name, uid)
}

/// A pod.
pub fn pod(namespace: &Name, name: &Name, uid: &Name) -> About {
    About::new("v1", "Pod", namespace, name, uid)
}

fn say(about: About, reporter: &'static str, warning: bool, reason: &str, note: String) -> Occurrence {
    Occurrence { about, warning, reason: reason.into(), note, action: reason.into(), reporter }
}

fn whole_seconds(millis: i64) -> i64 {
    millis.max(0).saturating_add(500) / 1_000
}

/// A Workload got quota, after waiting for it since it was queued.
pub fn quota_reserved(workload: About, cluster_queue: &str, waited_millis: i64) -> Occurrence {
    let seconds = whole_seconds(waited_millis);
    let note =
        format!("Quota reserved in ClusterQueue {cluster_queue}, wait time since queued was {seconds}s");
    say(workload, ADMISSION, false, "QuotaReserved", note)
}

/// A Workload may run, after waiting for that since its quota was reserved.
pub fn admitted(workload: About, cluster_queue: &str, waited_millis: i64) -> Occurrence {
    let seconds = whole_seconds(waited_millis);
    let note =
        format!("Admitted by ClusterQueue {cluster_queue}, wait time since reservation was {seconds}s");
    say(workload, ADMISSION, false, "Admitted", note)
}

/// A Workload waits: `word` and `message` as in its condition QuotaReserved.
pub fn pending(workload: About, word: &str, message: &str) -> Occurrence {
    say(workload, ADMISSION, true, word, message.into())
}

/// A Workload has run for as long as it may.
pub fn time_exceeded(workload: About, seconds: i32) -> Occurrence {
    let note = format!("The maximum execution time ({seconds}s) exceeded");
    say(workload, ADMISSION, true, "MaximumExecutionTimeExceeded", note)
}

/// A Workload is deactivated because of an admission check.
pub fn check_rejected(workload: About, check: &str, message: &str) -> Occurrence {
    let note = format!("Deactivating workload because AdmissionCheck for {check} was Rejected: {message}");
    say(workload, ADMISSION, true, "AdmissionCheckRejected", note)
}

/// A Workload has to stop, having started.
pub fn evicted(workload: About, reason: &str, message: &str) -> Occurrence {
    say(workload, ADMISSION, false, &format!("EvictedDueTo{reason}"), message.into())
}

/// A Workload has to stop for another: what it is told, and the priorities of both.
pub fn preempted(workload: About, message: &str, priorities: &str) -> Occurrence {
    say(workload, ADMISSION, false, "Preempted", format!("{message}; {priorities}"))
}

/// Another Workload has to stop for this one: its name, uid and queue, and the priorities of both.
pub fn preempted_workload(workload: About, victim: &str, queue: &str, priorities: &str) -> Occurrence {
    let note = format!("Preempted workload {victim} in ClusterQueue {queue}; {priorities}");
    say(workload, ADMISSION, false, "PreemptedWorkload", note)
}

/// The priorities of a preemptor and its victim, in Kueue's words. (Soroi knows no boost.)
pub fn priorities(by: i32, of: i32) -> String {
    format!(
        "preemptor effective priority: {by} (base: {by}, boost: 0); preemptee effective priority: {of} (base: {of}, boost: 0)"
    )
}

/// An admission was taken back before all members ran. (Kueue has no such thing.)
pub fn undone(workload: About, message: &str) -> Occurrence {
    say(workload, SOROI, true, "AdmissionUndone", message.into())
}

/// A Workload was made for a Job.
pub fn created_workload(job: About, namespace: &str, workload: &str) -> Occurrence {
    say(job, JOB, false, "CreatedWorkload", format!("Created Workload: {namespace}/{workload}"))
}

/// A Workload was changed because its Job was.
pub fn updated_workload(job: About, namespace: &str, workload: &str) -> Occurrence {
    say(job, JOB, false, "UpdatedWorkload", format!("Updated workload to match job: {namespace}/{workload}"))
}

/// A Workload has another priority because its Job is of another class.
pub fn reclassified(job: About, namespace: &str, workload: &str) -> Occurrence {
    say(
        job,
        JOB,
        false,
        "UpdatedWorkload",
        format!("Updated workload priority class: {namespace}/{workload}"),
    )
}

/// A Workload was deleted because its Job asks for more than it was admitted with.
pub fn deleted_workload(job: About, namespace: &str, workload: &str) -> Occurrence {
    say(job, JOB, false, "DeletedWorkload", format!("Deleted not matching Workload: {namespace}/{workload}"))
}

/// No Workload can be made of a Job; the text names the field.
pub fn cannot_compose(job: About, problem: &str) -> Occurrence {
    say(job, JOB, true, "ErrWorkloadCompose", problem.into())
}

/// An admitted Job could not be released; the text is the API server's and names the field.
pub fn cannot_start(job: About, problem: &str) -> Occurrence {
    say(job, JOB, true, "FailedToStart", problem.into())
}

/// A Job was released.
pub fn started(job: About, cluster_queue: &str) -> Occurrence {
    say(job, JOB, false, "Started", format!("Admitted by clusterQueue {cluster_queue}"))
}

/// A Job that nobody admitted was suspended.
pub fn suspended(job: About) -> Occurrence {
    say(job, JOB, false, "Suspended", "Kueue managed child job suspended".into())
}

/// A Job was suspended because its Workload must stop.
pub fn stopped(job: About, message: &str) -> Occurrence {
    say(job, JOB, false, "Stopped", message.into())
}

/// A Job's Workload has ended with it.
pub fn finished_workload(job: About, namespace: &str, workload: &str) -> Occurrence {
    let note = format!("Workload '{namespace}/{workload}' is declared finished");
    say(job, JOB, false, "FinishedWorkload", note)
}

/// A PodGroup cannot start: the text that [`crate::project::group::status`] gives.
pub fn group_unschedulable(group: About, text: &str) -> Occurrence {
    say(group, VOLCANO, true, "Unschedulable", text.into())
}

/// A PodGroup has its places.
pub fn group_scheduled(group: About) -> Occurrence {
    say(group, VOLCANO, false, "Scheduled", "pod group is ready".into())
}

/// A pod was bound.
pub fn scheduled(pod: About, node: &str) -> Occurrence {
    let note = format!("Successfully assigned {}/{} to {node}", pod.namespace, pod.name);
    Occurrence { action: "Binding".into(), ..say(pod, SOROI, false, "Scheduled", note) }
}

/// A pod cannot be scheduled.
pub fn failed_scheduling(pod: About, message: &str) -> Occurrence {
    let occurrence = say(pod, SOROI, true, "FailedScheduling", message.into());
    Occurrence { action: "Scheduling".into(), ..occurrence }
}

/// An object could not be understood; the text names the field.
pub fn invalid(about: About, problem: &str) -> Occurrence {
    say(about, SOROI, true, "Invalid", problem.into())
}
