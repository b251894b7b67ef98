//! The Workload that stands for a Job or a PodGroup, as Kueue forms it.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use soroi_api::kueue::{
    PodSet, PodSetTopologyRequest, PriorityClassGroup, PriorityClassKind, PriorityClassRef,
    SliceTopologyConstraint, Workload, WorkloadSpec,
};
use soroi_api::labels::kubernetes as kubernetes_keys;
use soroi_api::labels::kueue as keys;
use soroi_api::names;
use soroi_api::volcano;
use soroi_engine::event::{Slice, TopologyRequest, TopologyWish};

use crate::intake::defaults::PrioritySource;
use crate::intake::group::GroupPodSet;
use crate::intake::job::pod_set_template;
use crate::intake::{self, Defaults, Invalid};

/// The most pod sets that a Workload may have.
pub const POD_SETS_MAX: usize = keys::POD_SETS_MAX;

/// The Workload of a Job: named and owned as Kueue does it, one pod set `main`, the Job's queue and
/// priority. It carries the finalizer `kueue.x-k8s.io/resource-in-use`, which whoever deletes it
/// takes away.
///
/// # Errors
/// [`Invalid`] on the Job's field: what [`intake::job()`] could not understand, a priority class that
/// does not exist, a malformed execution time.
pub fn of_job(job: &Job, defaults: &Defaults) -> Result<Workload, Invalid> {
    let facts = intake::job(job)?;
    if let Some(invalid) = facts.invalid {
        return Err(invalid);
    }
    let label = |key: &str| job.metadata.labels.as_ref().and_then(|labels| labels.get(key));
    let pods = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    let pod_set = PodSet {
        name: keys::MAIN_POD_SET.into(),
        template: pod_set_template(job),
        count: pods(facts.pods()),
        min_count: facts.least().map(pods),
        topology_request: Some(topology_request(&facts.topology, true)),
    };
    let (priority, source) =
        defaults.priority(facts.priority_class.as_deref(), facts.pod_priority_class.as_deref())?;
    let owner = owner("batch/v1", "Job", &job.metadata);
    let mut workload = new(&names::workload("Job", "batch", &owner.name, &owner.uid), &job.metadata, owner);
    workload.spec = WorkloadSpec {
        pod_sets: vec![pod_set],
        queue_name: facts.queue.map(|queue| queue.to_string()),
        priority: Some(priority),
        priority_class_ref: source.map(class_ref),
        active: Some(true),
        maximum_execution_time_seconds: label(keys::MAX_EXEC_TIME_SECONDS).map(execution_time).transpose()?,
        ..WorkloadSpec::default()
    };
    Ok(workload)
}

/// The Workload of a PodGroup whose pods carry a queue-name: one pod set per role and shape, each
/// with the pod that [`GroupPodSet::example`] names. `queue` is the LocalQueue; the priority is the
/// group's class, else the cluster's default.
///
/// # Errors
/// [`Invalid`] when there are no pods, more distinct pods than a Workload allows pod sets, or a
/// priority class that does not exist.
pub fn of_group(
    group: &volcano::PodGroup,
    sets: &[(GroupPodSet, &Pod)],
    queue: &str,
    defaults: &Defaults,
) -> Result<Workload, Invalid> {
    if sets.is_empty() {
        return Err(Invalid::new("spec.podSets", "the group has no pods"));
    }
    if sets.len() > POD_SETS_MAX {
        let problem =
            format!("the group has {} distinct kinds of pods, a Workload at most {POD_SETS_MAX}", sets.len());
        return Err(Invalid::new("spec.podSets", problem));
    }
    let pod_sets = sets.iter().map(|(set, example)| pod_set_of_group(set, example));
    let class = group.spec.priority_class_name.as_deref().filter(|class| !class.is_empty());
    let label = group.metadata.labels.as_ref().and_then(|labels| labels.get(keys::PRIORITY_CLASS));
    let of_group = |mut invalid: Invalid| {
        // Where a Job has it in its template, a group has it itself.
        if let Some(field) = invalid.field.strip_prefix("spec.template.") {
            invalid.field = field.to_owned();
        }
        invalid
    };
    let (priority, source) = defaults.priority(label.map(String::as_str), class).map_err(of_group)?;
    let owner = owner("scheduling.volcano.sh/v1beta1", "PodGroup", &group.metadata);
    let name = names::workload("PodGroup", volcano::GROUP, &owner.name, &owner.uid);
    let mut workload = new(&name, &group.metadata, owner);
    workload.spec = WorkloadSpec {
        pod_sets: pod_sets.collect::<Result<_, Invalid>>()?,
        queue_name: Some(queue.into()),
        priority: Some(priority),
        priority_class_ref: source.map(class_ref),
        active: Some(true),
        ..WorkloadSpec::default()
    };
    Ok(workload)
}

