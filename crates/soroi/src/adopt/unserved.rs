//! What do objects ask for that Soroi does not serve yet?
//!
//! The list of the README's "What is not there yet", as questions to objects. Who adds a feature
//! takes its line away here. Only objects that are not finished count.

use serde_json::Value;
use soroi_api::labels::{kueue, volcano};

use super::look::{JOBS, PODS, Seen};
use super::object::{annotation, holds, label, list, place, text};

/// Something that is used, and not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unserved {
    /// In the words of the product that serves it.
    pub(super) feature: String,
    /// What happens to the objects instead.
    pub(super) instead: String,
    /// Who asks for it: `Kind namespace/name`.
    pub(super) objects: Vec<String>,
}

const CLUSTER_QUEUES: &str = "clusterqueues.kueue.x-k8s.io";
const LOCAL_QUEUES: &str = "localqueues.kueue.x-k8s.io";
const CHECKS: &str = "admissionchecks.kueue.x-k8s.io";
const WORKLOADS: &str = "workloads.kueue.x-k8s.io";
const POD_GROUPS: &str = "podgroups.scheduling.volcano.sh";
const QUEUES: &str = "queues.scheduling.volcano.sh";

/// One question: to the objects of a resource.
type Question = (&'static str, &'static str, &'static str, &'static str, fn(&Value) -> bool);

/// Feature, what happens instead, resource and kind, and who uses it.
const QUESTIONS: &[Question] = &[
    ("admission fair sharing", "weights are ignored", LOCAL_QUEUES, "LocalQueue", has_weight),
    ("admission fair sharing", "usage of the past is ignored", CLUSTER_QUEUES, "ClusterQueue", |queue| {
        queue["spec"]["admissionScope"]["admissionMode"] == "UsageBasedAdmissionFairSharing"
    }),
    (
        "concurrent admission",
        "flavors are tried one after the other",
        CLUSTER_QUEUES,
        "ClusterQueue",
        |queue| !queue["spec"]["concurrentAdmissionPolicy"].is_null(),
    ),
    (
        "checks of Kueue's own controllers",
        "gangs wait for a check that nobody answers",
        CHECKS,
        "AdmissionCheck",
        |check| {
            ["kueue.x-k8s.io/provisioning-request", kueue::MULTIKUEUE_CONTROLLER]
                .contains(&text(check, "/spec/controllerName"))
        },
    ),
    ("MultiKueue", "not sent to another cluster", WORKLOADS, "Workload", |workload| {
        !workload["status"]["clusterName"].is_null()
            || !list(workload, "/status/nominatedClusterNames").is_empty()
    }),
    ("MultiKueue", "not sent to another cluster", JOBS, "Job", |job| {
        text(job, "/spec/managedBy") == kueue::MULTIKUEUE_CONTROLLER
    }),
    (
        "jobs that run in part",
        "taken back as a whole, unless whole soon or their queue's placement is QuotaOnly",
        JOBS,
        "Job",
        runs_in_part,
    ),
    ("elastic jobs", "not resized while they run", JOBS, "Job", |job| {
        annotation(job, kueue::ELASTIC_JOB) == Some("true")
    }),
    ("prebuilt Workloads", "the Job gets a Workload of its own", JOBS, "Job", |job| {
        label(job, kueue::PREBUILT_WORKLOAD_NAME).is_some()
    }),
    ("pods and pod groups of Kueue", "running ones go on, gated ones wait for ever", PODS, "Pod", |pod| {
        label(pod, kueue::MANAGED) == Some("true")
    }),
    (
        "gates of Kueue's topology",
        "lifted under TopologyOnly; else the gang is taken back and starts anew",
        PODS,
        "Pod",
        |pod| is_gated(pod, &[kueue::GATE_TOPOLOGY]),
    ),
    ("other scheduling gates", "the pod waits for ever", PODS, "Pod", |pod| {
        let managed = label(pod, kueue::MANAGED) == Some("true");
        !managed
            && is_gated(
                pod,
                &[kueue::GATE_ADMISSION, kueue::GATE_ELASTIC_JOB, volcano::QUEUE_ALLOCATION_GATE],
            )
    }),
    ("network topology", "refused, with that reason", POD_GROUPS, "PodGroup", |group| {
        let topology = &group["spec"]["networkTopology"];
        !topology.is_null() && topology["mode"] != "soft"
    }),
    ("sub-groups", "refused, with that reason", POD_GROUPS, "PodGroup", |group| {
        !list(group, "/spec/subGroupPolicy").is_empty()
    }),
    (
        "shares of Volcano's queues",
        "only capability, guarantee and priority count",
        QUEUES,
        "Queue",
        |queue| {
            let spec = &queue["spec"];
            let given = |pointer: &str| {
                queue.pointer(pointer).and_then(Value::as_object).is_some_and(|map| !map.is_empty())
            };
            let weight = spec["weight"].as_i64().unwrap_or(1);
            weight != 1 || given("/spec/deserved") || given("/spec/affinity")
        },
    ),
];

