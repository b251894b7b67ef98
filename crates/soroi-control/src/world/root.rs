//! What holds a gang together: the place in the cluster from which it is put together.
//!
//! A root is a name, not an object: it is known before its objects are (a Job says what its
//! Workload will be called), and stays the same when they are created again.

use soroi_api::names;
use soroi_engine::event::{GangId, Name};

use crate::intake::{JobFacts, PodFacts, Schedulers, WorkloadFacts};

/// From where a gang is put together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Root {
    /// Namespace and name of a Workload that stands for itself or for one Job.
    Workload(Name, Name),
    /// Namespace and name of a PodGroup, with whatever feeds it.
    Group(Name, Name),
    /// The uid of a pod that belongs to nobody.
    Pod(Name),
    /// The gang of a plan: whatever root it has, or none any more.
    Plan(GangId),
}

/// A Job that we start and stop, or whose pods are members of a group.
pub(crate) fn is_managed(job: &JobFacts) -> bool {
    job.queue.is_some() || job.group.is_some()
}

/// The name of a Job's Workload.
pub(crate) fn workload_name(job: &JobFacts) -> Name {
    names::workload("Job", "batch", &job.name, &job.uid).into()
}

/// The roots that a Job has a part in; the first is the one of its gang.
pub(crate) fn of_job(job: &JobFacts) -> Vec<Root> {
    let own = Root::Workload(job.namespace.clone(), workload_name(job));
    match &job.group {
        Some(group) => vec![Root::Group(job.namespace.clone(), group.clone()), own],
        None => vec![own],
    }
}

/// The root that is named after a Workload.
pub(crate) fn of_workload(workload: &WorkloadFacts) -> Root {
    Root::Workload(workload.namespace.clone(), workload.name.clone())
}

/// A pod that nobody else stands for is a gang of its own while it waits for us.
pub(crate) fn of_single(pod: &PodFacts, schedulers: &Schedulers) -> Option<Root> {
    schedulers.serve(&pod.scheduler).then(|| Root::Pod(pod.pod.uid.clone()))
}

/// The name that a pod set of a Workload has in its gang. In a group, several Workloads may each
/// have a `main`; there it ends with the hash that the Workload's name ends with.
pub(crate) fn pod_set_name(pod_set: &Name, workload: &Name, in_group: bool) -> Name {
    match workload.rsplit_once('-') {
        Some((_, hash)) if in_group => format!("{pod_set}-{hash}").into(),
        _ => pod_set.clone(),
    }
}
