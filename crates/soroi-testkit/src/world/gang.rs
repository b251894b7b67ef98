//! Which pods belong together, and how far is each gang? As a user sees it through the API.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{World, condition, is_true, text};
use crate::kind;
use crate::scenario::GangRef;

/// Annotation by which a pod (or a Job's template) names its PodGroup.
const GROUP_NAME: &str = "scheduling.k8s.io/group-name";
/// Annotation by which a pod names its role in a PodGroup.
const TASK_SPEC: &str = "volcano.sh/task-spec";
/// Label by which a Job or PodGroup names its LocalQueue.
const QUEUE_NAME: &str = "kueue.x-k8s.io/queue-name";

/// How far a gang is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody decided anything yet, or no.
    Pending,
    /// Quota is reserved, the gang is not admitted.
    Reserved,
    /// Admitted.
    Admitted,
    /// Its Workloads are finished.
    Finished,
    /// It has no Workload: nobody queues it.
    Unqueued,
}

impl State {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Reserved => "Reserved",
            Self::Admitted => "Admitted",
            Self::Finished => "Finished",
            Self::Unqueued => "Unqueued",
        }
    }
}

/// A gang with what belongs to it.
#[derive(Clone, Debug)]
pub struct GangView<'a> {
    /// Its name.
    pub gang: GangRef,
    /// Its PodGroup, if it has one.
    pub group: Option<&'a Value>,
    /// Its Jobs.
    pub jobs: Vec<&'a Value>,
    /// Its pods, by name; those that ended included.
    pub pods: Vec<&'a Value>,
    /// Its Workloads.
    pub workloads: Vec<&'a Value>,
}

/// The gangs that a pod counts for: its PodGroup's and its Job's.
pub(crate) fn gangs_of_pod(pod: &Value) -> BTreeSet<GangRef> {
    let namespace = text(&pod["metadata"]["namespace"]);
    let group = pod["metadata"]["annotations"][GROUP_NAME].as_str();
    let job = owner(pod, "Job");
    group.into_iter().chain(job).map(|name| gang_ref(namespace, name)).collect()
}

/// Whether a pod counts for a gang.
fn is_of(pod: &Value, gang: &GangRef) -> bool {
    let names = |name: Option<&str>| name == Some(gang.name.as_str());
    let here = pod["metadata"]["namespace"] == gang.namespace.as_str();
    here && (names(pod["metadata"]["annotations"][GROUP_NAME].as_str()) || names(owner(pod, "Job")))
}

/// The gangs that a Job counts for: that of its own name, and its PodGroup's.
pub(crate) fn gangs_of_job(job: &Value) -> BTreeSet<GangRef> {
    let metadata = &job["metadata"];
    let names = group_of_job(job).into_iter().chain([text(&metadata["name"])]);
    names.map(|name| gang_ref(text(&metadata["namespace"]), name)).collect()
}

/// The gangs that a Workload counts for.
pub(crate) fn gangs_of_workload(workload: &Value) -> BTreeSet<GangRef> {
    let namespace = text(&workload["metadata"]["namespace"]);
    let owners = ["Job", "PodGroup"].into_iter().filter_map(|kind| owner(workload, kind));
    owners.map(|name| gang_ref(namespace, name)).collect()
}

fn gang_ref(namespace: &str, name: &str) -> GangRef {
    GangRef { namespace: namespace.to_owned(), name: name.to_owned() }
}

/// The name of the owner of this kind.
fn owner<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["kind"] == kind)?["name"].as_str()
}

/// The PodGroup that a Job's template names.
fn group_of_job(job: &Value) -> Option<&str> {
    job["spec"]["template"]["metadata"]["annotations"][GROUP_NAME].as_str()
}

/// Whether a pod has ended.
pub fn has_ended(pod: &Value) -> bool {
    matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed")
}