/// A pod set of a PodGroup's Workload, with a pod of its kind for an example.
///
/// # Errors
/// [`Invalid`] when the pod's topology annotations contradict each other.
pub fn pod_set_of_group(set: &GroupPodSet, example: &Pod) -> Result<PodSet, Invalid> {
    let annotations = example.metadata.annotations.as_ref();
    let topology = intake::topology::of_annotations(annotations)
        .map_err(|e| e.within(&format!("pods[{}]", set.name)))?;
    Ok(PodSet {
        name: set.name.to_string(),
        template: template_of_pod(example),
        count: i32::try_from(set.count).unwrap_or(i32::MAX),
        min_count: None,
        topology_request: (topology != TopologyRequest::NONE).then(|| topology_request(&topology, false)),
    })
}

fn new(name: &str, owner_meta: &ObjectMeta, owner: OwnerReference) -> Workload {
    let mut workload = Workload::new(name, WorkloadSpec::default());
    workload.metadata.namespace = owner_meta.namespace.clone();
    workload.metadata.finalizers = Some(vec![keys::RESOURCE_IN_USE.into()]);
    workload.metadata.labels = Some(BTreeMap::from([(keys::JOB_UID.into(), owner.uid.clone())]));
    workload.metadata.annotations = owner_meta
        .annotations
        .as_ref()
        .and_then(|all| all.get(keys::ADMISSION_GATED_BY))
        .map(|gates| BTreeMap::from([(keys::ADMISSION_GATED_BY.into(), gates.clone())]));
    workload.metadata.owner_references = Some(vec![owner]);
    workload
}

fn owner(api_version: &str, kind: &str, meta: &ObjectMeta) -> OwnerReference {
    OwnerReference {
        api_version: api_version.into(),
        kind: kind.into(),
        name: meta.name.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

fn execution_time(text: &String) -> Result<i32, Invalid> {
    text.parse().ok().filter(|seconds| *seconds > 0).ok_or_else(|| {
        let field = format!("metadata.labels[{}]", keys::MAX_EXEC_TIME_SECONDS);
        Invalid::new(field, format!("\"{text}\" is no whole number of seconds above 0"))
    })
}

fn class_ref(source: PrioritySource) -> PriorityClassRef {
    let (group, kind, name) = match source {
        PrioritySource::Workload(name) => {
            (PriorityClassGroup::Kueue, PriorityClassKind::WorkloadPriorityClass, name)
        }
        PrioritySource::Pod(name) => (PriorityClassGroup::Scheduling, PriorityClassKind::PriorityClass, name),
    };
    PriorityClassRef { group, kind, name: name.to_string() }
}

/// The topology request of a pod set; Jobs also say which label holds their pods' index.
fn topology_request(request: &TopologyRequest, job: bool) -> PodSetTopologyRequest {
    let mut topology = PodSetTopologyRequest {
        pod_index_label: job.then(|| kubernetes_keys::JOB_COMPLETION_INDEX.into()),
        ..PodSetTopologyRequest::default()
    };
    match &request.wish {
        TopologyWish::None => {}
        TopologyWish::Required(level) => topology.required = Some(level.to_string()),
        TopologyWish::Preferred(level) => topology.preferred = Some(level.to_string()),
        TopologyWish::Unconstrained => topology.unconstrained = Some(true),
    }
    let size = |slice: &Slice| i32::try_from(slice.size).unwrap_or(i32::MAX);
    match &request.slices[..] {
        [] => {}
        [only] => {
            topology.pod_set_slice_required_topology = Some(only.level.to_string());
            topology.pod_set_slice_size = Some(size(only));
        }
        layers => {
            let layer = |slice: &Slice| SliceTopologyConstraint {
                topology: slice.level.to_string(),
                size: size(slice),
            };
            topology.slice_required_topology_constraints = layers.iter().map(layer).collect();
        }
    }
    topology.pod_set_group_name = request.group.as_ref().map(ToString::to_string);
    topology
}

/// A pod's template: what its user wrote, without what the API server and its plugins added for
/// this one pod (node, computed priority, mounted service account token).
fn template_of_pod(pod: &Pod) -> PodTemplateSpec {
    let mut spec = pod.spec.clone().unwrap_or_default();
    spec.node_name = None;
    spec.priority = None;
    spec.preemption_policy = None;
    let token = |name: &str| name.starts_with("kube-api-access-");
    if let Some(volumes) = &mut spec.volumes {
        volumes.retain(|volume| !token(&volume.name));
    }
    spec.volumes = spec.volumes.filter(|volumes| !volumes.is_empty());
    let init = spec.init_containers.iter_mut().flatten();
    for container in spec.containers.iter_mut().chain(init) {
        if let Some(mounts) = &mut container.volume_mounts {
            mounts.retain(|mount| !token(&mount.name));
        }
        container.volume_mounts = container.volume_mounts.take().filter(|mounts| !mounts.is_empty());
    }
    let meta = ObjectMeta {
        labels: pod.metadata.labels.clone(),
        annotations: pod.metadata.annotations.clone(),
        ..ObjectMeta::default()
    };
    PodTemplateSpec { metadata: Some(meta), spec: Some(spec) }
}

#[cfg(test)]
pub(crate) mod tests;