/// All that is used and not served, in a fixed order.
pub(super) fn unserved(seen: &Seen) -> Vec<Unserved> {
    let mut found: Vec<Unserved> = Vec::new();
    for (feature, instead, resource, kind, uses) in QUESTIONS {
        let users = seen.of(resource).iter().filter(|object| !is_finished(object) && uses(object));
        let users: Vec<String> = users.map(|object| format!("{kind} {}", place(object))).collect();
        match found.last_mut().filter(|last| last.feature == *feature) {
            Some(last) => last.objects.extend(users),
            None => found.push(Unserved {
                feature: (*feature).to_owned(),
                instead: (*instead).to_owned(),
                objects: users,
            }),
        }
    }
    found.extend(kinds(seen));
    found.retain(|one| !one.objects.is_empty());
    found
}

/// Kinds that nobody serves: Kueue's and Volcano's that we do not define, and kinds of jobs.
fn kinds(seen: &Seen) -> Vec<Unserved> {
    let ours = soroi_api::crds::all();
    let is_ours = |resource: &str| ours.iter().any(|one| one.metadata.name.as_deref() == Some(resource));
    let mut found = Vec::new();
    for (resource, listed) in &seen.objects {
        if is_ours(resource) || [JOBS, PODS].contains(&resource.as_str()) {
            continue;
        }
        let objects = match listed {
            Ok(objects) => {
                let left = objects.iter().filter(|object| !is_finished(object));
                left.map(|object| format!("{resource} {}", place(object))).collect()
            }
            Err(why) => vec![format!("{resource} (cannot be read: {why})")],
        };
        let is_of_theirs = seen.definitions.iter().any(|one| super::object::name(one) == resource);
        let instead = if is_of_theirs {
            "kept as they are; nobody acts on them"
        } else {
            "not admitted; what runs goes on"
        };
        let feature = format!("kind {resource}");
        found.push(Unserved { feature, instead: instead.to_owned(), objects });
    }
    found
}

/// Some pods of a Job run, and some of those that it wants do not.
fn runs_in_part(job: &Value) -> bool {
    let number = |pointer: &str| job.pointer(pointer).and_then(Value::as_u64);
    let parallelism = number("/spec/parallelism").unwrap_or(1);
    let ended = number("/status/succeeded").unwrap_or(0);
    let left = number("/spec/completions").map_or(parallelism, |all| all.saturating_sub(ended));
    let ready = number("/status/ready").unwrap_or(0);
    job["spec"]["suspend"] != true && ready > 0 && ready < parallelism.min(left)
}

fn has_weight(object: &Value) -> bool {
    match &object["spec"]["fairSharing"]["weight"] {
        Value::Null => false,
        Value::String(weight) => weight != "1",
        weight => *weight != 1,
    }
}

fn is_gated(pod: &Value, by: &[&str]) -> bool {
    list(pod, "/spec/schedulingGates").iter().any(|gate| by.contains(&text(gate, "/name")))
}

/// Whether an object of any kind has come to its end.
fn is_finished(object: &Value) -> bool {
    ["Finished", "Complete", "Completed", "Failed"].iter().any(|kind| holds(object, kind))
        || ["Succeeded", "Failed", "Completed"].contains(&text(object, "/status/phase"))
        || ["Completed", "Failed", "Terminated", "Aborted"].contains(&text(object, "/status/state/phase"))
}