impl World {
    /// Every gang, by name: PodGroups, and Jobs that a queue or a group concerns.
    pub fn gangs(&self) -> Vec<GangView<'_>> {
        let mut names = BTreeSet::new();
        for group in self.all(kind::POD_GROUP) {
            let metadata = &group["metadata"];
            names.insert(gang_ref(text(&metadata["namespace"]), text(&metadata["name"])));
        }
        for job in self.all(kind::JOB) {
            let metadata = &job["metadata"];
            if group_of_job(job).is_none() && metadata["labels"][QUEUE_NAME].is_string() {
                names.insert(gang_ref(text(&metadata["namespace"]), text(&metadata["name"])));
            }
        }
        let mut pods: BTreeMap<GangRef, Vec<&Value>> = BTreeMap::new();
        for pod in self.all(kind::POD) {
            for gang in gangs_of_pod(pod) {
                pods.entry(gang).or_default().push(pod);
            }
        }
        names.iter().map(|name| self.gang_of(name, pods.remove(name).unwrap_or_default())).collect()
    }

    /// The gang of this name, with whatever of it is there.
    pub fn gang(&self, gang: &GangRef) -> GangView<'_> {
        self.gang_of(gang, self.all(kind::POD).filter(|pod| is_of(pod, gang)).collect())
    }

    /// Whether [`World::gangs`] has a gang of this name.
    pub(crate) fn is_gang(&self, gang: &GangRef) -> bool {
        let GangRef { namespace, name } = gang;
        let queued =
            |job: &Value| group_of_job(job).is_none() && job["metadata"]["labels"][QUEUE_NAME].is_string();
        self.get(kind::POD_GROUP, namespace, name).is_some()
            || self.get(kind::JOB, namespace, name).is_some_and(queued)
    }

    fn gang_of<'a>(&'a self, gang: &GangRef, pods: Vec<&'a Value>) -> GangView<'a> {
        let GangRef { namespace, name } = gang;
        let group = self.get(kind::POD_GROUP, namespace, name);
        let here = |object: &&Value| object["metadata"]["namespace"] == namespace.as_str();
        let jobs: Vec<&Value> = self
            .all(kind::JOB)
            .filter(here)
            .filter(|job| job["metadata"]["name"] == name.as_str() || group_of_job(job) == Some(name))
            .collect();
        let workloads = self
            .all(kind::WORKLOAD)
            .filter(here)
            .filter(|workload| {
                let of_group = owner(workload, "PodGroup") == Some(name);
                let of_job = owner(workload, "Job")
                    .is_some_and(|owner| jobs.iter().any(|job| job["metadata"]["name"] == owner));
                of_group || of_job
            })
            .collect();
        GangView { gang: gang.clone(), group, jobs, pods, workloads }
    }
}

impl<'a> GangView<'a> {
    /// Members that hold a node now: bound, not ended, not being deleted.
    pub fn bound(&self) -> Vec<&'a Value> {
        self.pods
            .iter()
            .copied()
            .filter(|pod| pod["spec"]["nodeName"].is_string())
            .filter(|pod| !has_ended(pod) && pod["metadata"]["deletionTimestamp"].is_null())
            .collect()
    }

    /// Whether it is made of pods that exist and name another scheduler than Soroi, or none.
    pub fn is_of_another_scheduler(&self) -> bool {
        let others = |pod: &&Value| !matches!(text(&pod["spec"]["schedulerName"]), "soroi" | "volcano");
        self.jobs.is_empty() && !self.pods.is_empty() && self.pods.iter().all(others)
    }

    /// Number of members with this phase.
    pub fn in_phase(&self, phase: &str) -> usize {
        self.pods.iter().filter(|pod| pod["status"]["phase"] == phase).count()
    }

    /// Members that succeeded, by the Jobs' own count where there are Jobs.
    pub fn succeeded(&self) -> usize {
        if self.jobs.is_empty() {
            return self.in_phase("Succeeded");
        }
        let counted: u64 = self.jobs.iter().filter_map(|job| job["status"]["succeeded"].as_u64()).sum();
        usize::try_from(counted).unwrap_or(usize::MAX).max(self.in_phase("Succeeded"))
    }

    /// How many members must run for the gang to be worth anything: a PodGroup's minimum, else
    /// what its Jobs want to run at once.
    pub fn minimum(&self) -> usize {
        if let Some(group) = self.group {
            return group["spec"]["minMember"]
                .as_u64()
                .and_then(|min| usize::try_from(min).ok())
                .unwrap_or(1);
        }
        self.jobs.iter().map(|job| wanted(job)).sum()
    }

    /// A role with fewer members that hold a node or have done their part than it needs: its name,
    /// how many there are, how many it needs. Volcano ignores minima that need more than the group.
    pub fn lacking_role(&self) -> Option<(&'a str, usize, usize)> {
        let group = self.group?;
        let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
        let minima = group["spec"]["minTaskMember"].as_object()?;
        let needed: usize = minima.values().filter_map(number).sum();
        if needed > self.minimum() {
            return None;
        }
        let has_part = |pod: &&Value| pod["status"]["phase"] == "Succeeded";
        let bound = self.bound();
        let counted = || bound.iter().chain(self.pods.iter().filter(|pod| has_part(pod)));
        minima.iter().find_map(|(role, need)| {
            let of_role = |pod: &&&Value| pod["metadata"]["annotations"][TASK_SPEC] == role.as_str();
            let (have, need) = (counted().filter(of_role).count(), number(need)?);
            (have < need).then_some((role.as_str(), have, need))
        })
    }

    /// How far it is.
    pub fn state(&self) -> State {
        let all = |kind: &str| {
            !self.workloads.is_empty() && self.workloads.iter().all(|workload| is_true(workload, kind))
        };
        if all("Finished") {
            State::Finished
        } else if all("Admitted") {
            State::Admitted
        } else if self.workloads.iter().any(|workload| is_true(workload, "QuotaReserved")) {
            State::Reserved
        } else if !self.workloads.is_empty() {
            State::Pending
        } else {
            self.state_without_workload()
        }
    }

    /// A group under a Volcano Queue has a phase and no Workload; a Job with a queue gets its
    /// Workload soon.
    fn state_without_workload(&self) -> State {
        match self.group.map(|group| text(&group["status"]["phase"])) {
            Some("Running") => State::Admitted,
            Some("Completed") => State::Finished,
            Some(_) => State::Pending,
            None if self.jobs.iter().any(|job| job["metadata"]["labels"][QUEUE_NAME].is_string()) => {
                State::Pending
            }
            None => State::Unqueued,
        }
    }

    /// Why it waits, in the product's words; `None` when it says nothing.
    pub fn why(&self) -> Option<&'a str> {
        let of_workload = self.workloads.iter().find_map(|workload| {
            let waits = !is_true(workload, "QuotaReserved") && !is_true(workload, "Finished");
            let message = text(&condition(workload, "QuotaReserved")?["message"]);
            (waits && !message.is_empty()).then_some(message)
        });
        let of_group = || {
            let group = self.group?;
            let unschedulable = condition(group, "Unschedulable")?;
            let message = text(&unschedulable["message"]);
            (unschedulable["status"] == "True" && !message.is_empty()).then_some(message)
        };
        let of_pod = || {
            self.pods.iter().find_map(|pod| {
                let scheduled = condition(pod, "PodScheduled")?;
                let message = text(&scheduled["message"]);
                (scheduled["status"] == "False" && !has_ended(pod) && !message.is_empty()).then_some(message)
            })
        };
        of_workload.or_else(of_group).or_else(of_pod)
    }

    /// Number of bound members by node.
    pub fn nodes(&self) -> BTreeMap<&'a str, usize> {
        let mut nodes = BTreeMap::new();
        for pod in self.bound() {
            *nodes.entry(text(&pod["spec"]["nodeName"])).or_insert(0) += 1;
        }
        nodes
    }

    /// Whether all its Jobs have ended.
    pub fn jobs_ended(&self) -> bool {
        !self.jobs.is_empty()
            && self.jobs.iter().all(|job| is_true(job, "Complete") || is_true(job, "Failed"))
    }
}

/// How many pods a Job wants to run at once: its parallelism, but not more than are left to do.
fn wanted(job: &Value) -> usize {
    let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
    let parallelism = number(&job["spec"]["parallelism"]).unwrap_or(1);
    match number(&job["spec"]["completions"]) {
        Some(completions) => {
            let done = number(&job["status"]["succeeded"]).unwrap_or(0);
            parallelism.min(completions.saturating_sub(done))
        }
        None => parallelism,
    }
}
